"""The cases of pages and pictures: rows of a table, points of charts, and all samples."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from matbench import workloads
from matbench.analysis import ranking
from matbench.analysis.ranking import Ranked
from matbench.features.charts import definitions, style
from matbench.features.charts.definitions import Spec
from matbench.features.charts.style import Look
from matbench.model import WORD_BYTES, DeviceInfo, Problem
from matbench.records.outcome import Outcome
from matbench.show import outcomes as table
from matbench.show import units

#: A size this close to one with more factors of 2 is awkward: 1000 beside 1024.
_NEAR = 0.1
#: The conditions that are drawn below samples.
_TOLD = ("sm_mhz", "power_w", "temperature_c")
COLUMNS = sorted((column for column in table.COLUMNS if column.page), key=lambda c: c.page)


class DeviceLimits(Protocol):
    """What was measured of a device by itself."""

    copy_bytes_per_s: float
    fma_flop_per_s: float


class Series(msgspec.Struct, frozen=True):
    """Samples of one kind, in microseconds, and the conditions while they were taken."""

    mode: str
    values: list[float]
    conditions: dict[str, list[float | None]]
    throttled: list[str]


class PageRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One case; `text` and `numbers` have a value for each of `COLUMNS`.

    `rate` is in the unit of its view, and `low` and `high` are its interval as factors of it. A
    size that is one number is `n`; it may be near another, `beside`. No kernel is known to be
    faster than one that `leads`, and none is both faster and more accurate than one `on_front`.
    """

    view: int
    text: list[str]
    numbers: list[float | None]
    n: int | None = None
    beside: int | None = None
    is_baseline: bool = False
    has_claims: bool = False
    is_fastest: bool = False
    leads: bool = False
    on_front: bool = False
    rate: float | None = None
    low: float = 1.0
    high: float = 1.0
    intensity: float | None = None
    series: list[Series] = []


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Cases that can stand in one chart: one device, workload, kind of samples and of inputs.

    `roofline` is the chart without its points; None if no limits are known.
    """

    label: str
    unit: str
    scale: float
    roofline: Spec | None = None
    roofline_note: str = ""


class RankedView(NamedTuple):
    """The problems of a view, the least work first, with their ranked cases.

    `baselines`: they are the CPU baselines of a sweep on another device.
    """

    baselines: bool
    problems: dict[Problem, list[Ranked]]

    @property
    def rows(self) -> list[Ranked]:
        return [row for rows in self.problems.values() for row in rows]

    @property
    def outcomes(self) -> list[Outcome]:
        return [row.outcome for row in self.rows]

    @property
    def workload(self) -> str:
        return next(iter(self.problems)).workload

    def kernels(self, problem: Problem) -> int:
        """How many kernels have a time for a problem."""
        return len({row.outcome.case.kernel for row in self.problems[problem] if row.rivals})

    @property
    def most_kernels(self) -> int:
        return max(map(self.kernels, self.problems))


class Found(msgspec.Struct, frozen=True):
    """What a page shows of outcomes; `ranked` belong to the views one by one, and `outcomes` to the
    cases. The most complete view comes first.

    `looks` has each kernel, the fastest first.
    """

    views: list[View]
    ranked: list[RankedView]
    cases: list[PageRow]
    outcomes: list[Outcome]
    looks: dict[str, Look]


#: The table, the kind of samples, the inputs, alpha, beta and batch.
_Key = tuple[int, str | None, str, float, float, int]


def make_cases(
    outcomes: Sequence[Outcome], devices: Sequence[DeviceInfo], limits: Mapping[str, DeviceLimits]
) -> Found:
    """Every case with its rank among its like: views, and the smallest sizes of each first.

    `limits` are those that were measured by themselves, by device.
    """
    fastest = set(map(id, ranking.fastest(outcomes)))
    groups = _groups(outcomes, devices)
    # By how many times there are, of kernels for problems.
    ordered = sorted(groups, key=lambda key: -sum(map(groups[key].kernels, groups[key].problems)))
    shown = [row for key in ordered for row in groups[key].rows]
    rates: dict[tuple[str, bool], float] = {}
    for row in shown:
        line = row.outcome.case.kernel, row.outcome.case.group == "baseline"
        rates[line] = max(rates.get(line, 0.0), row.work_per_s or 0.0)
    looks = style.looks(sorted(rates, key=lambda line: -rates[line]))
    found = Found([], [groups[key] for key in ordered], [], [row.outcome for row in shown], looks)
    for number, (key, group) in enumerate(zip(ordered, found.ranked, strict=True)):
        first = group.rows[0]
        measured = limits.get(first.outcome.case.device)
        found.views.append(_view(group.rows, _label(key, ordered, first), measured, looks))
        found.cases.extend(_cases(number, found.views[-1], group.problems, fastest))
    return found


def _groups(outcomes: Sequence[Outcome], devices: Sequence[DeviceInfo]) -> dict[_Key, RankedView]:
    """The cases of each view, GPUs first; those without a time stand with those of the first that
    has one."""
    groups: dict[_Key, RankedView] = {}
    for number, ranked in enumerate(ranking.tables(outcomes, devices)):
        usual = next((row.outcome.mode for row in ranked.rows if row.rivals), None)
        for p, rows in ranked.problems.items():
            for row in rows:
                mode = row.outcome.mode if row.rivals else usual
                key = number, mode, p.inputs, p.alpha, p.beta, p.batch
                group = groups.setdefault(key, RankedView(ranked.baselines, {}))
                group.problems.setdefault(p, []).append(row)
    return groups


def _label(key: _Key, keys: Sequence[_Key], row: Ranked) -> str:
    """The device and workload, and whatever else tells this view from others."""
    case = row.outcome.case
    device = re.sub(r"(GPU-[0-9a-f]{8})-[0-9a-f-]{27}", r"\1…", case.device)
    words = [device or "unknown device", case.problem.workload]
    traits = [f"{key[1] or 'no'} samples", f"{key[2]} inputs"]
    traits += [f"{name} = {key[3 + i]:g}" for i, name in enumerate(("alpha", "beta", "batch"))]
    for place, word in enumerate(traits, 1):
        if len({other[place] for other in keys if other[0] == key[0]}) > 1:
            words.append(word)
    return " · ".join(words)


def _view(
    rows: Sequence[Ranked], label: str, measured: DeviceLimits | None, looks: Mapping[str, Look]
) -> View:
    rate = workloads.workload_of(rows[0].outcome.case.problem).rate
    unit, _ = units.rate_column((row.work_per_s for row in rows), rate)
    scale = 1e12 if unit.startswith("T") else 1e9
    copies = [c for row in rows if (c := row.outcome.copy_bytes_per_s)]
    peaks: dict[str, float] = {}
    placed = [row for row in rows if rate == "FLOP/s" and row.work_per_s]
    intensities = [i for row in placed if (i := _intensity(row.outcome))]
    for row in placed:
        if row.of_limit and row.work_per_s:
            name = _arithmetic(row.outcome)
            peaks[name] = max(peaks.get(name, 0.0), row.work_per_s / row.of_limit)
    if measured is not None:
        copies.append(measured.copy_bytes_per_s)
        peaks["float32"] = measured.fma_flop_per_s
    unlimited = sorted({_arithmetic(row.outcome) for row in placed} - peaks.keys())
    named = {}
    for name, peak in peaks.items():
        source = "measured" if measured is not None and name == "float32" else "at the clock held"
        named[f"{name} {units.rates([peak], 'FLOP/s')(peak)}, {source}"] = peak
    roofline = None
    if copies and peaks and intensities:
        roofs = definitions.roofs(max(copies), named, intensities, scale)
        roofline = definitions.roofline(looks, roofs, unit)
    note = f"no limit is known of {', '.join(unlimited)}" if unlimited else ""
    return View(label=label, unit=unit, scale=scale, roofline=roofline, roofline_note=note)


def _arithmetic(outcome: Outcome) -> str:
    """What a case multiplies with: `float32`, or `3 × tf32`."""
    by = outcome.case.arithmetic
    if by is None:
        return outcome.case.claims.precision
    return by.precision if by.products == 1 else f"{by.products} × {by.precision}"


def _cases(
    number: int, view: View, problems: Mapping[Problem, Sequence[Ranked]], fastest: set[int]
) -> Iterator[PageRow]:
    def rate(per_s: float | None) -> str:
        return f"{units.number(per_s / view.scale)} {view.unit}" if per_s else units.UNKNOWN

    columns = table.in_unit(view.unit, rate, COLUMNS)
    ns = {p: p.N if p.size.isdecimal() else None for p in problems}
    lengths = {n for p, rows in problems.items() if (n := ns[p]) and any(r.rivals for r in rows)}
    for problem, rows in problems.items():
        n, front = ns[problem], _front(rows)
        texts = zip(*(column.texts(rows) for column in columns), strict=True)
        for row, text in zip(rows, texts, strict=True):
            outcome, median = row.outcome, ranking.time_ns(row.outcome)
            low, high = (outcome.timing and outcome.timing.interval_ns) or (median, median)
            yield PageRow(
                view=number,
                n=n,
                beside=near(n, lengths) if n is not None else None,
                is_baseline=outcome.case.group == "baseline",
                has_claims=bool(row.claims),
                is_fastest=id(outcome) in fastest,
                leads=row.leads,
                on_front=id(outcome) in front,
                rate=_short(row.work_per_s / view.scale) if row.work_per_s else None,
                low=_short(median / high) or 1.0 if median and high else 1.0,
                high=_short(median / low) or 1.0 if median and low else 1.0,
                intensity=_short(_intensity(outcome)),
                series=_series(outcome),
                text=["" if cell == units.UNKNOWN else cell for cell in text],
                numbers=_numbers(row),
            )


def _front(rows: Iterable[Ranked]) -> set[int]:
    """The outcomes, by their `id`, that no other is both faster and more accurate than."""
    outcomes = [row.outcome for row in rows if row.outcome.max_rel_err is not None]
    timed = [(ns, o.max_rel_err, id(o)) for o in outcomes if (ns := ranking.time_ns(o)) is not None]
    front: set[int] = set()
    least = math.inf
    for _, error, number in sorted(timed, key=lambda one: one[:2]):
        if error is not None and error < least:
            front.add(number)
            least = error
    return front


def near(n: int, others: Iterable[int]) -> int | None:
    """The nearest size that has more factors of 2, if one is near."""
    found = [m for m in others if m & -m > n & -n and abs(m - n) <= _NEAR * m]
    return min(found, key=lambda m: abs(m - n), default=None)


def _series(outcome: Outcome) -> list[Series]:
    """Cold before hot."""
    series = []
    for mode, timing in (("cold", outcome.cold), ("hot", outcome.hot)):
        if timing is not None and timing.samples_ns:
            moments = timing.conditions[1:]
            told = {name: [getattr(moment, name) for moment in moments] for name in _TOLD}
            throttled = sorted({reason for moment in moments for reason in moment.throttled})
            us = [float(f"{ns / 1e3:.5g}") for ns in timing.samples_ns]
            series.append(Series(mode, us, told, throttled))
    return series


def _intensity(outcome: Outcome) -> float | None:
    """Operations per byte of the least traffic."""
    case, problem = outcome.case, outcome.case.problem
    workload = workloads.workload_of(problem)
    kinds = WORD_BYTES[case.storage], WORD_BYTES[case.claims.result]
    return workload.operations(problem) / workload.least_bytes(problem, *kinds) or None


def _numbers(row: Ranked) -> list[float | None]:
    """The number of each column, as CSV has it; a size is its work."""
    numbers = (column.at(row) if column.right else None for column in COLUMNS)
    return [_short(n) if isinstance(n, int | float) else None for n in numbers]


def _short(value: float | None) -> float | None:
    """Seven digits: more than any figure has, in less than half the room."""
    return float(f"{value:.7g}") if value is not None and math.isfinite(value) else None
