"""Pictures: when blocks ran and where, where C is wrong, speed and error over n, and rooflines.

matplotlib draws them (the extra `plots`). Colours keep apart for colour-blind eyes, and whatever a
picture leaves out is said in it.
"""

from __future__ import annotations

import hashlib
import html
import importlib.util
import io
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.analysis import blocks
from matbench.analysis.blocks import BlockProfile, BlockSample, Placed
from matbench.analysis.roofline import Roofline
from matbench.errors import UsageError
from matbench.model import Outcome, Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIMELINE_SUFFIXES = (".svg", ".png", ".html")
ERROR_MAP_SUFFIXES = (".png", ".svg")
CHART_SUFFIXES = (".svg", ".png")

#: More bars than this, or more of them above each other, are thinned.
MOST_BARS = 10_000
MOST_ROWS = 600
#: An error map has at most so many cells a side; each shows the worst of its elements.
MOST_CELLS = 400
#: Up to so many wrong cells get a ring, for one of them alone is easily overlooked.
_MOST_RINGS = 40
#: The least error that is told apart, as a power of ten below the least wrong one.
_FLOOR = -4.0
_WIDTH_IN = 12.0
_DPI = 110
#: The same picture is the same bytes, whenever and with whatever release it was drawn.
_NO_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}
_SVG = "http://www.w3.org/2000/svg"
_BARS = "blocks"


def require(path: Path, suffixes: tuple[str, ...], inputs: Iterable[str] = ()) -> None:
    """`UsageError` when no picture could be written there, before anything is measured for it.

    Nor is one written over the files that it is made from.
    """
    for file in inputs:
        if path.exists() and Path(file).exists() and path.samefile(file):
            raise UsageError(f"{path}: is read for this picture; name another file to draw")
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{path}: a picture's name ends in {', '.join(suffixes)}")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: no folder {path.parent}; make it, or name another file")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError(f"{path}: pictures need matplotlib; pip install 'matbench-cuda[plots]'")


def unused(path: Path) -> Path:
    """The path, or the first of `NAME_2`, `NAME_3` … that nothing lies at."""
    numbered = (path.with_name(f"{path.stem}_{n}{path.suffix}") for n in itertools.count(2))
    return next(p for p in itertools.chain([path], numbered) if not p.exists())


# When blocks ran


