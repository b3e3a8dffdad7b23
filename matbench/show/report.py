"""Records as tables: in a terminal, as text, as CSV and as JSON; prints nothing itself.

Outcomes become one `Report` of sections, groups, rows and columns; every format is made from it.
Only what was measured is ranked, and only against what ran on the same device at the same size.
"""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal, TypeGuard

import msgspec
from rich import box
from rich.bar import Bar
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from tabulate import tabulate, tabulate_formats

from matbench import workloads
from matbench.analysis import blocks, statistics
from matbench.measure import limits
from matbench.model import (
    DeviceInfo,
    Environment,
    Launch,
    Outcome,
    Precision,
    TimingMode,
    settings_of,
)
from matbench.records import results
from matbench.workloads import Workload

# The markup of these has no known way to hold any text whatever, and a record is not trusted.
_NO_ESCAPE = {
    "asciidoc", "jira", "latex_raw", "mediawiki", "moinmoin", "textile", "unsafehtml", "youtrack",
}  # fmt: skip
#: What `--format` takes.
FORMATS: tuple[str, ...] = (
    "rich", "csv", "json", *(name for name in tabulate_formats if name not in _NO_ESCAPE),
)  # fmt: skip

UNKNOWN = "–"
CPU_TIMINGS = "CPU timings: measured on a processor, not on a GPU"
BEST = "★"
PERTURBED = "≈"


