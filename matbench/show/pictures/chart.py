"""The picture of speed and largest error over n: a row per precision, a line per kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from matbench.analysis import chart
from matbench.analysis.chart import At, Chart, Line
from matbench.errors import UsageError
from matbench.records.outcome import Outcome
from matbench.show import safe, units
from matbench.show.charts import kept, layout, style, text
from matbench.show.charts.filling import Box, filled
from matbench.show.pictures import canvas, files
from matbench.show.pictures.canvas import Panel

SUFFIXES = (".svg", ".png")
#: To be raised when the same lines are drawn differently.
_VERSION = 6
_WIDTH = 960
#: Room for the marks of a vertical axis, above a panel for its title, and between panels.
_LEFT, _TOP, _BOTTOM, _GAP = 52, 32, 28, 12
#: Height of the lines of a panel, by the number of precisions; names need more if there are many.
_HEIGHTS = {1: 300, 2: 200}
_LOW = 130
_NAME_SIZE = 11
#: From a line's end to its name, which has its mark before it.
_BEFORE_NAME = 26
#: How much wider text may be where Arial is missing: DejaVu Sans is.
_OTHER_FONTS = 1.15
#: Names that need more room than this put speed above error, rather than beside it.
_WIDEST_BESIDE = 200
#: Values beyond these are drawn there.
_LEAST, _MOST = 1e-100, 1e100
#: Errors that differ by less than this factor must not look far apart.
_LEAST_ERRORS = 10
#: The most room for names to the left of a panel.
_MOST_LEFT = 200
#: Room beside the first and the last size.
_MARGIN = 10
#: An interval is drawn where it is wider than this share of the median.
_WIDE = 0.02
#: So many awkward sizes get a panel.
_MOST_AWKWARD = 6


def draw(outcomes: Sequence[Outcome], path: Path, title: str) -> None:
    """Draw the measured cases into an SVG or PNG, without errors if none is above 0.

    `UsageError` if they cannot be drawn, or if the file cannot be written.
    """
    files.require(path, SUFFIXES)
    try:
        shown = chart.of(outcomes)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    sizes = shown.sizes
    if len(sizes) == 1:
        raise UsageError(
            f"{path}: a chart over n needs two or more sizes; these records have only {sizes[0]:,}"
        )
    drawing = _Drawing(shown)
    picture = canvas.encoded(
        files.suffix(path),
        drawing.panels(),
        title,
        _heading(shown),
        description=drawing.description(),
        metadata=digest(outcomes),
    )
    files.write(path, picture)


def digest(outcomes: Sequence[Outcome]) -> str:
    """A hash of what a chart of these shows, kept in the SVG; it does not depend on what draws."""
    shown = chart.of(outcomes)
    contents = (_VERSION, (shown.lines, shown.left_out), _heading(shown))
    return hashlib.sha256(repr(contents).encode()).hexdigest()


def _heading(shown: Chart) -> list[str]:
    """What all lines share, and what the chart does not show."""
    notes = ["each kernel at its fastest parameters"]
    if any(line.is_baseline for line in shown.lines):
        notes.append("dashed: a baseline")
    if any(line.has_claims for line in shown.lines):
        notes.append("hollow: with claims, so by weaker checks")
    if any(_is_wide(point) for line in shown.lines for point in line.points):
        notes.append(f"bars: intervals of the median wider than {_WIDE:.0%}")
    if not any(shown.errors):
        is_exact = 0.0 in shown.errors or shown.workload.element == "int32"
        notes.append("every result is exact" if is_exact else "errors are not known")
    elif 0.0 in shown.errors:
        notes.append("an error of 0 is drawn at the bottom edge")
    left_out = []
    if shown.left_out:
        cases = "1 case of another shape is"
        more = f"{shown.left_out} cases of other shapes are"
        left_out.append(f"{cases if shown.left_out == 1 else more} not shown")
    if (number := len(_awkward(shown)) - _MOST_AWKWARD) > 0:
        left_out.append(f"the {number} smallest awkward sizes are not shown")
    rows = [[shown.workload.title, *shown.shared], notes, left_out]
    return [" · ".join(row) for row in rows if row]


def _awkward(shown: Chart) -> list[tuple[int, int]]:
    """Awkward sizes, each with the one beside it."""
    found = {(p.n, p.beside) for line in shown.lines for p in line.points if p.beside is not None}
    return sorted(found)


def _is_wide(point: At) -> bool:
    return point.high - point.low > _WIDE * point.work_per_s


class _Drawing:
    """The panels of a chart, from top to bottom."""

    def __init__(self, shown: Chart) -> None:
        self.shown = shown
        self.specs = kept.specs()
        rates = [point.work_per_s for line in shown.lines for point in line.points]
        self.unit, _ = units.rate_column(rates, shown.workload.rate)
        self.scale = 1e12 if self.unit.startswith("T") else 1e9
        self.sizes = sorted({point.n for line in shown.lines for point in line.regular})
        self.by_precision: dict[str, list[Line]] = {}
        for line in shown.lines:
            self.by_precision.setdefault(line.precision, []).append(line)
        #: Colour and shape of each line, by its label.
        self.looks = {
            line.label: look
            for lines in self.by_precision.values()
            for line, look in zip(lines, style.looks([x.is_baseline for x in lines]), strict=True)
        }

    def panels(self) -> list[Panel]:
        """Speed beside error, or above it if names are long; then the awkward sizes."""
        groups = sorted(self.by_precision.items(), key=lambda group: -len(group[1]))
        rows = [self._curves(precision, lines) for precision, lines in groups]
        # One room for all names of a column, so that the sizes of its panels are aligned.
        rooms = [max(map(_name_width, curves)) for curves in zip_longest(*rows)]
        columns = len(rooms) if max(rooms) <= _WIDEST_BESIDE else 1
        width = _WIDTH / columns
        if columns == 1:
            rooms = [min(max(rooms), 0.45 * width)] * len(rooms)
        found: list[Panel] = []
        y = 0.0
        for curves in rows:
            names = max(len(curve.names) for curve in curves)
            height = max(_HEIGHTS.get(len(rows), _LOW), (names + 3) * layout.NAME_HEIGHT)
            for number, curve in enumerate(curves):
                box = Box(
                    width - _LEFT - rooms[number], height, _LEFT, rooms[number], _TOP, _BOTTOM
                )
                found.append(self._panel(curve, box, number % columns * width, y))
                if columns == 1 or number == len(curves) - 1:
                    y += box.outer[1] + _GAP
        return found + self._awkward_panels(y)

    def description(self) -> str:
        """What a screen reader says of the picture."""
        parts = []
        for precision, lines in self.by_precision.items():
            fastest = lines[0].points[-1]
            rate = f"{units.number(fastest.work_per_s / self.scale)} {self.unit}"
            parts.append(
                f"{self.unit} over n of {len(lines)} {precision} kernels, the fastest at "
                f"n = {fastest.n:,} {lines[0].label} with {rate}."
            )
        return " ".join([*_heading(self.shown), *parts])

    def _curves(self, precision: str, lines: Sequence[Line]) -> list[_Curve]:
        """Speed, and errors if there are any."""
        speed = _Curve(precision, f"{self.unit} over n")
        for line in lines:
            speed.add(line.label, [self._point(line, p) for p in line.regular])
        errors = _Curve(precision, "largest relative error over n", _LEAST_ERRORS)
        alike: dict[tuple[Any, ...], list[Line]] = {}
        for line in lines:
            key = tuple((p.n, units.error(p.error)) for p in line.regular if p.error is not None)
            if key:
                alike.setdefault(key, []).append(line)
        for first, *others in alike.values():
            name = f"{first.label} + {len(others)} alike" if others else first.label
            known = [p for p in first.regular if p.error is not None]
            errors.add(name, [self._point(first, p, error=True) for p in known])
        return [speed, errors] if errors.has_values else [speed]

    def _point(self, line: Line, point: At, error: bool = False) -> dict[str, Any]:
        value = point.error if error else point.work_per_s / self.scale
        if value:  # an axis can be too long
            value = min(max(value, _LEAST), _MOST)
        wide = _is_wide(point) and not error
        return {
            "kernel": safe.line(line.label),
            "n": point.n,
            "value": value,
            "low": point.low / self.scale if wide else value,
            "high": point.high / self.scale if wide else value,
            "is_baseline": line.is_baseline,
            **self._mark(line),
        }

    def _mark(self, line: Line) -> dict[str, str]:
        colour, shape = self.looks[line.label]
        fill = "transparent" if line.has_claims else colour
        return {"colour": colour, "shape": shape, "fill": fill}

    def _panel(self, curve: _Curve, box: Box, x: float, y: float) -> Panel:
        up, height = curve.domain(), box.height
        points = curve.drawn(up[0])
        ends = {name: rows[-1] for name, rows in points.items()}
        places = layout.labelled([end["value"] for end in ends.values()], up, height)
        room = (box.right - _BEFORE_NAME) / _OTHER_FONTS
        labels = [
            {
                **end,
                "label": text.shortened(name, room, _NAME_SIZE),
                "label_value": place,
            }
            for (name, end), place in zip(ends.items(), places, strict=True)
        ]
        # What stands out is drawn last, so above the rest.
        ordered = sorted(points.values(), key=lambda rows: rows[0]["colour"] != style.CONTEXT)
        datasets = {"points": [row for rows in ordered for row in rows], "labels": labels}
        spec = filled(
            self.specs["curve-log"],
            datasets,
            box,
            up=up,
            across=self._across(box.width),
            sizes=layout.size_ticks(self.sizes, box.width),
            ticks_up=layout.ticks(up, max(3, int(height / 24))),
        )
        return Panel(spec, x, y, curve.title, curve.note)

    def _across(self, width: float) -> layout.Domain:
        first, last = self.sizes[0], self.sizes[-1]
        margin = (last / first) ** (_MARGIN / (width - 2 * _MARGIN))
        return first / margin, last * margin

    def _awkward_panels(self, y: float) -> list[Panel]:
        """For each awkward size, the speed there relative to the size beside it."""
        rows: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for line in self.shown.lines:
            at = {point.n: point for point in line.points}
            for point in line.points:
                if point.beside is not None:
                    row = self._ratio(line, point, at[point.beside])
                    rows.setdefault((point.n, point.beside), []).append(row)
        last = _awkward(self.shown)[-_MOST_AWKWARD:]
        values = [row[end] for sizes in last for row in rows[sizes] for end in ("low", "high")]
        across = layout.extent([1.0, *values])
        columns = 2
        found: list[Panel] = []
        for number, (n, beside) in enumerate(last):
            names = [row["label"] for row in rows[n, beside]]
            left = min(max(text.width(name, _NAME_SIZE) for name in names) + 20, _MOST_LEFT)
            short = text.distinct(names, left - 14, _NAME_SIZE)
            points = [{**r, "label": s} for r, s in zip(rows[n, beside], short, strict=True)]
            width = _WIDTH / columns - left - 24
            box = Box(width, max(2, len(points)) * 15 + 6, left, 24, _TOP, _BOTTOM)
            spec = filled(
                self.specs["forest"],
                {"points": points, "same": [{"value": 1}]},
                box,
                across=across,
                ticks_across=layout.ticks(across, int(width / 45)),
            )
            note = f"speed relative to n = {beside:,}"
            panel = Panel(spec, number % columns * _WIDTH / columns, y, f"n = {n:,}", note)
            found.append(panel)
            if number % columns == columns - 1:
                y += max(panel.size[1] for panel in found[-columns:]) + _GAP
        return found

    def _ratio(self, line: Line, point: At, beside: At) -> dict[str, Any]:
        value = point.work_per_s / beside.work_per_s
        wide = _is_wide(point) or _is_wide(beside)
        return {
            "label": safe.line(line.label),
            "value": value,
            "low": point.low / beside.high if wide else value,
            "high": point.high / beside.low if wide else value,
            **self._mark(line),
        }


class _Curve:
    """The lines of a panel by their names, and what they are of."""

    def __init__(self, title: str, note: str, least: float = 1.25) -> None:
        self.title, self.note, self.least = title, note, least
        self.names: dict[str, list[dict[str, Any]]] = {}

    def add(self, name: str, points: Iterable[dict[str, Any]]) -> None:
        self.names[safe.line(name)] = list(points)

    @property
    def has_values(self) -> bool:
        return any(point["value"] for points in self.names.values() for point in points)

    def domain(self) -> layout.Domain:
        ends = ("low", "value", "high")
        points = [point for points in self.names.values() for point in points]
        return layout.extent((point[end] for point in points for end in ends), self.least)

    def drawn(self, bottom: float) -> dict[str, list[dict[str, Any]]]:
        """The points of each line; a value of 0 stands apart at the bottom edge."""
        return {
            name: [
                point
                if point["value"]
                else {
                    **point,
                    "kernel": f"{point['kernel']} {point['n']}",
                    **dict.fromkeys(("value", "low", "high"), bottom),
                }
                for point in points
            ]
            for name, points in self.names.items()
            if points
        }


def _name_width(curve: _Curve | None) -> float:
    """The room that the names beside the lines of a panel would like."""
    names = curve.names if curve is not None else ()
    widest = max((text.width(name, _NAME_SIZE) for name in names), default=0)
    return _OTHER_FONTS * widest + _BEFORE_NAME + 4