def timeline(sample: BlockSample, profile: BlockProfile, path: Path, title: str) -> None:
    """One lane a multiprocessor, one bar a block; SVG, PNG, or a page of HTML by the path's suffix.

    Bars of an SVG, and so of a page, say more when they are pointed at. `UsageError` when this
    device tells too little to place the blocks, or when the file cannot be written.
    """
    require(path, TIMELINE_SUFFIXES)
    placed = blocks.place(sample, profile.device_kind)
    if placed is None:
        raise UsageError(
            f"{path}: {profile.device} tells no clock that its multiprocessors share, so its "
            "blocks cannot be drawn on one axis"
        )
    bars = _Bars(placed)
    figure = _timeline_figure(bars, profile, title)
    suffix = path.suffix.lower()
    if suffix == ".png":
        _write(path, _saved(figure, "png"))
        return
    svg = _with_tooltips(_saved(figure, "svg"), _BARS, bars.tooltips(profile))
    _write(path, svg if suffix == ".svg" else _page(svg, profile, title))


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
        """All blocks; or those in as few slots of each lane, or every so many-th of them."""
        slots = min(self.resident, max(1, MOST_ROWS // self.lanes))
        while slots > 1 and (self.slot < slots).sum() > MOST_BARS:
            slots -= 1
        drawn = np.flatnonzero(self.slot < slots)
        order = drawn[np.lexsort((self.start[drawn], self.lane[drawn]))]
        return order[:: -(-len(order) // MOST_BARS)], slots

    def left_out(self) -> str:
        """What is not drawn, in words; empty when all is."""
        if len(self.drawn) == len(self.start):
            return ""
        said = f"thinned: {len(self.drawn):,} of {len(self.start):,} blocks drawn"
        if self.slots < self.resident:
            said += f", {self.slots} of up to {self.resident} resident together"
        return f"{said}; grey where only others ran"

    def tooltips(self, profile: BlockProfile) -> list[str]:
        """A line about each bar, in the order in which they are drawn."""
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


def _timeline_figure(bars: _Bars, profile: BlockProfile, title: str) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize
    from matplotlib.ticker import FixedLocator, MaxNLocator, StrMethodFormatter

    lane_in = min(0.5, max(0.11, 6 / bars.lanes), 60 / bars.lanes)
    figure, axes = _figure(_WIDTH_IN, lane_in * bars.lanes + 2.2)
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
    _headed(figure, title, _timeline_words(bars, profile))
    return figure


def _timeline_words(bars: _Bars, profile: BlockProfile) -> list[str]:
    cost = f"the clock changed the launch's time by {profile.perturbation:+.1%}"
    if profile.perturbed:
        cost = f"≈ {cost}, more than {blocks.PERTURBATION_LIMIT:.0%}"
    words = [f"{profile.device} · {profile.blocks:,} blocks · {cost}"]
    if bars.placed.names is None:
        words.append(
            "which compute unit ran a block is not told: lanes keep apart what ran together"
        )
    idle = profile.multiprocessors - (profile.multiprocessors_used or profile.multiprocessors)
    if idle > 0:
        words.append(
            f"{idle:,} of {profile.multiprocessors:,} multiprocessors ran no block: no lane"
        )
    return [*words, *filter(None, [bars.left_out()])]


def _page(svg: bytes, profile: BlockProfile, title: str) -> bytes:
    """A page that needs nothing but itself."""
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
<p>Point at a bar to read its block, its multiprocessor and its times.</p>
{table(list(blocks.facts(profile)))}
<h2>How long the launch took</h2>
{table([("by", "ticks", "µs", "ratio to events"), *blocks.spans(profile)])}
<p>{escape(blocks.explanation(profile))}</p>
</body>
</html>
"""
    return page.encode()


# Where C is wrong


def error_map(
    C: npt.NDArray[np.float32],
    expected: npt.NDArray[np.floating],
    wrong: npt.NDArray[np.bool_],
    path: Path,
    *,
    bound: npt.NDArray[np.floating] | None = None,
    title: str = "",
) -> None:
    """The error of each element of C (M×N), blue where it is right, orange and up where not.

    Errors are shares of `bound`, the error that rounding allows each; without one C must equal
    `expected` to the last bit, and errors are absolute. `UsageError` when it cannot be written.
    """
    require(path, ERROR_MAP_SUFFIXES)
    from matplotlib.colors import LinearSegmentedColormap, Normalize, TwoSlopeNorm
    from matplotlib.patches import Patch
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator

    step = max(1, -(-max(C.shape) // MOST_CELLS))
    worst, bad = _worst(C, expected, wrong, bound, step)
    missing = bad & ~np.isfinite(worst)
    powers, edge = _powers(worst, bad & ~missing, exact=bound is None)
    top = float(np.max(powers[~missing], initial=edge + 1))
    blues, oranges = ["#f2f6fa", "#2a6fb0"], ["#fdb35a", "#7a1c00"]
    shades = oranges if bound is None else [*blues, *oranges]
    places = [0.0, 1.0] if bound is None else [0.0, 0.5, 0.5, 1.0]
    shaded = LinearSegmentedColormap.from_list("error", list(zip(places, shades, strict=True)))
    colours = shaded.with_extremes(under=blues[0], bad="black")

    tall = C.shape[0] / C.shape[1]
    figure, axes = _figure(9.0, 1.8 + 6.4 * min(1.0, max(tall, 0.35)))
    image = axes.imshow(
        np.ma.masked_where(missing, powers),
        cmap=colours,
        norm=TwoSlopeNorm(edge, edge + _FLOOR, top) if bound is not None else Normalize(edge, top),
        extent=(-0.5, C.shape[1] - 0.5, C.shape[0] - 0.5, -0.5),
        interpolation="nearest",
        aspect="equal" if 1 / 8 <= tall <= 8 else "auto",
    )
    cells = np.argwhere(bad)
    if len(cells) <= _MOST_RINGS:
        rows, columns = (cells * step + (step - 1) / 2).T
        ring = {"s": 130, "facecolors": "none", "edgecolors": "black", "clip_on": False}
        rings = axes.scatter(columns, rows, **ring)
        rings.set_path_effects([withStroke(linewidth=3.5, foreground="white")])
    axes.set_xlabel("column of C")
    axes.set_ylabel("row of C")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    scale = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    scale.locator = MaxNLocator(8, integer=True)
    scale.ax.yaxis.set_major_formatter(lambda value, _: f"$10^{{{value:g}}}$")
    scale.set_label(
        "|C − expected| as a share of what rounding allows: above 1 is wrong"
        if bound is not None
        else "|C − expected|, which must be 0"
    )
    if missing.any():
        black = Patch(color="black", label="not a number, or infinite")
        axes.legend(handles=[black], loc="upper right", bbox_to_anchor=(1, 1.07), frameon=False)
    words = [f"{int(wrong.sum()):,} of {wrong.size:,} elements wrong"]
    if step > 1:
        words.append(f"each cell is the worst of {step} × {step} elements")
    _headed(figure, title, [" · ".join(words)])
    _write(path, _saved(figure, path.suffix.lower()[1:]))


def _worst(
    C: npt.NDArray[np.float32],
    expected: npt.NDArray[np.floating],
    wrong: npt.NDArray[np.bool_],
    bound: npt.NDArray[np.floating] | None,
    step: int,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The largest error of each cell of `step` × `step` elements, and whether any is wrong."""
    rows, columns = (-(-side // step) for side in C.shape)
    worst, bad = np.zeros((rows, columns)), np.zeros((rows, columns), bool)
    starts = np.arange(0, C.shape[1], step)
    for row in range(rows):  # band by band: C may be most of the memory there is
        band = slice(row * step, (row + 1) * step)
        with np.errstate(all="ignore"):
            error = np.abs(C[band].astype(np.float64) - expected[band])
            if bound is not None:
                error = np.where(error == 0, 0.0, error / bound[band])
        error[~np.isfinite(error)] = np.inf
        worst[row] = np.maximum.reduceat(error.max(axis=0), starts)
        bad[row] = np.logical_or.reduceat(wrong[band].any(axis=0), starts)
    return worst, bad


def _powers(
    worst: npt.NDArray[np.float64], bad: npt.NDArray[np.bool_], *, exact: bool
) -> tuple[npt.NDArray[np.float64], float]:
    """Errors as powers of ten, and the one that right cells stay below and wrong ones above."""
    with np.errstate(divide="ignore"):
        powers = np.log10(worst)
    edge = float(np.floor(np.min(powers[bad], initial=0.0))) - 1 if exact else 0.0
    above = np.maximum(powers, edge + 1e-6)
    return np.where(bad, above, np.clip(powers, edge + _FLOOR, edge - 1e-6)), edge


# Speed and error over n

#: Seen on a light page and on a dark one, by all eyes (M. Okabe and K. Ito, 2008).
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#999999")
_MARKERS = "os^DvPX<>*p"
_INK = "#808080"
#: Raised when the same lines are drawn otherwise.
_CHART_VERSION = 3
#: More sizes than this along the axis are not named.
_MOST_SIZES = 14
#: From here on powers of two are written as such.
_LARGE_SIZE = 2**17
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Line(NamedTuple):
    """One kernel at its fastest parameters: sizes, and its speed and largest error at each.

    Speed is 10⁹ of what the workload counts it in.
    """

    label: str
    is_baseline: bool
    n: tuple[int, ...]
    giga_per_s: tuple[float, ...]
    error: tuple[float | None, ...]


def lines(outcomes: Iterable[Outcome]) -> tuple[list[Line], int]:
    """What a chart shows, the fastest at its largest size first; and how many it has no place for.

    A size without an n, such as 8192x64x8192, has none. Devices, ways of timing and kinds of inputs
    keep apart.
    """
    timed = [o for o in outcomes if o.status == "measured" and o.median_ns]
    placed = _placed(timed)
    several = [len(set(found)) > 1 for found in zip(*map(_circumstances, placed), strict=True)]
    best: dict[str, dict[int, Outcome]] = {}
    for outcome in placed:
        told = zip(_circumstances(outcome), several, strict=True)
        label = " · ".join([outcome.kernel, *(word for word, needed in told if needed)])
        at = best.setdefault(label, {})
        known = at.get(outcome.problem.N)
        if known is None or (outcome.median_ns or 0) < (known.median_ns or 0):
            at[outcome.problem.N] = outcome
    found = []
    for label, at in best.items():
        ordered = [at[n] for n in sorted(at)]
        found.append(
            Line(
                label=label,
                is_baseline=ordered[0].group == "baseline",
                n=tuple(sorted(at)),
                giga_per_s=tuple(
                    workloads.of(o.problem).work(o.problem) / (o.median_ns or 1) for o in ordered
                ),
                error=tuple(o.max_rel_err for o in ordered),
            )
        )
    found.sort(key=lambda line: (-line.n[-1], -line.giga_per_s[-1], line.label))
    return found, len(timed) - len(placed)


def _placed(timed: Iterable[Outcome]) -> list[Outcome]:
    """Those whose size is one n."""
    return [o for o in timed if o.problem.workload != workloads.DEFAULT or _is_square(o.problem)]


def _is_square(problem: Problem) -> bool:
    return problem.M == problem.N == problem.K


def _circumstances(outcome: Outcome) -> tuple[str, str, str]:
    """The device, how it was timed, and on what."""
    return outcome.device, f"{outcome.timing_mode} samples", f"{outcome.problem.inputs} inputs"


def _said(outcomes: Iterable[Outcome], drawn: Sequence[Line], left_out: int) -> list[str]:
    """What must be known to read a chart: what all lines share, and what it does not show."""
    placed = _placed(o for o in outcomes if o.status == "measured" and o.median_ns)
    _, *shared = zip(*map(_circumstances, placed), strict=True)
    errors = [error for line in drawn for error in line.error]
    rows = [
        [*(found[0] for found in shared if len(set(found)) == 1)],
        ["each kernel at its fastest parameters"],
    ]
    if any(line.is_baseline for line in drawn):
        rows[1].append("dashed: a baseline")
    if not any(errors):
        is_exact = 0.0 in errors or workloads.of(placed[0].problem).element == "int32"
        rows[1].append("every result is exact" if is_exact else "errors are not known")
    elif 0.0 in errors:
        rows[1].append("an error of 0 is drawn at the bottom edge")
    if left_out:
        cases = (
            "1 case of another shape is"
            if left_out == 1
            else f"{left_out} cases of other shapes are"
        )
        rows.append([f"{cases} not shown"])
    return [" · ".join(row) for row in rows if row]


def chart(outcomes: Sequence[Outcome], path: Path, title: str) -> None:
    """Speed over n, and the largest relative error over n, one line a kernel; SVG or PNG.

    There is no picture of errors where none is above 0.
    """
    require(path, CHART_SUFFIXES)
    found = list(dict.fromkeys(outcome.problem.workload for outcome in outcomes))
    if len(found) > 1:
        raise UsageError(f"{path}: one workload a chart, not {' and '.join(found)}")
    drawn, left_out = lines(outcomes)
    if not drawn:
        raise UsageError(f"{path}: nothing to draw: no case with an n was measured")
    sizes = sorted({n for line in drawn for n in line.n})
    if len(sizes) == 1:
        raise UsageError(
            f"{path}: a chart over n needs two sizes or more, these records have {sizes[0]:,} alone"
        )
    workload = workloads.get(found[0])
    with_errors = any(error for line in drawn for error in line.error)
    figure, speed = _figure(_WIDTH_IN, 8.0 if with_errors else 5.5)
    panels = [speed]
    if with_errors:
        speed.remove()
        panels = [*figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))]
    for index, line in enumerate(drawn):
        style = {
            "color": _COLOURS[index % len(_COLOURS)],
            "marker": _MARKERS[index % len(_MARKERS)],
            "linestyle": "--" if line.is_baseline else "-",
            "linewidth": 1.4,
            "markersize": 5,
        }
        panels[0].plot(line.n, line.giga_per_s, label=line.label, **style)
        if with_errors:
            _draw_errors(panels[1], line, style)
    panels[0].set_ylabel(f"G{workload.rate}")
    _mark_values(panels[0], [rate for line in drawn for rate in line.giga_per_s], _plain_number)
    if with_errors:
        panels[1].set_ylabel("largest relative error")
        _mark_values(panels[1], [e for line in drawn for e in line.error if e], _scientific)
    large = sizes[-1] >= _LARGE_SIZE
    panels[-1].set_xlabel(f"n of the {workload.title}")
    for axes in panels:
        axes.set_xscale("log", base=2)
        _mark(axes.xaxis, _size_marks(sizes), _power_of_two if large else str)
        axes.grid(color=_INK, alpha=0.3, linewidth=0.6)
        axes.set_facecolor("none")
        axes.tick_params(colors=_INK, which="both")
        for part in (axes.xaxis.label, axes.yaxis.label):
            part.set_color(_INK)
        for spine in axes.spines.values():
            spine.set_color(_INK)
    figure.align_ylabels()
    figure.legend(loc="outside right upper", frameon=False, labelcolor=_INK, fontsize=9)
    _headed(figure, title, _said(outcomes, drawn, left_out))
    for text in figure.texts:
        text.set_color(_INK)
    suffix = path.suffix.lower()[1:]
    figure.set_facecolor("none" if suffix == "svg" else "white")
    _write(path, _saved(figure, suffix, digest(outcomes)))


def _draw_errors(axes: Any, line: Line, style: dict[str, Any]) -> None:
    """Errors over n; those of 0, which a logarithm has no place for, at the bottom edge."""
    known = [(n, e or np.nan) for n, e in zip(line.n, line.error, strict=True) if e is not None]
    zeros = [n for n, e in zip(line.n, line.error, strict=True) if e == 0]
    if known:
        axes.plot(*zip(*known, strict=True), **style)
    if zeros:
        at_the_edge = {"transform": axes.get_xaxis_transform(), "clip_on": False, "zorder": 3}
        axes.plot(zeros, [0.0] * len(zeros), **{**style, "linestyle": "none"}, **at_the_edge)


def _mark_values(axes: Any, values: Sequence[float], word: Callable[[float], str]) -> None:
    axes.set_yscale("log")
    low, high = min(values), max(values)
    margin = max((high / low) ** 0.05, 1.1)
    axes.set_ylim(low / margin, high * margin)
    _mark(axes.yaxis, _value_marks(low / margin, high * margin), word)


def _mark(axis: Any, marks: Sequence[Any], word: Callable[[Any], str]) -> None:
    axis.set_ticks(marks, [word(mark) for mark in marks])
    axis.set_ticks([], minor=True)


def _size_marks(sizes: Sequence[int]) -> list[int]:
    """The sizes where they are few and apart; else powers of two, as many as can be read."""
    apart = math.log2(sizes[-1] / sizes[0]) / _MOST_SIZES
    if all(math.log2(after / before) >= apart for before, after in itertools.pairwise(sizes)):
        return list(sizes)
    first, last = (sizes[0] - 1).bit_length(), sizes[-1].bit_length() - 1
    every = max(1, -(-(last - first + 1) // _MOST_SIZES))
    powers = [2**power for power in range(first, last + 1) if not power % every]
    return powers if len(powers) > 1 else [sizes[0], sizes[-1]]


def _power_of_two(size: int) -> str:
    power = size.bit_length() - 1
    return f"2{str(power).translate(_SUPERSCRIPTS)}" if size == 2**power else f"{size:,}"


def _value_marks(low: float, high: float) -> list[float]:
    """Round values from `low` to `high`: three at least, however near those are to each other."""
    from matplotlib.ticker import MaxNLocator

    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = max(1, len(powers) // 8)
    for digits in ((1,), (1, 3), (1, 2, 5)):
        marks = [digit * 10.0**power for power in powers[::every] for digit in digits]
        marks = [mark for mark in marks if low <= mark <= high]
        if len(marks) > 2:
            return marks
    return [float(mark) for mark in MaxNLocator(6).tick_values(low, high) if low <= mark <= high]


def _plain_number(value: float) -> str:
    return f"{value:,.10g}"


def _scientific(value: float) -> str:
    if 0.1 <= value < 1e4:
        return f"{value:,.4g}"
    digits, _, power = f"{value:.2e}".partition("e")
    told = f"10{str(int(power)).translate(_SUPERSCRIPTS)}"
    digits = digits.rstrip("0").rstrip(".")
    return told if digits == "1" else f"{digits}·{told}"


def digest(outcomes: Sequence[Outcome]) -> str:
    """What stands in a chart of these: the same for the same figures, whatever release draws."""
    drawn = lines(outcomes)
    told = (_CHART_VERSION, drawn, _said(outcomes, *drawn))
    return hashlib.sha256(repr(told).encode()).hexdigest()


# Files


def _figure(width_in: float, height_in: float) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), dpi=_DPI, layout="constrained")
    return figure, figure.add_subplot()


def _headed(figure: Figure, title: str, lines: list[str]) -> None:
    """A title and what must be known to read the picture, above it."""
    text = "\n".join([title, *lines] if title else lines)
    figure.suptitle(text, x=0.01, ha="left", fontsize=11, parse_math=False)


# Rooflines


def roofline(roof: Roofline, path: Path, title: str) -> None:
    """Measured limits and the points held against them, both axes logarithmic."""
    require(path, CHART_SUFFIXES)
    from matplotlib.figure import Figure

    (left, right), (bottom, top) = roof.bounds()
    figure = Figure(figsize=(_WIDTH_IN * 0.7, _WIDTH_IN * 0.45), dpi=_DPI, layout="constrained")
    axes = figure.subplots()
    corners = [left, min(max(roof.ridge, left), right), right]
    axes.plot(corners, [roof.allowed(x) / 1e9 for x in corners], color="black", linewidth=1.5)
    for point, shape, colour in zip(roof.points, "Ds^", _COLOURS, strict=False):
        is_measured = point is roof.points[-1]
        axes.plot(
            [point.intensity], [point.flop_per_s / 1e9], linestyle="none",
            marker="o" if is_measured else shape, markersize=9, color=colour,
            markerfacecolor=colour if is_measured else "none", label=point.label,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom / 1e9, top / 1e9))
    axes.set(xlabel="operations per byte of global memory", ylabel="GFLOP/s")
    limits = f"{roof.bytes_per_s / 1e9:,.0f} GB/s copied, {roof.flop_per_s / 1e9:,.0f} GFLOP/s"
    axes.set_title(f"{title}\nlimits as measured: {limits} of multiply-adds", fontsize=10)
    axes.grid(which="major", linewidth=0.4)
    axes.legend(loc="lower right", fontsize=9)
    _write(path, _saved(figure, path.suffix.lower().removeprefix(".")))


def _saved(figure: Figure, kind: str, description: str | None = None) -> bytes:
    import matplotlib

    out = io.BytesIO()
    # Text stays text, and names within the picture do not change.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "matbench"}):
        metadata = {**_NO_METADATA[kind], **({"Description": description} if description else {})}
        figure.savefig(out, format=kind, metadata=metadata)
    return out.getvalue()


def _with_tooltips(svg: bytes, group_id: str, titles: list[str]) -> bytes:
    """The picture with a title in each shape of a group, which browsers show under the pointer."""
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


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