class ComparisonRow(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate against its baseline at one size; `ratio` is candidate time / baseline time.

    `baseline` and `candidate` name the two sides: kernels, or files when one `kernel` is compared
    between them. Without a `verdict`, `reason` says why there is none.
    """

    size: str
    baseline: str
    candidate: str
    kernel: str = ""
    baseline_params: dict[str, int] = {}
    candidate_params: dict[str, int] = {}
    backend: str
    device: str
    device_kind: Literal["gpu", "cpu"]
    timing_mode: TimingMode | None = None
    baseline_median_ns: float | None = None
    baseline_max_rel_err: float | None = None
    candidate_median_ns: float | None = None
    candidate_max_rel_err: float | None = None
    ratio: float | None = None
    ratio_interval: tuple[float, float] | None = None
    p_value: float | None = None
    samples: tuple[int, int] = (0, 0)
    verdict: statistics.Verdict | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def ratio_low(self) -> float | None:
        return self.ratio_interval[0] if self.ratio_interval else None

    @property
    def ratio_high(self) -> float | None:
        return self.ratio_interval[1] if self.ratio_interval else None

    @property
    def baseline_samples(self) -> int:
        return self.samples[0]

    @property
    def candidate_samples(self) -> int:
        return self.samples[1]


class TuningRow(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate of `matbench tune`; `ratio` is its time over that of the default, by turns.

    `median_ratio` is that of their medians, which were not taken at the same time. `round` counts
    how often it went on, `place` says whether it won, and `searched` of how many.
    """

    outcome: Outcome
    ratio: float | None
    ratio_interval: tuple[float, float] | None
    median_ratio: float | None
    round: int
    place: str
    searched: str

    @property
    def ratio_low(self) -> float | None:
        return self.ratio_interval[0] if self.ratio_interval else None

    @property
    def ratio_high(self) -> float | None:
        return self.ratio_interval[1] if self.ratio_interval else None

    @property
    def samples(self) -> int:
        return len(self.outcome.samples_ns)

    def record(self) -> Outcome:
        """The outcome as any record, with what tuning made of it; a look's notes say so."""
        known = {name: getattr(self.outcome, name) for name in Outcome.__struct_fields__}
        if self.outcome.interval_ns is None:
            known["notes"] += (f"looked at by tuning with {self.samples} samples, no more",)
        more = {name: getattr(self, name) for name in self.__struct_fields__ if name != "outcome"}
        return _TunedOutcome(**known, tuning=more)


class _TunedOutcome(Outcome, frozen=True, tag="outcome", tag_field="type", kw_only=True):
    tuning: dict[str, Any]


# The common model


@dataclass(frozen=True)
class Column:
    """A column for people; on a narrow terminal those with the highest `drop` go first."""

    title: str
    right: bool = False
    drop: int = 0


@dataclass(frozen=True)
class Row:
    """Cells in the columns' order, then what the last column and the footnotes say."""

    cells: tuple[str, ...]
    status: str
    reason: str = ""
    notes: tuple[str, ...] = ()
    style: str = ""
    best: bool = False


@dataclass(frozen=True)
class Group:
    """Rows that rank among each other: those of one size, which is the title."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Section:
    """What ran on one device; `legend` says what marks in its cells mean."""

    heading: tuple[str, ...]
    columns: tuple[Column, ...]
    last_title: str
    groups: tuple[Group, ...]
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows]


def _section(
    heading: tuple[str, ...],
    columns: tuple[Column, ...],
    last_title: str,
    groups: tuple[Group, ...],
    legend: tuple[tuple[str, str], ...] = (),
) -> Section:
    """A section without the columns that nothing is known for."""
    rows = [row for group in groups for row in group.rows]
    kept = [i for i in range(len(columns)) if any(row.cells[i] != UNKNOWN for row in rows)]
    return Section(
        heading,
        tuple(columns[i] for i in kept),
        last_title,
        tuple(
            Group(
                group.title,
                tuple(replace(row, cells=tuple(row.cells[i] for i in kept)) for row in group.rows),
            )
            for group in groups
        ),
        legend,
    )


@dataclass(frozen=True)
class Report:
    """A table in every form: `sections` and `footer` for people, the rest for programs.

    `fields` are paths to attributes of `rows`.
    """

    sections: tuple[Section, ...]
    footer: str
    fields: tuple[str, ...]
    rows: tuple[object, ...]
    json: Callable[[], str]


# Numbers and words


def _unit_format(times_ns: Iterable[float | None]) -> Callable[[float | None], str]:
    """One unit and one number of decimals for all: 3 or 4 significant digits of the smallest.

    Microseconds are the least unit, so that the times of small sizes have the same one.
    """
    known = [time for time in times_ns if time is not None and 0 < time < math.inf]
    if not known:
        return lambda _: UNKNOWN
    least = min(known)
    units = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
    scale, unit = next((pair for pair in units if least >= pair[0]), units[-1])
    decimals = _decimals(least / scale, 4 if max(known) < 100 * least else 3)
    if least < scale:
        # To a picosecond at most: a record may say anything.
        decimals = 2 - math.floor(math.log10(max(least, 0.001) / scale))
    return lambda time: f"{time / scale:.{decimals}f} {unit}" if _is_known(time) else UNKNOWN


def duration(time_ns: float) -> str:
    """One time by itself, to four digits."""
    return _unit_format([time_ns])(time_ns)


def _is_known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _decimals(value: float, digits: int) -> int:
    """How many decimals show `value`, which is at least 1, to that many digits."""
    return max(0, digits - len(str(int(value))))


def _percent(share: float | None) -> str:
    if not _is_known(share):
        return UNKNOWN
    if share >= 10:
        return _times(share)
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def _share(share: float | None) -> str:
    """To a tenth of a percent, for it is held against 100%."""
    return f"{share:.1%}" if _is_known(share) else UNKNOWN


def _error(error: float | None) -> str:
    if not _is_known(error):
        return UNKNOWN
    return re.sub(r"e([+-])0*(\d+)$", r"e\1\2", f"{error:.1e}").replace("e+", "e") if error else "0"


def _probability(p: float | None) -> str:
    return f"{p:.3f}" if _is_known(p) and p >= 0.001 else _error(p)


def _times(factor: float | None) -> str:
    if not _is_known(factor):
        return UNKNOWN
    if factor < 100:
        return f"{factor:.2f}×"
    return f"{factor:,.0f}×" if factor < 1e6 else f"{factor:.1e}×"


def _ratio(ratio: float | None) -> str:
    return f"{ratio:.3f}" if _is_known(ratio) else UNKNOWN


# Records may come from anywhere: no character of theirs moves a cursor or turns text around.
_HOSTILE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


_LONGEST_CELL = 300


def _lines(text: str) -> str:
    """Text of a record, harmless to a terminal; its lines stay."""
    return _HOSTILE.sub("\ufffd", text.expandtabs(4).replace("\r\n", "\n")).strip()


def _line(text: str) -> str:
    """The same on one line, as long as a cell may be: all rows are as wide as the widest."""
    line = " ".join(_lines(text).split())
    return line if len(line) <= _LONGEST_CELL else line[: _LONGEST_CELL - 1] + "…"


def _agreed(texts: Iterable[str]) -> str:
    return " / ".join(dict.fromkeys(text for text in map(_line, texts) if text))


# Outcomes


@dataclass(frozen=True)
class _Ranked:
    """An outcome with what it is among its like; None where it does not rank."""

    outcome: Outcome
    spread: float | None = None
    giga_per_s: float | None = None
    times_slowest: float | None = None
    of_cublas: float | None = None
    of_limit: float | None = None
    best: bool = False

    @property
    def interval_low_ns(self) -> float | None:
        return self.outcome.interval_ns[0] if self.outcome.interval_ns else None

    @property
    def interval_high_ns(self) -> float | None:
        return self.outcome.interval_ns[1] if self.outcome.interval_ns else None

    @property
    def samples(self) -> int:
        return len(self.outcome.samples_ns)

    @property
    def gflops(self) -> float | None:
        return self.giga_per_s if self._rate == "FLOP/s" else None

    @property
    def gbytes_per_s(self) -> float | None:
        return self.giga_per_s if self._rate == "B/s" else None

    @property
    def _rate(self) -> str:
        return workloads.of(self.outcome.problem).rate


def _spread(outcome: Outcome) -> float | None:
    """Half the median's interval as a share of it; without one, half the samples' middle half."""
    if outcome.interval_ns is not None and outcome.median_ns:
        low, high = outcome.interval_ns
        return (high - low) / 2 / outcome.median_ns
    return statistics.spread(outcome.samples_ns)


_STATUS_ORDER = {"measured": 0, "wrong": 1, "failed": 2, "skipped": 3}
_STATUS_STYLE = {"measured": "green", "wrong": "bold red", "failed": "red", "skipped": "yellow"}


def _time(outcome: Outcome) -> float | None:
    """The time that ranks: a case that was not right, or has no time, has none."""
    time = outcome.median_ns
    return time if outcome.status == "measured" and time is not None and time > 0 else None


#: What of cuBLAS a kernel is held against, by its workload and the precision of its inputs.
_CUBLAS: dict[tuple[str, Precision], str] = {
    ("matmul", "float32"): "cublas",
    ("matmul", "tf32"): "cublas-tf32",
    ("matmul", "bfloat16"): "cublas-bf16",
    ("dot", "float32"): "cublas-dot",
}


def _of_limit(outcome: Outcome, per_s: float, info: DeviceInfo | None) -> float | None:
    """Its speed as a share of what the device can do at best, as far as that is known.

    Bytes are held against the copy that was measured on the device, unless its cache held them all:
    that is faster than any copy of more. Operations are held against what the unit for the declared
    precision does at the clock that was held while they were sampled.
    """
    workload = workloads.of(outcome.problem)
    if workload.rate == "B/s":
        moved = workload.least_bytes(outcome.problem)
        if info is not None and limits.held_by_cache(info, moved, outcome.timing_mode):
            return None
        return per_s / outcome.copy_bytes_per_s if outcome.copy_bytes_per_s else None
    clocks = [moment.sm_mhz for moment in outcome.conditions[1:] if moment.sm_mhz]
    held = sum(clocks) / len(clocks) if clocks else outcome.sm_mhz
    most = limits.of_clock(info, held, outcome.precision) if info is not None else None
    return per_s / most if most else None


def _ranked(outcomes: Iterable[Outcome], infos: Sequence[DeviceInfo] = ()) -> list[_Ranked]:
    """The outcomes of one device and size, fastest first; cold and hot samples rank apart."""
    found = sorted(
        outcomes, key=lambda o: (_STATUS_ORDER[o.status], _time(o) is None, _time(o) or 0.0)
    )
    extremes: dict[str | None, tuple[float, float]] = {}
    for outcome in found:
        time = _time(outcome)
        if time is not None:
            least, _ = extremes.setdefault(outcome.timing_mode, (time, time))
            extremes[outcome.timing_mode] = least, time
    cublas = {(o.timing_mode, o.kernel): t for o in reversed(found) if (t := _time(o))}
    ranked = []
    for outcome in found:
        time = _time(outcome)
        if time is None:
            ranked.append(_Ranked(outcome))
            continue
        least, most = extremes[outcome.timing_mode]
        rival = _CUBLAS.get((outcome.problem.workload, outcome.precision), "")
        product = cublas.get((outcome.timing_mode, rival))
        giga_per_s = workloads.of(outcome.problem).work(outcome.problem) / time
        device = (outcome.backend, outcome.device)
        info = next((info for info in infos if (info.backend, info.name) == device), None)
        ranked.append(
            _Ranked(
                outcome,
                spread=_spread(outcome),
                giga_per_s=giga_per_s,
                times_slowest=most / time,
                of_cublas=product / time if product else None,
                of_limit=_of_limit(outcome, giga_per_s * 1e9, info),
                best=time == least,
            )
        )
    return ranked


def outcome_report(outcomes: Iterable[Outcome], environments: Iterable[Environment]) -> Report:
    """What became of the cases: a section per device, a group per size, fastest first.

    A failed case that was tried anew is shown once. GPUs come first, baselines on the CPU last.
    """
    every, told = list(outcomes), list(environments)
    shown = results.without_retried([results.finite(outcome) for outcome in every])
    apart: dict[tuple[bool, bool, int, str, str], dict[tuple[Any, ...], list[Outcome]]] = {}
    for outcome in shown:
        on_cpu = outcome.device_kind == "cpu"
        baseline = on_cpu and outcome.group == "baseline"
        problem = outcome.problem
        workload = workloads.of(problem)
        order = list(workloads.WORKLOADS).index(workload.name)
        device = (baseline, on_cpu, order, "" if baseline else outcome.backend, outcome.device)
        default = problem.inputs == workload.inputs[0]
        size = (workload.work(problem), problem.size, not default, problem.inputs)
        apart.setdefault(device, {}).setdefault(size, []).append(outcome)
    sections, ranked = [], []
    for device in sorted(apart, key=lambda key: key[:3]):
        infos = [info for environment in told for info in environment.devices]
        groups = [_ranked(apart[device][size], infos) for size in sorted(apart[device])]
        sections.append(_outcome_section(groups, told))
        ranked += [row for group in groups for row in group]
    return Report(
        sections=tuple(sections),
        footer=_counts(shown),
        fields=_OUTCOME_FIELDS,
        rows=tuple(ranked),
        json=lambda: results.to_json(told, every),
    )


def _counts(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "no outcomes"
    found: list[str] = [outcome.status for outcome in outcomes]
    return ", ".join(f"{found.count(status)} {status}" for status in _STATUS_ORDER)


def _outcome_section(groups: list[list[_Ranked]], environments: list[Environment]) -> Section:
    every = [row for group in groups for row in group]
    workload = workloads.of(every[0].outcome.problem)
    speeds = [row.giga_per_s for row in every if row.giga_per_s and _is_known(row.giga_per_s)]
    tera = bool(speeds) and sorted(speeds)[len(speeds) // 2] >= 1000
    scale = 1000.0 if tera else 1.0
    least = min(speeds, default=scale) / scale
    decimals = min(3, _decimals(least, 3) if least >= 1 else 3)

    def speed(giga_per_s: float | None) -> str:
        return f"{giga_per_s / scale:.{decimals}f}" if _is_known(giga_per_s) else UNKNOWN

    return _section(
        heading=(*_workload(workload), *_heading([row.outcome for row in every], environments)),
        columns=(
            Column("kernel"),
            Column("parameters"),
            Column("time", right=True),
            Column("±", right=True, drop=1),
            Column("hot", right=True, drop=2),
            Column("per block", right=True, drop=5),
            Column("imbalance", right=True, drop=8),
            Column(("T" if tera else "G") + workload.rate, right=True, drop=2),
            Column("% of cuBLAS", right=True, drop=9),
            Column("% of copy" if workload.rate == "B/s" else "% of limit", right=True, drop=10),
            Column("× slowest", right=True, drop=4),
            Column("max rel err", right=True, drop=3),
            Column("avg rel err", right=True, drop=6),
            Column("of bound", right=True, drop=7),
        ),
        last_title="status",
        groups=tuple(_outcome_group(group, speed) for group in groups),
        legend=_block_legend([row.outcome for row in every]),
    )


def _workload(workload: Workload) -> tuple[str, ...]:
    """What is computed, where that is no matrix product, and how to read its table."""
    if workload is workloads.MATMUL:
        return ()
    what = f"{workload.name}: {workload.title}"
    if workload.rate == "B/s":
        what += "; B/s counts each input once and the result"
    if workload.relative_to != "|R|":
        what += f"; errors are relative to {workload.relative_to}"
    return (what,)


def _is_perturbed(outcome: Outcome) -> bool:
    share = outcome.block_perturbation or 0.0
    return outcome.block_median_ns is not None and not share <= blocks.PERTURBATION_LIMIT


def _block_legend(outcomes: Iterable[Outcome]) -> tuple[tuple[str, str], ...]:
    """What ≈ before a block's time means, with the worst of it."""
    shares = [o.block_perturbation or 0 for o in outcomes if _is_perturbed(o)]
    if not shares:
        return ()
    limit, worst = f"{blocks.PERTURBATION_LIMIT:.0%}", _percent(max(shares))
    text = f"per block: its clock slowed the launch by more than {limit}, {worst} at worst"
    return ((PERTURBED, text),)


def _outcome_group(ranked: list[_Ranked], speed: Callable[[float | None], str]) -> Group:
    time = _unit_format(_time(row.outcome) for row in ranked)
    hot_time = _unit_format(row.outcome.hot_median_ns for row in ranked)
    block_time = _unit_format(row.outcome.block_median_ns for row in ranked)
    problem = ranked[0].outcome.problem
    default = workloads.of(problem).inputs[0]
    inputs = "" if problem.inputs == default else f", {problem.inputs} inputs"
    rows = []
    for row in ranked:
        outcome = row.outcome
        mark = f"{PERTURBED} " if _is_perturbed(outcome) else ""
        rows.append(
            Row(
                cells=(
                    _line(outcome.kernel) + (f" {BEST}" if row.best else ""),
                    _line(settings_of(outcome.params)) or UNKNOWN,
                    time(_time(outcome)),
                    _percent(row.spread),
                    hot_time(outcome.hot_median_ns),
                    mark + block_time(outcome.block_median_ns),
                    _percent(outcome.block_imbalance),
                    speed(row.giga_per_s),
                    _share(row.of_cublas),
                    _share(row.of_limit),
                    _times(row.times_slowest),
                    _error(outcome.max_rel_err),
                    _error(outcome.avg_rel_err),
                    _percent(outcome.bound_ratio),
                ),
                status=outcome.status,
                reason=_lines(outcome.reason or ""),
                notes=_notes(outcome),
                style=_STATUS_STYLE[outcome.status],
                best=row.best,
            )
        )
    return Group(f"{problem.size}{inputs}", tuple(rows))


def _notes(outcome: Outcome) -> tuple[str, ...]:
    notes = []
    if outcome.settled is False:
        notes.append(f"not settled: {outcome.stopped}" if outcome.stopped else "not settled")
    return tuple(map(_lines, [*notes, *outcome.notes]))


def _heading(
    rows: Sequence[Outcome | ComparisonRow], environments: list[Environment]
) -> tuple[str, ...]:
    """Backend and device, driver and toolkit, and what must be known to read the times."""
    first = rows[0]
    is_baseline = isinstance(first, Outcome) and first.group == "baseline"
    on_cpu = first.device_kind == "cpu"
    backends = _agreed(row.backend for row in rows)
    kind = "baselines on the CPU" if is_baseline and on_cpu else ""
    named = [part for part in (kind, backends, _line(first.device)) if part]
    heading = [" · ".join(named) or "device unknown"]
    backends_used = {row.backend for row in rows}
    used = [
        (environment.host, device)
        for environment in environments
        for device in environment.devices
        if device.name == first.device and device.backend in backends_used
    ]
    heading.append(_agreed(f"driver {device.driver} · {device.toolkit}" for _, device in used))
    if on_cpu:
        heading.append(CPU_TIMINGS)
    if on_cpu:
        heading.append(_host_load(row for row in rows if isinstance(row, Outcome)))
    clocks = sorted({round(row.sm_mhz) for row in rows if isinstance(row, Outcome) and row.sm_mhz})
    if clocks:
        held = f"{clocks[0]:,}" if len(clocks) == 1 else f"{clocks[0]:,} to {clocks[-1]:,}"
        heading.append(f"SM clock held: {held} MHz")
    modes = {row.timing_mode for row in rows if row.timing_mode}
    heading.append(_MODES.get(frozenset(modes), ""))
    hosts = dict.fromkeys(host for host, _ in used)
    heading.append(f"from several hosts: {_agreed(hosts)}" if len(hosts) > 1 else "")
    return tuple(line for line in heading if line)


def _host_load(outcomes: Iterable[Outcome]) -> str:
    """How busy the host was when its cases began, and what governs its frequency."""
    moments = [outcome.conditions[0] for outcome in outcomes if outcome.conditions]
    loads = [moment.load for moment in moments if moment.load is not None]
    governors = {moment.governor for moment in moments if moment.governor}
    told = dict.fromkeys(f"{load:.1f}" for load in (min(loads), max(loads))) if loads else {}
    said = [f"load average {' to '.join(told)}"] if told else []
    if governors:
        said.append(f"frequency governor {_agreed(sorted(governors))}")
    return " · ".join(said)


_MODES = {
    frozenset({"cold"}): "cold samples: the cache is overwritten before each",
    frozenset({"hot"}): "hot samples: caches are left as they are",
    frozenset({"hot graph"}): "hot samples: launches back to back, as one CUDA graph",
    frozenset({"cold", "hot"}): "cold and hot samples, ranked apart",
}


#: CSV's columns: the last word of each names it; numbers stay as they were recorded.
_OUTCOME_FIELDS = (
    "outcome.backend", "outcome.device", "outcome.device_kind", "outcome.problem.workload",
    "outcome.problem.size",
    "outcome.problem.M", "outcome.problem.N", "outcome.problem.K", "outcome.problem.inputs",
    "outcome.problem.seed", "outcome.group", "outcome.kernel", "outcome.params", "outcome.status",
    "outcome.reason", "best", "outcome.median_ns", "interval_low_ns", "interval_high_ns", "spread",
    "samples", "outcome.hot_median_ns", "outcome.timing_mode", "outcome.settled",
    "outcome.block_median_ns", "outcome.block_imbalance", "outcome.block_perturbation",
    "outcome.sm_mhz", "gflops", "gbytes_per_s", "of_cublas", "of_limit", "times_slowest",
    "outcome.max_rel_err",
    "outcome.avg_rel_err", "outcome.bound_ratio", "outcome.sha256", "outcome.notes",
)  # fmt: skip


# Comparisons

VERDICT_STYLE = {"FASTER": "green", "SLOWER": "red", "SAME": "", "UNDECIDED": "yellow"}


def comparison_report(
    rows: Iterable[ComparisonRow], environments: Iterable[Environment] = ()
) -> Report:
    """Candidates against baselines: a section per device and pair, in the order given."""
    shown, told = list(rows), list(environments)
    apart: dict[tuple[str, str, str, str], list[ComparisonRow]] = {}
    for row in shown:
        key = (row.backend, row.device, row.baseline, row.candidate)
        apart.setdefault(key, []).append(row)
    verdicts = [row.verdict or "without a verdict" for row in shown]
    return Report(
        sections=tuple(_comparison_section(found, told) for found in apart.values()),
        footer=", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        or "nothing to compare",
        fields=_COMPARISON_FIELDS,
        rows=tuple(shown),
        json=lambda: results.array(shown),
    )


def _comparison_section(rows: list[ComparisonRow], environments: list[Environment]) -> Section:
    first = rows[0]
    sides = f"candidate {_line(first.candidate)} against baseline {_line(first.baseline)}"
    sizes: dict[str, list[ComparisonRow]] = {}
    for row in rows:
        sizes.setdefault(row.size, []).append(row)
    return _section(
        heading=(
            sides,
            *_heading(rows, environments),
            "ratio: the candidate's time / the baseline's, below 1 is faster",
        ),
        columns=(
            Column("size"),
            Column("kernel"),
            Column("parameters"),
            Column("baseline", right=True, drop=2),
            Column("candidate", right=True, drop=1),
            Column("ratio", right=True),
            Column("interval", right=True, drop=3),
            Column("p", right=True, drop=6),
            Column("baseline err", right=True, drop=5),
            Column("candidate err", right=True, drop=4),
            Column("samples", right=True, drop=7),
        ),
        last_title="verdict",
        groups=tuple(map(_comparison_group, sizes.values())),
    )


def _both_params(row: ComparisonRow) -> str:
    """What both sides were run with, or `baseline's / candidate's`."""
    first, second = (_line(settings_of(p)) for p in (row.baseline_params, row.candidate_params))
    return first if first == second else f"{first or UNKNOWN} / {second or UNKNOWN}"


def _comparison_group(rows: list[ComparisonRow]) -> Group:
    time = _unit_format(
        t for row in rows for t in (row.baseline_median_ns, row.candidate_median_ns)
    )
    return Group("", tuple(_comparison_row(row, time) for row in rows))


def _comparison_row(row: ComparisonRow, time: Callable[[float | None], str]) -> Row:
    return Row(
        cells=(
            _line(row.size),
            _line(row.kernel) or UNKNOWN,
            _both_params(row) or UNKNOWN,
            time(row.baseline_median_ns),
            time(row.candidate_median_ns),
            _ratio(row.ratio),
            " to ".join(map(_ratio, row.ratio_interval)) if row.ratio_interval else UNKNOWN,
            _probability(row.p_value),
            _error(row.baseline_max_rel_err),
            _error(row.candidate_max_rel_err),
            " + ".join(map(str, row.samples)),
        ),
        status=row.verdict or "no verdict",
        reason=_lines(row.reason or ""),
        notes=tuple(map(_lines, row.notes)),
        style=VERDICT_STYLE.get(row.verdict or "", "yellow"),
    )


_COMPARISON_FIELDS = (
    "backend", "device", "device_kind", "size", "kernel", "baseline", "candidate",
    "baseline_params", "candidate_params", "baseline_median_ns", "candidate_median_ns", "ratio",
    "ratio_low", "ratio_high", "p_value", "baseline_max_rel_err", "candidate_max_rel_err",
    "baseline_samples", "candidate_samples", "verdict", "reason", "notes",
)  # fmt: skip


# Tuning

TOP = 10


def tuning_report(rows: Iterable[TuningRow], environments: Iterable[Environment]) -> Report:
    """The best candidates of each search for people, all of them for programs."""
    shown, told = list(rows), list(environments)
    sizes: dict[str, list[TuningRow]] = {}
    for row in shown:
        sizes.setdefault(row.outcome.problem.size, []).append(row)
    sections: tuple[Section, ...] = ()
    if shown:
        heading = (
            _line(shown[0].outcome.kernel),
            *_heading([row.outcome for row in shown], told),
            *(f"size {size}: {found[0].searched}" for size, found in sizes.items()),
            "ratio: time / that of the fastest default, taken in turns; of medians: of the samples "
            "shown; below 1 is faster",
        )
        columns = (
            Column("parameters"),
            Column("time", right=True),
            Column("±", right=True, drop=4),
            Column("ratio", right=True),
            Column("interval", right=True, drop=3),
            Column("of medians", right=True, drop=1),
            Column("max rel err", right=True, drop=2),
            Column("samples", right=True, drop=5),
        )
        groups = tuple(_tuning_group(size, found) for size, found in sizes.items())
        sections = (_section(heading, columns, "place", groups),)
    return Report(
        sections=sections,
        footer=f"{len(shown):,} candidates measured" if shown else "no candidate could be measured",
        fields=_TUNING_FIELDS,
        rows=tuple(shown),
        json=lambda: results.array([*told, *(row.record() for row in shown)]),
    )


def _tuning_group(size: str, rows: list[TuningRow]) -> Group:
    best = [row for number, row in enumerate(rows) if number < TOP or row.place]
    time = _unit_format(row.outcome.median_ns for row in best)
    cells = [
        (
            _line(settings_of(row.outcome.params)) or UNKNOWN,
            time(row.outcome.median_ns),
            _percent(_spread(row.outcome)) if row.outcome.interval_ns else UNKNOWN,
            _ratio(row.ratio),
            " to ".join(map(_ratio, row.ratio_interval)) if row.ratio_interval else UNKNOWN,
            _ratio(row.median_ratio),
            _error(row.outcome.max_rel_err),
            str(row.samples),
        )
        for row in best
    ]
    shown = tuple(
        Row(told, status=row.place, best=not number)
        for number, (told, row) in enumerate(zip(cells, best, strict=True))
    )
    return Group(size, shown)


_TUNING_FIELDS = (
    "outcome.backend", "outcome.device", "outcome.problem.size", "outcome.kernel",
    "outcome.params", "place", "round", "outcome.median_ns", "ratio", "ratio_low", "ratio_high",
    "median_ratio", "samples", "outcome.max_rel_err", "outcome.sha256",
)  # fmt: skip


# Blocks

_FACTS = ("", "", "")
_SPANS = ("the launch's length by", "ticks", "µs", "ratio to events")
_HISTOGRAM = ("duration (µs)", "blocks", "share")


def block_renderables(profile: blocks.BlockProfile, title: str) -> list[RenderableType]:
    """What one launch's blocks tell, for a rich console; the histogram's bars share one scale."""
    facts = Table.grid(padding=(0, 2))
    for fact in blocks.facts(profile):
        facts.add_row(*map(Text, fact))
    spans = _plain_table(_SPANS)
    for span in blocks.spans(profile):
        spans.add_row(*map(Text, span))
    histogram = _plain_table((*_HISTOGRAM, ""))
    bins = blocks.histogram(profile)
    most = max(count for _, count in bins)
    for label, count in bins:
        bar = Bar(most, 0, count, width=_BAR_WIDTH)
        histogram.add_row(label, f"{count:,}", _percent(count / profile.blocks), bar)
    first, *others = _block_heading(profile, title)
    heading: list[RenderableType] = [Text(first, style="bold"), *map(Text, others)]
    explained = Text(blocks.explanation(profile))
    return [*heading, Text(), facts, Text(), spans, Text(), explained, Text(), histogram]


_BAR_WIDTH = 40


def _plain_table(titles: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, title in enumerate(titles):
        table.add_column(title, justify="right" if index and title else "left", no_wrap=True)
    return table


def block_text(profile: blocks.BlockProfile, title: str, fmt: str) -> str:
    """The same in one of `tabulate`'s formats."""
    bins = blocks.histogram(profile)
    shares = [(label, f"{n:,}", _percent(n / profile.blocks)) for label, n in bins]
    tables: list[tuple[Sequence[str], Sequence[Sequence[str]]]] = [
        (_FACTS, blocks.facts(profile)),
        (_SPANS, blocks.spans(profile)),
        (_HISTOGRAM, shares),
    ]
    shown = [
        tabulate(
            [[_escape(cell, fmt) for cell in row] for row in rows],
            headers=titles,
            tablefmt=fmt,
            colalign=[
                "left" if not index or not text else "right" for index, text in enumerate(titles)
            ],
            disable_numparse=True,
        )
        for titles, rows in tables
    ]
    shown.insert(2, _prose([blocks.explanation(profile)], fmt))
    return "\n\n".join([_prose(_block_heading(profile, title), fmt), *shown])


_STAMPS = (
    "block_x", "block_y", "block_z", "multiprocessor", "start_ticks", "end_ticks", "start_ns",
    "end_ns",
)  # fmt: skip


def block_csv(sample: blocks.BlockSample, launch: Launch) -> str:
    """The stamps themselves, one line a block; what the device does not tell is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_STAMPS)
    width, height, _ = launch.grid
    for row, (start, end, start_ns, end_ns, unit) in enumerate(sample.stamps.tolist()):
        y, x = divmod(row, width)
        z, y = divmod(y, height)
        told = (start_ns, end_ns or "") if start_ns else ("", "")
        writer.writerow((x, y, z, unit if start_ns else "", start, end or "", *told))
    return out.getvalue().removesuffix("\n")


def _block_heading(profile: blocks.BlockProfile, title: str) -> list[str]:
    heading = [_line(title), f"{profile.backend} · {_line(profile.device)}"]
    return [*heading, CPU_TIMINGS] if profile.device_kind == "cpu" else heading


# Rendering


def matrix(rows: Sequence[ComparisonRow], names: Sequence[str]) -> Iterator[RenderableType]:
    """For each size a square: the time of the column's kernel over that of the row's."""
    for size in dict.fromkeys(row.size for row in rows):
        found: dict[tuple[str, str], str] = {}
        turned = {"FASTER": "SLOWER", "SLOWER": "FASTER"}
        for row in rows:
            if row.size == size and row.ratio is not None and row.verdict is not None:
                back = turned.get(row.verdict, row.verdict)
                found[row.baseline, row.candidate] = f"{row.ratio:.3f} {row.verdict}"
                found[row.candidate, row.baseline] = f"{1 / row.ratio:.3f} {back}"
        table = Table("baseline", *names, box=box.SIMPLE_HEAD, title=f"size {size}")
        for first in names:
            cells = [
                "·" if first == second else found.get((first, second), "–") for second in names
            ]
            table.add_row(first, *cells)
        yield table
    yield "time of the column's kernel / time of the row's: below 1 the column's is faster"
    yield from dict.fromkeys(note for row in rows for note in row.notes)


# Probes


def check(
    name: str, device: DeviceInfo, purposes: Sequence[str], outcomes: Sequence[Outcome]
) -> list[RenderableType]:
    """One line a shape, one column a set of parameters; below, what is wrong."""
    marks = {"measured": "right", "wrong": "WRONG", "failed": "FAILED", "skipped": "–"}
    shapes: dict[tuple[str, str, str], dict[str, str]] = {}
    # Reasons that differ in their numbers alone are told once, with how many more there are.
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for purpose, outcome in zip(purposes, outcomes, strict=False):
        label = settings_of(outcome.params) or name
        key = outcome.problem.size, outcome.problem.inputs, purpose
        shapes.setdefault(key, {})[label] = marks[outcome.status]
        if outcome.reason and outcome.status != "skipped":
            place = f"{label} at {outcome.problem.size}, {outcome.problem.inputs}"
            alike = outcome.status, label, re.sub(r"\d[\d,.e+-]*", "#", outcome.reason)
            reasons.setdefault(alike, []).append(f"{place}: {outcome.reason}")
    labels = list(dict.fromkeys(label for row in shapes.values() for label in row))
    table = Table(box=box.SIMPLE_HEAD)
    problems = [outcome.problem for outcome in outcomes]
    dimensions = workloads.of(problems[0]).dimensions if problems else ("size",)
    for title in ("×".join(dimensions), "inputs", "probes", *labels):
        table.add_column(title, no_wrap=title in labels)
    for (size, inputs, purpose), row in shapes.items():
        cells = [
            Text(row.get(label, ""), style="bold red" if row.get(label, "").isupper() else "")
            for label in labels
        ]
        table.add_row(size, inputs, purpose, *cells)
    listed = [
        Text(lines[0] + (f" … and {len(lines) - 1} more like it" if len(lines) > 1 else ""))
        for alike, lines in sorted(reasons.items(), key=lambda found: _STATUS_ORDER[found[0][0]])
    ]
    return [table, *listed, Text(_probed(name, device, outcomes), style="bold")]


def _probed(name: str, device: DeviceInfo, outcomes: Sequence[Outcome]) -> str:
    """How many probes were right of those that could run, and why others could not."""
    skipped = [outcome.reason or "" for outcome in outcomes if outcome.status == "skipped"]
    # What was asked of the device differs from probe to probe; what it lacks does not.
    reasons: dict[str, list[str]] = {}
    for reason in skipped:
        reasons.setdefault(_NUMBER.sub("\0", reason), []).append(reason)
    why = "; ".join(map(_merged, reasons.values()))
    probed = len(outcomes) - len(skipped)
    if not probed:
        return f"{name}: nothing could be probed on {device.label}" + (f": {why}" if why else "")
    right = sum(outcome.status == "measured" for outcome in outcomes)
    told = f"{name} is right at {right} of {probed} probes on {device.label}"
    return f"{told}, {len(skipped)} skipped: {why}" if skipped else told


class _Footnotes:
    """Texts under a section, each with its number, in the order of their first mention.

    Notes that differ in their numbers alone are one text, from the least to the largest: many
    rows of a noisy device say the same.
    """

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.numbers: dict[str, int] = {}

    def marks(self, reasons: Iterable[str], notes: Iterable[str]) -> str:
        """What stands beside a row that has these, from the least number on."""
        numbers = {self._number(text, text) for text in reasons}
        numbers |= {self._number(_NUMBER.sub("\0", text), text) for text in notes}
        return " ".join(map(_superscript, sorted(numbers)))

    def _number(self, kind: str, text: str) -> int:
        self.texts.setdefault(kind, []).append(text)
        return self.numbers.setdefault(kind, len(self.texts))

    def lines(self) -> list[tuple[str, str]]:
        """Marks and texts."""
        return [
            (_superscript(self.numbers[kind]), _merged(texts)) for kind, texts in self.texts.items()
        ]


_NUMBER = re.compile(r"(?<![\w.,])-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _superscript(number: int) -> str:
    return str(number).translate(_SUPERSCRIPT)


def _merged(texts: list[str]) -> str:
    """Texts that differ in numbers alone as one: `5 of 40`, `9 of 10` as `5…9 of 10…40`."""
    numbers = zip(*(_NUMBER.findall(text) for text in texts), strict=True)

    def in_order(found: tuple[str, ...]) -> list[str]:
        return sorted(found, key=lambda number: float(number.replace(",", "")))

    ranges = [dict.fromkeys((in_order(found)[0], in_order(found)[-1])) for found in numbers]
    values = iter(ranges)
    return _NUMBER.sub(lambda _: "…".join(next(values)), texts[0])


def _last_cell(row: Row, footnotes: _Footnotes, *, inline: bool) -> str:
    """Status with its reason, or with a footnote for it; a long reason keeps one for all of it."""
    first = _line(row.reason.partition("\n")[0])
    below = [row.reason] if row.reason and (first != row.reason or not inline) else []
    said = ": ".join(filter(None, (row.status, first if inline else "")))
    return said + footnotes.marks(below, row.notes)


def text(report: Report, fmt: str) -> str:
    """The report in any of `FORMATS` but `rich`; nothing is cut."""
    if fmt == "json":
        return report.json()
    if fmt == "csv":
        return _csv(report)
    blocks = []
    for section in report.sections:
        footnotes = _Footnotes()
        size = [Column("size")] if any(group.title for group in section.groups) else []
        columns = [*size, *section.columns, Column(section.last_title)]
        table = tabulate(
            [
                [
                    _escape(cell, fmt)
                    for cell in (
                        *([group.title] if size else []),
                        *row.cells,
                        _last_cell(row, footnotes, inline=True),
                    )
                ]
                for group in section.groups
                for row in group.rows
            ],
            headers=[column.title for column in columns],
            tablefmt=fmt,
            colalign=["right" if column.right else "left" for column in columns],
            disable_numparse=True,
        )
        blocks += [
            _prose(section.heading, fmt),
            str(table),
            _prose([" ".join(line) for line in (*section.legend, *footnotes.lines())], fmt),
        ]
    return "\n\n".join(block for block in [*blocks, _prose([report.footer], fmt)] if block)


def _csv(report: Report) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(field.rpartition(".")[2] for field in report.fields)
    for row in report.rows:
        writer.writerow(_csv_value(attrgetter(field)(row)) for field in report.fields)
    return out.getvalue().removesuffix("\n")


def _csv_value(value: object) -> object:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        value = settings_of(value)
    if isinstance(value, tuple):
        value = "; ".join(value)
    return _lines(value) if isinstance(value, str) else value


def _escape(cell: str, fmt: str) -> str:
    """`tabulate` escapes for HTML and LaTeX, but not for these."""
    if fmt in ("github", "pipe"):
        escaped = re.sub(r"([\\`*|\[\]]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", cell)
        return escaped.replace("&", "&amp;").replace("<", "&lt;")
    if fmt == "rst":
        return re.sub(r"([\\`*|]|_(?![^\W_]))", r"\\\1", cell)
    return cell.replace("|", "\\vert{}") if fmt == "orgtbl" else cell


def _prose(lines: Sequence[str], fmt: str) -> str:
    """Lines outside a table; where the markup joins lines, each is a paragraph."""
    if fmt == "html":
        return "\n".join(f"<p>{html.escape(line)}</p>" for line in lines)
    if fmt.startswith("latex"):
        return "\n".join("% " + line.replace("\n", "\n% ") for line in lines)
    between = "\n\n" if fmt in ("github", "pipe", "rst") else "\n"
    return between.join(_escape(line, fmt) for line in lines)


#: Where the last column would be narrower than this, reasons stand below the table; where reasons
#: are all that it has, they can wrap more.
_LEAST_REASON_WIDTH = 32
_LEAST_REMARK_WIDTH = 20


@dataclass(frozen=True)
class _Layout:
    """Which columns a width has room for, and how wide each is; the last one is the status."""

    kept: tuple[int, ...]
    widths: tuple[int, ...]
    gap: int
    inline: bool


def _layout(section: Section, width: int | None) -> _Layout:
    """Columns go, the least important first, until the rest fits with the bare status."""
    columns = section.columns
    texts = [[c.title, *(row.cells[i] for row in section.rows)] for i, c in enumerate(columns)]
    widths = [max(map(cell_len, cells)) for cells in texts]
    short, full = (
        max(map(cell_len, [section.last_title, *_last_cells(section, inline=inline)]))
        for inline in (False, True)
    )
    kept = list(range(len(columns)))
    if width is None:
        return _Layout(tuple(kept), (*widths, full), 2, True)

    def room(gap: int) -> int:
        return width - sum(widths[index] + gap for index in kept)

    for index in sorted(kept, key=lambda index: -columns[index].drop):
        if room(2) < short and columns[index].drop:
            kept.remove(index)
    gap = 2 if room(2) >= short else 1
    if room(gap) < short:  # what is left are words, and they can wrap
        words = [index for index in kept if not columns[index].right]
        for index in words:
            widths[index] = min(widths[index], width)
        whole = {index: max(map(_longest_piece, texts[index])) for index in words}
        while room(gap) < short and max(widths[index] for index in words) > 1:
            loose = [index for index in words if widths[index] > whole[index]] or words
            widths[max(loose, key=lambda index: widths[index])] -= 1
    has_words = any(row.status for row in section.rows)
    inline = room(gap) >= min(full, _LEAST_REASON_WIDTH if has_words else _LEAST_REMARK_WIDTH)
    last = min(full, room(gap)) if inline else short
    return _Layout(tuple(kept), (*(widths[index] for index in kept), last), gap, inline)


def _last_cells(section: Section, *, inline: bool) -> list[str]:
    footnotes = _Footnotes()
    return [_last_cell(row, footnotes, inline=inline) for row in section.rows]


#: Where a name or a parameter may be broken: after a space, a hyphen or an equals sign.
_PIECE = re.compile(r"[^\s=-]*[\s=-]*")


def _longest_piece(cell: str) -> int:
    return max(cell_len(piece.strip()) for piece in _PIECE.findall(cell))


def renderables(report: Report, width: int | None = None) -> list[RenderableType]:
    """The report for a rich console of `width` cells; without a width nothing is cut.

    Colour marks the status alone, and repeats what the words say.
    """
    parts: list[RenderableType] = []
    for section in report.sections:
        title, *others = section.heading
        parts += [Text(title, style="bold"), *map(Text, others), Text()]
        parts += [*_rich_section(section, _layout(section, width)), Text()]
    return [*parts, Text(report.footer)]


def _rich_section(section: Section, layout: _Layout) -> Iterator[RenderableType]:
    footnotes = _Footnotes()
    yield _rich_table(section, layout, header=True)
    yield Text("─" * (sum(layout.widths) + layout.gap * len(layout.kept)))
    for group in section.groups:
        if group.title:
            yield Text(f"\nsize {group.title}", style="bold")
        table = _rich_table(section, layout, header=False)
        for row in group.rows:
            cells = [
                _wrapped(row.cells[i], w) for i, w in zip(layout.kept, layout.widths, strict=False)
            ]
            last = Text(_last_cell(row, footnotes, inline=layout.inline), style=row.style)
            table.add_row(*cells, last, style="bold" if row.best else "")
        yield table
    shown = "".join(row.cells[i] for row in section.rows for i in layout.kept)
    below = [*(entry for entry in section.legend if entry[0] in shown), *footnotes.lines()]
    if below:
        notes = Table.grid(padding=(0, 1))
        notes.add_column()
        notes.add_column(overflow="fold")
        for line in below:
            notes.add_row(*map(Text, line))
        yield Text()
        yield notes


def _rich_table(section: Section, layout: _Layout, *, header: bool) -> Table:
    """Tables of one section have the same columns, so that they stand below each other."""
    table = Table(box=None, show_header=header, pad_edge=False, padding=(0, layout.gap, 0, 0))
    titles = [*(section.columns[index] for index in layout.kept), Column(section.last_title)]
    for column, width in zip(titles, layout.widths, strict=True):
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            width=width,
            no_wrap=column.right,
            overflow="fold",
        )
    return table


def _wrapped(cell: str, width: int) -> Text:
    lines = [""]
    for piece in filter(None, _PIECE.findall(cell)):
        if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return Text("\n".join(lines))
