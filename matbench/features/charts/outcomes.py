"""The charts of outcomes: speed and error over n, speed at other sizes, and where C is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from matbench import workloads
from matbench.features.charts import definitions, error_map_chart, style
from matbench.features.charts.cases import Found, PageRow
from matbench.features.charts.definitions import Chart
from matbench.model import settings_of
from matbench.records.outcome import ErrorCells, Outcome
from matbench.show import units
from matbench.show.outcomes import size_label
from matbench.show.table import grouped

#: Values beyond these are drawn there: an axis can be too long.
_LEAST, _MOST = 1e-100, 1e100
#: The longer side of an error map, in pixels, and how many maps a picture has.
_MAP_SIDE, _MOST_MAPS = 300, 6
#: Pixels across a chart over n.
_PANEL = 350


_Row = tuple[PageRow, Outcome]


def charts(found: Found) -> Iterator[Chart]:
    """Each kernel at its fastest parameters: for each view and precision a line over n, and bars at
    the other sizes. Where nothing was timed, which cases are right.

    Baselines of the CPU are a view of their own, but stand with the kernels that ran on it.
    """
    every = zip(found.cases, found.outcomes, strict=True)
    views = [(view.label, view.unit) for view in found.views]
    for (label, unit), rows in grouped(every, lambda row: views[row[0].view]).items():
        where = label if len(set(views)) > 1 else ""
        timed = [row for row in rows if row[0].is_fastest and row[0].rate]
        groups = grouped(timed, lambda row: row[1].case.claims.precision)
        for precision, own in sorted(groups.items(), key=lambda group: -len(group[1])):
            yield from _of_precision(precision, own, unit, where)
        if not timed:
            cells = [
                {"size": size_label(o.case.problem),
                 "label": f"{o.case.kernel} {settings_of(o.case.params)}".strip(),
                 "status": "right" if o.status == "measured" else o.status}
                for _, o in rows
            ]  # fmt: skip
            yield Chart("Which cases are right", where, definitions.statuses(cells))


def _of_precision(precision: str, rows: Sequence[_Row], unit: str, where: str) -> Iterator[Chart]:
    """Speed and error over n; awkward sizes would make cliffs there, so they are among the bars."""
    rows = sorted(rows, key=lambda row: (-(row[0].n or 0), -(row[0].rate or 0)))
    looks = style.looks(dict.fromkeys((o.case.kernel, case.is_baseline) for case, o in rows))
    lines = [row for row in rows if row[0].n is not None and row[0].beside is None]
    if len({case.n for case, _ in lines}) > 1:
        # What is fastest is drawn last, so above the rest.
        order = list(looks)
        lines.sort(key=lambda row: (-order.index(row[1].case.kernel), row[0].n))
        panels = [
            (unit, definitions.quantity("value", close=True), 1.25,
             [_point(row, row[0].rate or 0, row[0].low, row[0].high) for row in lines]),
            ("largest relative error",
             definitions.quantity("value", form=definitions.SCIENTIFIC, close=True),
             definitions.LEAST_ERRORS,
             [_point(row, row[1].max_rel_err) for row in lines if row[1].max_rel_err]),
        ]  # fmt: skip
        on_curve = {row[1].case.kernel for row in lines}
        own = {name: look for name, look in looks.items() if name in on_curve}
        place = {"width": _PANEL, "height": max(240, 16 * len(own))}  # that of the legend
        drawn = [
            {**definitions.curve(own, y, least=least, legend=True), **place,
             "title": {"text": f"{title} over n", "fontSize": 12}, "data": {"values": points}}
            for title, y, least, points in panels
            if points
        ]  # fmt: skip
        yield Chart(precision, where, {"hconcat": drawn})
        rows = [row for row in rows if row[0].n is None or row[0].beside is not None]
    rates = {(o.case.kernel, case.n): case.rate for case, o in [*rows, *lines]}
    sizes = grouped(reversed(rows), lambda row: size_label(row[1].case.problem))
    for size, group in sizes.items():
        beside = group[0][0].beside
        points = [
            _point(row, row[0].rate or 0, row[0].low, row[0].high)
            | {"beside": (beside and rates.get((row[1].case.kernel, beside))) or row[0].rate,
               "figure": units.number(row[0].rate)}
            for row in sorted(group, key=lambda row: -(row[0].rate or 0))
        ]  # fmt: skip
        notes = [where, f"tick: at {beside:,}" if beside else ""]
        spec = {**definitions.bars(looks), "data": {"values": points}}
        spec["height"] = 10 + 20 * len(points)
        title = f"{precision}: {unit} at {size}"
        yield Chart(title, " · ".join(filter(None, notes)), spec, full=False)


def _point(row: _Row, value: float, low: float = 1.0, high: float = 1.0) -> dict[str, Any]:
    case, outcome = row
    kept = {"value": value, "low": value * low, "high": value * high}
    return {
        "kernel": outcome.case.kernel, "n": case.n, "is_baseline": case.is_baseline,
        "hollow": case.has_claims, **{k: min(max(v, _LEAST), _MOST) for k, v in kept.items()},
    }  # fmt: skip


def error_maps(outcomes: Iterable[Outcome]) -> list[Chart]:
    """Where C is wrong, of the first cases that are."""
    wrong = [(o, o.error_map) for o in outcomes if isinstance(o.error_map, ErrorCells)]
    return [
        error_map_chart.chart(cells, o.case.label, _MAP_SIDE, (o.reason or "").partition("\n")[0])
        for o, cells in wrong[:_MOST_MAPS]
    ]


def remarks(found: Found) -> list[str]:
    """What all lines share, and how to read them."""
    timed = [row for row in zip(found.cases, found.outcomes, strict=True)
             if row[0].is_fastest and row[0].rate]  # fmt: skip
    if not timed:
        return []
    outcomes = [outcome for _, outcome in timed]
    titles = [workloads.workload_of(o.case.problem).title for o in outcomes]
    modes = [f"{o.mode} samples" for o in outcomes]
    inputs = [f"{o.case.problem.inputs} inputs" for o in outcomes]
    shared = [own[0] for own in (titles, modes, inputs) if len({*own}) == 1]
    exact = [outcome.max_rel_err == 0 for outcome in outcomes]
    notes = {
        "each kernel at its fastest parameters": True,
        "dashed: a baseline": any(case.is_baseline for case, _ in timed),
        "hollow: with claims, so by weaker checks": any(case.has_claims for case, _ in timed),
        "bars: intervals of the median": any(case.low < case.high for case, _ in timed),
        "every result is exact": all(exact),
        "errors of 0 are not shown": any(exact) and not all(exact),
    }
    return [" · ".join(shared), " · ".join(note for note, is_true in notes.items() if is_true)]
