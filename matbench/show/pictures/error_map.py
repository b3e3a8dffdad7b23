"""The picture of an error map: blue where C is right, from orange to dark red where it is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from matbench.analysis.error_map import ErrorMap
from matbench.show.pictures import files

SUFFIXES = (".png", ".svg")
#: Up to this many wrong cells get a ring, because single cells are easily overlooked.
_MOST_RINGS = 40
#: The smallest error with its own colour, in powers of ten below the smallest wrong one.
_FLOOR = -4.0
_BLUES, _ORANGES = ("#f2f6fa", "#2a6fb0"), ("#fdb35a", "#7a1c00")


def draw(found: ErrorMap, path: Path) -> None:
    """Draw the map, with PNG or SVG by the path's suffix; `UsageError` if it cannot be written."""
    files.require(path, SUFFIXES)
    from matplotlib.colors import LinearSegmentedColormap, Normalize, TwoSlopeNorm
    from matplotlib.patches import Patch
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator

    M, N = found.shape
    missing = found.wrong & ~np.isfinite(found.worst)
    powers, edge = _powers(found, found.wrong & ~missing)
    top = float(np.max(powers[~missing], initial=edge + 1))
    shades = _ORANGES if found.exact else (*_BLUES, *_ORANGES)
    places = (0.0, 1.0) if found.exact else (0.0, 0.5, 0.5, 1.0)
    shaded = LinearSegmentedColormap.from_list("error", list(zip(places, shades, strict=True)))

    tall = M / N
    figure, [axes] = files.figure(9.0, 1.8 + 6.4 * min(1.0, max(tall, 0.35)))
    image = axes.imshow(
        np.ma.masked_where(missing, powers),
        cmap=shaded.with_extremes(under=_BLUES[0], bad="black"),
        norm=Normalize(edge, top) if found.exact else TwoSlopeNorm(edge, edge + _FLOOR, top),
        extent=(-0.5, N - 0.5, M - 0.5, -0.5),
        interpolation="nearest",
        aspect="equal" if 1 / 8 <= tall <= 8 else "auto",
    )
    cells = np.argwhere(found.wrong)
    if len(cells) <= _MOST_RINGS:
        rows, columns = (cells * found.step + (found.step - 1) / 2).T
        ring = {"s": 130, "facecolors": "none", "edgecolors": "black", "clip_on": False}
        rings = axes.scatter(columns, rows, **ring)
        rings.set_path_effects([withStroke(linewidth=3.5, foreground="white")])
    axes.set(xlabel="column of C", ylabel="row of C")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    scale = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    scale.locator = MaxNLocator(8, integer=True)
    scale.ax.yaxis.set_major_formatter(lambda value, _: f"$10^{{{value:g}}}$")
    scale.set_label(
        "|C − expected|, which must be 0"
        if found.exact
        else "|C − expected| / error bound: above 1 is wrong"
    )
    if missing.any():
        black = Patch(color="black", label="NaN or infinite")
        axes.legend(handles=[black], loc="upper right", bbox_to_anchor=(1, 1.07), frameon=False)
    heading = f"{found.wrong_elements:,} of {M * N:,} elements wrong"
    if found.step > 1:
        heading += f" · each cell is the worst of {found.step} × {found.step} elements"
    files.add_heading(figure, found.title, [heading])
    files.write(path, files.encoded(figure, files.suffix(path)))


def _powers(found: ErrorMap, wrong: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.float64], float]:
    """Errors as powers of ten, and the power that separates right cells from wrong ones."""
    with np.errstate(divide="ignore"):
        powers = np.log10(found.worst)
    edge = float(np.floor(np.min(powers[wrong], initial=0.0))) - 1 if found.exact else 0.0
    above = np.maximum(powers, edge + 1e-6)
    return np.where(wrong, above, np.clip(powers, edge + _FLOOR, edge - 1e-6)), edge
