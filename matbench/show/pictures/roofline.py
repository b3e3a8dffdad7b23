"""The picture of a roofline: measured limits, and the points below them."""

from __future__ import annotations

from pathlib import Path

from matbench.analysis.roofline import Roofline
from matbench.show.pictures import files
from matbench.show.roofline import LABELS

SUFFIXES = (".svg", ".png")
#: Marker and colour of each kind of point; filled if it was measured.
_STYLES = {
    "least": ("D", files.COLOURS[0]),
    "modelled": ("s", files.COLOURS[1]),
    "measured at least": ("o", files.COLOURS[2]),
    "measured at modelled": ("o", files.COLOURS[2]),
}


def draw(roof: Roofline, path: Path, title: str) -> None:
    """Draw the roofline with both axes logarithmic; `UsageError` if the file cannot be written."""
    files.require(path, SUFFIXES)
    (left, right), (bottom, top) = roof.bounds()
    figure, [axes] = files.figure(files.WIDTH_IN * 0.7, files.WIDTH_IN * 0.45)
    corners = [left, min(max(roof.ridge, left), right), right]
    axes.plot(corners, [roof.allowed(x) / 1e9 for x in corners], color="black", linewidth=1.5)
    for point in roof.points:
        marker, colour = _STYLES[point.kind]
        axes.plot(
            [point.intensity], [point.flop_per_s / 1e9], linestyle="none", marker=marker,
            markersize=9, color=colour, label=LABELS[point.kind],
            markerfacecolor=colour if point.kind.startswith("measured") else "none",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom / 1e9, top / 1e9))
    axes.set(xlabel="operations per byte of global memory", ylabel="GFLOP/s")
    limits = f"{roof.bytes_per_s / 1e9:,.0f} GB/s copied, {roof.flop_per_s / 1e9:,.0f} GFLOP/s"
    axes.grid(which="major", linewidth=0.4)
    axes.legend(loc="lower right", fontsize=9)
    files.add_heading(figure, title, [f"measured limits: {limits} of multiply-adds"])
    files.write(path, files.encoded(figure, files.suffix(path)))
