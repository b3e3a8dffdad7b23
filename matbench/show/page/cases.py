"""The cases of a page: the rows of its table, and the points of its charts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from matbench import workloads
from matbench.analysis import chart, ranking
from matbench.analysis.ranking import DeviceRanking, Ranked
from matbench.model import WORD_BYTES, DeviceInfo, Problem, settings_of
from matbench.records.explanation import Limits
from matbench.records.outcome import Outcome
from matbench.show import patterns, safe, units
from matbench.show.charts import definitions, style
from matbench.show.charts.definitions import Spec
from matbench.show.charts.style import Look
from matbench.show.outcomes import size_label


class Column(msgspec.Struct, frozen=True):
    """A column of the table of all results; CSV calls it by its `key`."""

    title: str
    key: str
    is_number: bool = False
    is_shown: bool = False


COLUMNS = (
    Column("kernel", "kernel", is_shown=True),
    Column("parameters", "params", is_shown=True),
    Column("size", "size", is_number=True, is_shown=True),
    Column("status", "status", is_shown=True),
    Column("time", "median_ns", is_number=True, is_shown=True),
    Column("±", "spread", is_number=True, is_shown=True),
    Column("hot", "hot_median_ns", is_number=True),
    Column("rate", "work_per_s", is_number=True, is_shown=True),
    Column("% of limit", "of_limit", is_number=True, is_shown=True),
    Column("% of cuBLAS", "of_cublas", is_number=True, is_shown=True),
    Column("max rel err", "max_rel_err", is_number=True, is_shown=True),
    Column("avg rel err", "avg_rel_err", is_number=True),
    Column("of bound", "bound_ratio", is_number=True),
    Column("precision", "precision"),
    Column("occupancy", "occupancy", is_number=True),
    Column("registers", "registers", is_number=True),
    Column("per block", "block_median_ns", is_number=True),
    Column("imbalance", "block_imbalance", is_number=True),
    Column("samples", "samples", is_number=True),
    Column("timing", "timing_mode"),
    Column("inputs", "inputs"),
    Column("device", "device"),
    Column("remarks", "remarks", is_shown=True),
)


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One case; `text` and `numbers` have a value for each of `COLUMNS`.

    `rate` is in the unit of its view, and `low` and `high` are its interval as factors of it. A
    size that is one number is `n`; it is `awkward` if it is near another, `beside`.
    """

    view: int
    kernel: str
    size: str
    precision: str
    status: str
    text: list[str]
    numbers: list[float | None]
    n: int | None = None
    beside: int | None = None
    is_baseline: bool = False
    has_claims: bool = False
    is_fastest: bool = False
    rate: float | None = None
    low: float = 1.0
    high: float = 1.0
    of_limit: float | None = None
    of_cublas: float | None = None
    error: float | None = None
    intensity: float | None = None
    imbalance: float | None = None


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Cases that can stand in one chart: one device, workload, kind of samples and of inputs.

    `roofline` is the chart without its points; None if no limits are known.
    """

    label: str
    unit: str
    scale: float
    roofline: Spec | None = None
    roofline_note: str = ""


class Found(msgspec.Struct, frozen=True):
    """What a page shows of outcomes; `outcomes` belong to the cases one by one.

    `looks` has each kernel, the fastest first.
    """

    views: list[View]
    cases: list[Case]
    outcomes: list[Outcome]
    looks: dict[str, Look]


_Ranked = tuple[DeviceRanking, Problem, Ranked]
#: The table, the kind of samples, the inputs, alpha, beta and batch.
_Key = tuple[int, str | None, str, float, float, int]


def of(
    outcomes: Sequence[Outcome], devices: Sequence[DeviceInfo], limits: Mapping[str, Limits]
) -> Found:
    """Every case with its rank among its like, GPUs first, the smallest sizes first.

    `limits` are those that were measured by themselves, by device.
    """
    outcomes = list(map(patterns.noted, outcomes))
    tables = ranking.tables(outcomes, devices)
    fastest = set(map(id, ranking.fastest(outcomes)))
    keys: dict[_Key, list[_Ranked]] = {}
    untimed: list[tuple[_Key, _Ranked]] = []
    for number, table in enumerate(tables):
        for problem in table.problems:
            for row in problem.rows:
                found, p = (table, problem.problem, row), problem.problem
                key: _Key = (number, row.outcome.mode, p.inputs, p.alpha, p.beta, p.batch)
                if ranking.time_ns(row.outcome) is None:
                    untimed.append((key, found))
                else:
                    keys.setdefault(key, []).append(found)
    for own, found in untimed:  # with those that were timed in the same circumstances
        alike = (other for other in keys if (other[0], *other[2:]) == (own[0], *own[2:]))
        keys.setdefault(next(alike, own), []).append(found)
    ordered = sorted(keys, key=lambda key: (key[0], -len({p for _, p, _ in keys[key]})))
    looks = _looks([row for rows in keys.values() for _, _, row in rows])
    views: list[View] = []
    cases: list[Case] = []
    shown: list[Outcome] = []
    for number, key in enumerate(ordered):
        rows = keys[key]
        measured = limits.get(rows[0][2].outcome.case.device)
        views.append(_view(rows, _label(key, ordered, rows[0]), measured, looks))
        cases += _cases(number, views[-1], rows, fastest)
        shown += [row.outcome for _, _, row in rows]
    return Found(views, cases, shown, looks)


def _looks(rows: Sequence[Ranked]) -> dict[str, Look]:
    """How each kernel looks in every chart."""
    rates: dict[tuple[str, bool], float] = {}
    for row in rows:
        case = row.outcome.case
        key = safe.line(case.kernel), case.group == "baseline"
        rates[key] = max(rates.get(key, 0.0), row.work_per_s or 0.0)
    return style.looks(sorted(rates, key=lambda key: -rates[key]))


def _label(key: _Key, keys: Sequence[_Key], found: _Ranked) -> str:
    """The device and workload, and whatever else tells this view from others."""
    table, problem, row = found
    case = row.outcome.case
    words = [safe.line(case.device) or "unknown device", table.workload.name]
    own = [f"{key[1] or 'no'} samples", f"{problem.inputs} inputs"]
    own += [f"{name} = {getattr(problem, name):g}" for name in ("alpha", "beta", "batch")]
    for place, word in enumerate(own, 1):
        if len({other[place] for other in keys if other[0] == key[0]}) > 1:
            words.append(word)
    return " · ".join(words)


def _view(
    rows: Sequence[_Ranked], label: str, measured: Limits | None, looks: Mapping[str, Look]
) -> View:
    workload = rows[0][0].workload
    unit, _ = units.rate_column((row.work_per_s for _, _, row in rows), workload.rate)
    copies = [o.copy_bytes_per_s for _, _, row in rows if (o := row.outcome).copy_bytes_per_s]
    peaks: dict[str, float] = {}
    shown: set[str] = set()
    intensities: list[float] = []
    if workload.rate == "FLOP/s":
        for _, _, row in rows:
            if row.work_per_s and (intensity := _intensity(row.outcome)):
                intensities.append(intensity)
                shown.add(name := _arithmetic(row.outcome))
                if row.of_limit:
                    peaks[name] = max(peaks.get(name, 0.0), row.work_per_s / row.of_limit)
    if measured is not None:
        copies.append(measured.copy_bytes_per_s)
        peaks["float32"] = measured.fma_flop_per_s

    scale = 1e12 if unit.startswith("T") else 1e9
    unlimited = sorted(shown - peaks.keys())
    roofs = (
        _roofs(max(copies), peaks, intensities, measured)
        if copies and peaks and intensities
        else []
    )
    rows_of_chart = [
        {"label": label, "intensity": x, "value": rate / scale} for label, x, rate in roofs
    ]
    return View(
        label=label,
        unit=unit,
        scale=scale,
        roofline=definitions.roofline(looks, rows_of_chart, unit) if roofs else None,
        roofline_note=f"no limit is known of {', '.join(unlimited)}" if unlimited else "",
    )


def _roofs(
    bytes_per_s: float,
    peaks: Mapping[str, float],
    intensities: Sequence[float],
    measured: Limits | None,
) -> list[tuple[str, float, float]]:
    """Both ends of each limit: what it is of, operations per byte, and operations per second."""
    ridges = [peak / bytes_per_s for peak in peaks.values()]
    left, right = min([*ridges, *intensities]) / 2, max([*ridges, *intensities]) * 4
    top = max(peaks.values())
    copy = f"copy {units.bandwidth(bytes_per_s)}"
    found = [(copy, left, left * bytes_per_s), (copy, top / bytes_per_s, top)]
    for name, peak in sorted(peaks.items(), key=lambda item: item[1]):
        source = "measured" if measured is not None and name == "float32" else "at the clock held"
        label = f"{name} {units.rates([peak], 'FLOP/s')(peak)}, {source}"
        found += [(label, peak / bytes_per_s, peak), (label, right, peak)]
    return found


def _arithmetic(outcome: Outcome) -> str:
    """What a case multiplies with: `float32`, or `3 × tf32`."""
    own = outcome.case.arithmetic
    if own is None:
        return outcome.case.claims.precision
    return own.precision if own.products == 1 else f"{own.products} × {own.precision}"


def _cases(view: int, shared: View, rows: Sequence[_Ranked], fastest: set[int]) -> Iterator[Case]:
    lengths = {
        n
        for _, problem, row in rows
        if row.rivals and (n := chart.single_size(problem)) is not None
    }
    by_problem: dict[Problem, list[Ranked]] = {}
    for _, problem, row in rows:
        by_problem.setdefault(problem, []).append(row)
    times = {
        problem: units.durations(ranking.time_ns(row.outcome) for row in found)
        for problem, found in by_problem.items()
    }
    for _, problem, row in rows:
        outcome, n = row.outcome, chart.single_size(problem)
        case, median = outcome.case, ranking.time_ns(outcome)
        interval = outcome.timing.interval_ns if outcome.timing is not None else None
        low, high = interval or (median, median)
        text, numbers = _cells(row, problem, times[problem], shared)
        yield Case(
            view=view,
            kernel=safe.line(case.kernel),
            size=size_label(problem),
            n=n,
            beside=chart.beside(n, lengths) if n is not None else None,
            precision=case.claims.precision,
            status=outcome.status,
            is_baseline=case.group == "baseline",
            has_claims=bool(row.claims),
            is_fastest=id(outcome) in fastest,
            rate=_short(row.work_per_s / shared.scale) if row.work_per_s else None,
            low=_short(median / high) or 1.0 if median and high else 1.0,
            high=_short(median / low) or 1.0 if median and low else 1.0,
            of_limit=_short(row.of_limit),
            of_cublas=_short(row.of_cublas),
            error=_short(outcome.max_rel_err),
            intensity=_short(_intensity(outcome)),
            imbalance=_short(outcome.blocks.imbalance) if outcome.blocks else None,
            text=text,
            numbers=numbers,
        )


def _intensity(outcome: Outcome) -> float | None:
    """Operations per byte of the least traffic."""
    case, problem = outcome.case, outcome.case.problem
    workload = workloads.of(problem)
    read = sum(workload.words(name, problem) for name in workload.reads)
    written = workload.words("C", problem) * (2 if problem.beta else 1)
    least_bytes = WORD_BYTES[case.storage] * read + WORD_BYTES[case.claims.result] * written
    return workload.operations(problem) / (least_bytes * problem.batch) or None


def _cells(
    row: Ranked, problem: Problem, time: units.Formatter, view: View
) -> tuple[list[str], list[float | None]]:
    """Text and number of each column; a number is unknown where the text says it all."""
    outcome, case = row.outcome, row.outcome.case
    accuracy, block, hot = outcome.accuracy, outcome.blocks, row.hot
    resources = outcome.build.resources if outcome.build is not None else None
    occupancy = outcome.build.occupancy if outcome.build is not None else None
    median, count = ranking.time_ns(outcome), len(outcome.samples_ns)
    rate = f"{units.number(row.work_per_s / view.scale)} {view.unit}" if row.work_per_s else ""
    claims = f"claims: {'; '.join(row.claims)}" if row.claims else ""
    remarks = [outcome.reason or "", claims, *row.notes]
    cells: list[tuple[str, float | None]] = [
        (safe.line(case.kernel), None),
        (safe.line(settings_of(case.params)), None),
        (size_label(problem), float(workloads.of(problem).work(problem))),
        (outcome.status, None),
        (time(median), median),
        (units.percent(row.spread), row.spread),
        (units.duration(hot.median_ns) if hot else "", hot.median_ns if hot else None),
        (rate, row.work_per_s),
        (units.share(row.of_limit), row.of_limit),
        (units.share(row.of_cublas), row.of_cublas),
        (units.error(outcome.max_rel_err), outcome.max_rel_err),
        (units.error(accuracy.avg_rel_err), accuracy.avg_rel_err) if accuracy else ("", None),
        (units.percent(accuracy.bound_ratio), accuracy.bound_ratio) if accuracy else ("", None),
        (case.claims.precision, None),
        (units.percent(occupancy), occupancy),
        (units.count(resources.registers), resources.registers) if resources else ("", None),
        (units.duration(block.median_ns), block.median_ns) if block else ("", None),
        (units.percent(block.imbalance), block.imbalance) if block else ("", None),
        (units.count(count or None), float(count)),
        (outcome.mode or "", None),
        (case.problem.inputs, None),
        (safe.line(case.device), None),
        (" · ".join(safe.lines(remark) for remark in remarks if remark), None),
    ]
    text = ["" if shown == units.UNKNOWN else shown for shown, _ in cells]
    return text, [_short(number) for _, number in cells]


def _short(value: float | None) -> float | None:
    """Seven digits: more than any figure has, in less than half the room."""
    return float(f"{value:.7g}") if value is not None and math.isfinite(value) else None
