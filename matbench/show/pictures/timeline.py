"""When each block of a launch ran, and on which multiprocessor, as SVG or PNG."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from matbench.errors import UsageError
from matbench.records.blocks import PERTURBATION_LIMIT, BlockProfile, Timeline
from matbench.show.charts import kept, timeline
from matbench.show.charts.filling import Box, filled
from matbench.show.pictures import canvas, files
from matbench.show.pictures.canvas import Panel

SUFFIXES = (".svg", ".png")
_WIDTH = 1000


def draw(profile: BlockProfile, path: Path, title: str) -> None:
    """Draw a lane per multiprocessor and a bar per block; the path's suffix chooses the format.

    Bars of an SVG have tooltips. `UsageError` if the blocks have no common clock, or if the file
    cannot be written.
    """
    files.require(path, SUFFIXES)
    found = profile.timeline
    if found is None:
        raise UsageError(
            f"{path}: the multiprocessors of {profile.device} share no clock, so the blocks cannot "
            "be drawn on one axis"
        )
    data, parameters, height = timeline.filling(found, profile)
    box = Box(_WIDTH, height, left=52, top=24, bottom=92)
    chart = filled(kept.specs()["timeline"], data, box, **parameters)
    kind = files.suffix(path)
    lines = [_cost(profile), " · ".join(timeline.notes(found, profile))]
    drawn = canvas.encoded(kind, [Panel(chart)], title, lines)
    if kind == "svg":
        drawn = _with_tooltips(drawn.decode(), _tooltips(found, profile)).encode()
    files.write(path, drawn)


def _cost(profile: BlockProfile) -> str:
    cost = f"reading the clock changed the launch's time by {profile.perturbation:+.1%}"
    if profile.perturbed:
        cost = f"≈ {cost}, more than {PERTURBATION_LIMIT:.0%}"
    return f"{profile.device} · {profile.blocks:,} blocks · {cost}"


def _tooltips(found: Timeline, profile: BlockProfile) -> Iterator[str]:
    """A line about each bar, in their order."""
    gx, gy, _ = profile.launch.grid
    names = found.multiprocessors
    for bar in found.bars:
        x, y, z = bar.block % gx, bar.block // gx % gy, bar.block // (gx * gy)
        where = "" if names is None else f" on multiprocessor {names[bar.lane]}"
        start, end = bar.start_ns / 1e3, bar.end_ns / 1e3
        yield (
            f"block ({x}, {y}, {z}){where}: {start:,.2f} to {end:,.2f} µs, "
            f"took {end - start:,.3f} µs"
        )


def _with_tooltips(svg: str, titles: Iterable[str]) -> str:
    """The picture with a title in each bar, which browsers show as a tooltip."""
    told = iter(titles)

    def titled(bar: re.Match[str]) -> str:
        return f"<path{bar[1]}><title>{html.escape(next(told))}</title></path>"

    before, group, rest = re.split('(<g class="mark-rect role-mark layer_1_marks")', svg)
    bars, end, after = rest.partition("</g>")
    bars = re.sub(r"<path([^>]*?)(?:/>|>\s*</path>)", titled, bars)
    return f'{before}{group} id="blocks"{bars}{end}{after}'
