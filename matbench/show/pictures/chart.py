"""The picture of speed and largest error over n, one line per kernel."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from matbench.analysis import chart
from matbench.analysis.chart import Chart, Line
from matbench.errors import UsageError
from matbench.records.outcome import Outcome
from matbench.show.pictures import files
from matbench.show.units import superscript

SUFFIXES = (".svg", ".png")
#: To be raised when the same lines are drawn differently.
_VERSION = 4
_MARKERS = "os^DvPX<>*p"
_INK = "#808080"
#: With more sizes than this, not all are labelled on the axis.
_MOST_SIZES = 14
#: From here on powers of two are written as 2ⁿ.
_LARGE_SIZE = 2**17


def draw(outcomes: Sequence[Outcome], path: Path, title: str) -> None:
    """Draw the measured cases into an SVG or PNG, without errors if none is above 0.

    `UsageError` if they cannot be drawn, or if the file cannot be written.
    """
    files.require(path, SUFFIXES)
    try:
        shown = chart.of(outcomes)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    sizes, with_errors = shown.sizes, any(shown.errors)
    if len(sizes) == 1:
        raise UsageError(
            f"{path}: a chart over n needs two or more sizes; these records have only {sizes[0]:,}"
        )
    figure, panels = (
        files.figure(files.WIDTH_IN, 8.0, (3, 2))
        if with_errors
        else files.figure(files.WIDTH_IN, 5.5)
    )
    for index, line in enumerate(shown.lines):
        style = {
            "color": files.COLOURS[index % len(files.COLOURS)],
            "marker": _MARKERS[index % len(_MARKERS)],
            "linestyle": "--" if line.is_baseline else "-",
            "linewidth": 1.4,
            "markersize": 5,
        }
        if line.has_claims:
            style["markerfacecolor"] = "none"
        panels[0].plot(line.n, line.giga_per_s, label=line.label, **style)
        if with_errors:
            _draw_errors(panels[1], line, style)
    panels[0].set_ylabel(f"G{shown.workload.rate}")
    rates = [rate for line in shown.lines for rate in line.giga_per_s]
    _mark_values(panels[0], rates, lambda rate: f"{rate:,.10g}")
    if with_errors:
        panels[1].set_ylabel("largest relative error")
        _mark_values(panels[1], [error for error in shown.errors if error], _scientific)
    large = sizes[-1] >= _LARGE_SIZE
    panels[-1].set_xlabel(f"n of the {shown.workload.title}")
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
    files.add_heading(figure, title, _heading(shown))
    for text in figure.texts:
        text.set_color(_INK)
    kind = files.suffix(path)
    figure.set_facecolor("none" if kind == "svg" else "white")
    files.write(path, files.encoded(figure, kind, digest(outcomes)))


def digest(outcomes: Sequence[Outcome]) -> str:
    """A hash of what a chart of these shows, kept in the SVG; it does not depend on matplotlib."""
    shown = chart.of(outcomes)
    contents = (_VERSION, (shown.lines, shown.left_out), _heading(shown))
    return hashlib.sha256(repr(contents).encode()).hexdigest()


def _heading(shown: Chart) -> list[str]:
    """What all lines share, and what the chart does not show."""
    rows = [shown.shared, ["each kernel at its fastest parameters"]]
    if any(line.is_baseline for line in shown.lines):
        rows[1].append("dashed: a baseline")
    if any(line.has_claims for line in shown.lines):
        rows[1].append("hollow: with claims, so by weaker checks")
    if not any(shown.errors):
        is_exact = 0.0 in shown.errors or shown.workload.element == "int32"
        rows[1].append("every result is exact" if is_exact else "errors are not known")
    elif 0.0 in shown.errors:
        rows[1].append("an error of 0 is drawn at the bottom edge")
    if shown.left_out:
        cases = (
            "1 case of another shape is"
            if shown.left_out == 1
            else f"{shown.left_out} cases of other shapes are"
        )
        rows.append([f"{cases} not shown"])
    return [" · ".join(row) for row in rows if row]


def _draw_errors(axes: Any, line: Line, style: dict[str, Any]) -> None:
    """Errors over n; those of 0, which have no logarithm, at the bottom edge."""
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
    """The sizes if they are few and far enough apart; else as many powers of two as are legible."""
    apart = math.log2(sizes[-1] / sizes[0]) / _MOST_SIZES
    if all(math.log2(after / before) >= apart for before, after in itertools.pairwise(sizes)):
        return list(sizes)
    first, last = (sizes[0] - 1).bit_length(), sizes[-1].bit_length() - 1
    every = max(1, -(-(last - first + 1) // _MOST_SIZES))
    powers = [2**power for power in range(first, last + 1) if not power % every]
    return powers if len(powers) > 1 else [sizes[0], sizes[-1]]


def _power_of_two(size: int) -> str:
    power = size.bit_length() - 1
    return f"2{superscript(power)}" if size == 2**power else f"{size:,}"


def _value_marks(low: float, high: float) -> list[float]:
    """At least three round values from `low` to `high`, however close together these are."""
    from matplotlib.ticker import MaxNLocator

    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = max(1, len(powers) // 8)
    for digits in ((1,), (1, 3), (1, 2, 5)):
        marks = [digit * 10.0**power for power in powers[::every] for digit in digits]
        marks = [mark for mark in marks if low <= mark <= high]
        if len(marks) > 2:
            return marks
    return [float(mark) for mark in MaxNLocator(6).tick_values(low, high) if low <= mark <= high]


def _scientific(value: float) -> str:
    if 0.1 <= value < 1e4:
        return f"{value:,.4g}"
    digits, _, power = f"{value:.2e}".partition("e")
    told = f"10{superscript(int(power))}"
    digits = digits.rstrip("0").rstrip(".")
    return told if digits == "1" else f"{digits}·{told}"
