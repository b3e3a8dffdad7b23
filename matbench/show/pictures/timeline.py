"""When each block of a launch ran, and on which multiprocessor: SVG, PNG, or a page of HTML."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from matbench.analysis import blocks
from matbench.analysis.blocks import BlockSample, Placed
from matbench.errors import UsageError
from matbench.records.blocks import PERTURBATION_LIMIT, BlockProfile
from matbench.show import blocks as words
from matbench.show.pictures import files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png", ".html")
#: More bars than this, or more of them above each other, are thinned.
MOST_BARS = 10_000
MOST_ROWS = 600
_SVG = "http://www.w3.org/2000/svg"
_BARS = "blocks"


def draw(sample: BlockSample, profile: BlockProfile, path: Path, title: str) -> None:
    """Draw a lane per multiprocessor and a bar per block; the path's suffix chooses the format.

    Bars of an SVG, and so of a page, have tooltips. `UsageError` if the blocks have no common
    clock, or if the file cannot be written.
    """
    files.require(path, SUFFIXES)
    placed = blocks.place(sample, profile.device_kind)
    if placed is None:
        raise UsageError(
            f"{path}: the multiprocessors of {profile.device} share no clock, so the blocks cannot "
            "be drawn on one axis"
        )
    bars = _Bars(placed)
    figure = _figure(bars, profile, title)
    kind = files.suffix(path)
    if kind == "png":
        files.write(path, files.encoded(figure, "png"))
        return
    svg = _with_tooltips(files.encoded(figure, "svg"), _BARS, bars.tooltips(profile))
    files.write(path, svg if kind == "svg" else _page(svg, profile, title))


class _Bars:
    """Which blocks are drawn, and where: `lane`, `slot` of `slots` in it, start and end in µs."""

    def __init__(self, placed: Placed) -> None:
        self.placed = placed
        self.start, self.end = placed.start_ns / 1e3, placed.end_ns / 1e3
        one = np.zeros(len(self.start), np.int64)
        if placed.unit is None:  # a lane only keeps apart what ran at the same time
            self.lane, self.slot = blocks.apart(self.start, self.end, one), one
        else:
            self.lane, self.slot = placed.unit, blocks.apart(self.start, self.end, placed.unit)
        self.lanes = int(self.lane.max()) + 1
        self.resident = int(self.slot.max()) + 1
        self.drawn, self.slots = self._thinned()

    def _thinned(self) -> tuple[npt.NDArray[np.int64], int]:
        """All blocks; or those in the first slots of each lane, or every n-th of those."""
        slots = min(self.resident, max(1, MOST_ROWS // self.lanes))
        while slots > 1 and (self.slot < slots).sum() > MOST_BARS:
            slots -= 1
        drawn = np.flatnonzero(self.slot < slots)
        order = drawn[np.lexsort((self.start[drawn], self.lane[drawn]))]
        return order[:: -(-len(order) // MOST_BARS)], slots

    def left_out(self) -> str:
        """A note on blocks that are not drawn; empty if all are."""
        if len(self.drawn) == len(self.start):
            return ""
        text = f"thinned: {len(self.drawn):,} of {len(self.start):,} blocks drawn"
        if self.slots < self.resident:
            text += f", {self.slots} of up to {self.resident} resident together"
        return f"{text}; grey: busy with blocks that are not drawn"

    def tooltips(self, profile: BlockProfile) -> list[str]:
        """A line about each bar, in drawing order."""
        gx, gy, _ = profile.launch.grid
        names = self.placed.names
        found = []
        for bar in self.drawn.tolist():
            row = int(self.placed.row[bar])
            where = "" if names is None else f" on multiprocessor {names[self.lane[bar]]}"
            start, end = self.start[bar], self.end[bar]
            found.append(
                f"block ({row % gx}, {row // gx % gy}, {row // (gx * gy)}){where}: "
                f"{start:,.2f} to {end:,.2f} µs, took {end - start:,.3f} µs"
            )
        return found


def _figure(bars: _Bars, profile: BlockProfile, title: str) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize
    from matplotlib.ticker import FixedLocator, MaxNLocator, StrMethodFormatter

    lane_in = min(0.5, max(0.11, 6 / bars.lanes), 60 / bars.lanes)
    figure, [axes] = files.figure(files.WIDTH_IN, lane_in * bars.lanes + 2.2)
    span = float(bars.end.max()) or 1.0
    start, end, lane = (values[bars.drawn] for values in (bars.start, bars.end, bars.lane))
    took = end - start
    low, high = np.percentile(bars.end - bars.start, [5, 95])
    colours = ScalarMappable(Normalize(low, high if high > low else low + 1e-3), "cividis")

    if len(bars.drawn) < len(bars.start):
        for number in range(bars.lanes):
            mine = bars.lane == number
            ran = [(a, b - a) for a, b in blocks.busy(bars.start[mine], bars.end[mine])]
            axes.broken_barh(ran, (number - 0.45, 0.9), color="#d0d0d0", linewidth=0)
    height = 0.9 / bars.slots
    bottom = lane - 0.45 + bars.slot[bars.drawn] * height
    top = bottom + height
    corners = [[start, bottom], [start, top], [end, top], [end, bottom]]
    drawn = PolyCollection(
        list(np.moveaxis(np.array(corners), -1, 0)),
        facecolors=colours.to_rgba(took),
        edgecolors="white",
        linewidths=np.where(took > 0.004 * span, min(0.4, 4 * height * lane_in), 0.0).tolist(),
    )
    drawn.set_gid(_BARS)
    axes.add_collection(drawn)

    axes.set_xlim(0, span * 1.005)
    axes.set_ylim(bars.lanes - 0.4, -0.6)
    axes.set_xlabel("time since the first block started (µs)")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    few = range(bars.lanes) if bars.lanes <= 20 else None
    axes.yaxis.set_major_locator(FixedLocator(few) if few else MaxNLocator(16, integer=True))
    names = bars.placed.names
    if names is None:
        axes.set_ylabel("running together")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value + 1:.0f}")
    else:
        axes.set_ylabel("multiprocessor")
        known = dict(enumerate(names.tolist()))
        axes.yaxis.set_major_formatter(lambda value, _: str(known.get(round(value), "")))
    bar = figure.colorbar(colours, ax=axes, extend="both", fraction=0.03, pad=0.015, anchor=(0, 1))
    bar.set_label("block duration (µs)")
    if profile.tail_share:
        at = span * (1 - profile.tail_share)
        axes.axvline(at, color="black", linewidth=1, linestyle="--")
        axes.annotate(
            f"tail {profile.tail_share:.1%} ",
            (at, 1.0),
            xycoords=axes.get_xaxis_transform(),
            ha="right",
            va="bottom",
            fontsize=9,
        )
    files.add_heading(figure, title, _heading(bars, profile))
    return figure


def _heading(bars: _Bars, profile: BlockProfile) -> list[str]:
    cost = f"reading the clock changed the launch's time by {profile.perturbation:+.1%}"
    if profile.perturbed:
        cost = f"≈ {cost}, more than {PERTURBATION_LIMIT:.0%}"
    lines = [f"{profile.device} · {profile.blocks:,} blocks · {cost}"]
    if bars.placed.names is None:
        lines.append(
            "the compute unit of a block is not known: lanes only separate blocks that overlap"
        )
    idle = profile.multiprocessors - (profile.multiprocessors_used or profile.multiprocessors)
    if idle > 0:
        lines.append(
            f"{idle:,} of {profile.multiprocessors:,} multiprocessors ran no block: no lane"
        )
    return [*lines, *filter(None, [bars.left_out()])]


def _page(svg: bytes, profile: BlockProfile, title: str) -> bytes:
    """A self-contained page."""
    escape = html.escape

    def table(rows: list[tuple[str, ...]]) -> str:
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"

    picture = svg[svg.index(b"<svg") :].decode()
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>
body {{ font: 15px/1.5 sans-serif; margin: 1.5em auto; max-width: 1320px; padding: 0 1em;
        color: #111; background: #fff; }}
svg {{ width: 100%; height: auto; }}
#{_BARS} path:hover, #{_BARS} use:hover {{ stroke: #000 !important; stroke-width: 1 !important; }}
td {{ padding: 0 1.5em 0 0; vertical-align: top; }}
</style>
</head>
<body>
{picture}
<p>Point at a bar to see its block, its multiprocessor and its times.</p>
{table(list(words.facts(profile)))}
<h2>Length of the launch</h2>
{table([words.SPAN_TITLES, *words.spans(profile)])}
<p>{escape(words.explanation(profile))}</p>
</body>
</html>
"""
    return page.encode()


def _with_tooltips(svg: bytes, group_id: str, titles: list[str]) -> bytes:
    """The picture with a title in each shape of a group, which browsers show as a tooltip."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)  # noqa: S314 - matplotlib wrote it just now
    group = next(node for node in root.iter(f"{{{_SVG}}}g") if node.get("id") == group_id)
    shapes = [node for node in group.iter() if node.tag in (f"{{{_SVG}}}path", f"{{{_SVG}}}use")]
    inside = {id(node) for defs in group.iter(f"{{{_SVG}}}defs") for node in defs.iter()}
    for shape, text in zip((s for s in shapes if id(s) not in inside), titles, strict=True):
        ElementTree.SubElement(shape, f"{{{_SVG}}}title").text = text
    tooltipped: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return tooltipped
