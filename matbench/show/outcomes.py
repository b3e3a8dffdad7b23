"""Outcomes as tables: a section per device, a group per size, fastest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matbench import workloads
from matbench.analysis import ranking, sample_notes
from matbench.analysis.ranking import DeviceRanking, ProblemRanking, Ranked
from matbench.model import Problem, settings_of
from matbench.records import encoding, resuming
from matbench.records.blocks import PERTURBATION_LIMIT
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome, Timing
from matbench.show import footnotes, safe, units
from matbench.show.heading import device_lines
from matbench.show.table import Column, Group, Report, Row, Section, section
from matbench.show.units import UNKNOWN
from matbench.workloads import Workload

BEST = "★"
PERTURBED = "≈"

_STYLES = {"measured": "green", "wrong": "bold red", "failed": "red", "skipped": "yellow"}


def report(
    outcomes: Iterable[Outcome], environments: Iterable[Environment], *, fastest: bool = False
) -> Report:
    """What became of the cases; `fastest` shows each kernel at its fastest parameters alone.

    A failed case that was tried again is shown once. GPUs come first, baselines on the CPU last.
    """
    every, about = list(outcomes), list(environments)
    found = resuming.without_retried([encoding.finite(outcome) for outcome in every])
    footer = _counts(found)
    if fastest:
        shown = every = ranking.fastest(found)
        footer += f"; {len(shown)} shown: each kernel at its fastest parameters"
    else:
        shown = found
    devices = [device for environment in about for device in environment.devices]
    tables = ranking.tables(shown, devices)
    return Report(
        sections=tuple(_section(table, about) for table in tables),
        footer=footer,
        fields=_FIELDS,
        rows=[row for table in tables for row in table.rows],
        json=lambda: encoding.array([*about, *every]),
    )


def _counts(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "no outcomes"
    found = [outcome.status for outcome in outcomes]
    return ", ".join(f"{found.count(status)} {status}" for status in ranking.STATUSES)


def _section(table: DeviceRanking, environments: Sequence[Environment]) -> Section:
    rate = table.workload.rate
    rate_title, speed = units.rate_column((row.work_per_s for row in table.rows), rate)
    repeated = _repeated(table)
    apart = {id(row) for found in repeated for _, row in found}
    groups = [
        _group(problem, speed, [row for row in problem.rows if id(row) not in apart])
        for problem in table.problems
    ]
    return section(
        heading=(
            *_workload_line(table.workload),
            *device_lines(table.outcomes, environments, baselines=table.baselines),
        ),
        columns=(
            Column("kernel", shared=True),
            Column("parameters", shared=True),
            Column("time", right=True),
            Column("±", right=True, drop=1),
            Column("hot", right=True, drop=2),
            Column("hot ±", right=True, drop=2),
            Column("per block", right=True, drop=5),
            Column("imbalance", right=True, drop=8),
            Column(rate_title, right=True, drop=2),
            Column("% of cuBLAS", right=True, drop=9),
            Column("% of copy" if rate == "B/s" else "% of limit", right=True, drop=10),
            Column("× slowest", right=True, drop=4),
            Column("max rel err", right=True, drop=3, shared=True),
            Column("avg rel err", right=True, drop=6, shared=True),
            Column("of bound", right=True, drop=7, shared=True),
        ),
        last_title="status",
        groups=[group for group in groups if group.rows] + _without_result(table, repeated),
        legend=_legend(table.outcomes),
    )


def _workload_line(workload: Workload) -> tuple[str, ...]:
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
    found = outcome.blocks
    if found is None or found.median_ns is None:
        return False
    return not (found.perturbation or 0.0) <= PERTURBATION_LIMIT


def _legend(outcomes: Iterable[Outcome]) -> tuple[tuple[str, str], ...]:
    """What ≈ before a block's time means, with the worst of it."""
    perturbed = [o.blocks.perturbation for o in outcomes if o.blocks and _is_perturbed(o)]
    if not perturbed:
        return ()
    limit, worst = f"{PERTURBATION_LIMIT:.0%}", max(share or 0.0 for share in perturbed)
    text = f"per block: its clock slowed the launch by more than {limit}"
    return ((PERTURBED, f"{text}, {units.percent(worst)} at worst"),)


# Rows


def _group(problem: ProblemRanking, speed: units.Formatter, ranked: Sequence[Ranked]) -> Group:
    label = size_label(problem.problem)
    outcomes = [row.outcome for row in ranked]
    time = units.durations(map(ranking.time_ns, outcomes))
    hot_time = units.durations(row.hot.median_ns for row in ranked if row.hot)
    block_time = units.durations(o.blocks.median_ns for o in outcomes if o.blocks)

    def cells(row: Ranked) -> tuple[str, ...]:
        outcome, hot = row.outcome, row.hot
        block, accuracy = outcome.blocks, outcome.accuracy
        mark = f"{PERTURBED} " if _is_perturbed(outcome) else ""
        return (
            time(ranking.time_ns(outcome)),
            units.percent(row.spread),
            hot_time(hot.median_ns) if hot else UNKNOWN,
            units.percent(ranking.spread(hot)),
            mark + block_time(block.median_ns) if block else UNKNOWN,
            units.percent(block.imbalance) if block else UNKNOWN,
            speed(row.work_per_s),
            units.share(row.of_cublas),
            units.share(row.of_limit),
            units.times(row.times_slowest) if row.rivals > 1 else UNKNOWN,
            units.error(accuracy.max_rel_err) if accuracy else UNKNOWN,
            units.error(accuracy.avg_rel_err) if accuracy else UNKNOWN,
            units.percent(accuracy.bound_ratio) if accuracy else UNKNOWN,
        )

    return Group(f"size {label}", tuple(_row(row, cells(row)) for row in ranked), label)


_NUMBERS = 13


def _row(ranked: Ranked, numbers: tuple[str, ...] = (UNKNOWN,) * _NUMBERS, reason: str = "") -> Row:
    outcome = ranked.outcome
    names = safe.line(outcome.case.kernel), safe.line(settings_of(outcome.case.params)) or UNKNOWN
    return Row(
        cells=(*names, *numbers),
        status="" if ranked.rivals else outcome.status,  # a time says that it was measured
        reason=safe.lines(reason or outcome.reason or ""),
        notes=_notes(outcome),
        style=_STYLES[outcome.status],
        best=ranked.best,
        mark=BEST if ranked.best and ranked.rivals > 1 else "",
    )


def size_label(problem: Problem) -> str:
    """The size, and inputs that are not the usual ones."""
    usual = problem.inputs == workloads.of(problem).inputs[0]
    return problem.size + ("" if usual else f", {problem.inputs} inputs")


def _notes(outcome: Outcome) -> tuple[str, ...]:
    """What changes how to read the row; CSV and JSON hold all notes."""
    own = [*_unsettled(outcome.timing), *_that_matter(outcome.timing, outcome.notes)]
    if outcome.cold is not None:
        hot = [*_unsettled(outcome.hot), *_that_matter(outcome.hot)]
        own += [f"hot samples: {note}" for note in hot]
    return tuple(map(safe.lines, own))


def _unsettled(timing: Timing | None) -> list[str]:
    if timing is None or timing.settled is not False:
        return []
    return [f"not settled: {timing.stopped}" if timing.stopped else "not settled"]


def _that_matter(timing: Timing | None, others: Sequence[str] = ()) -> list[str]:
    """The notes about these samples, and others of the case, that matter for their median."""
    notes = (*(timing.notes if timing is not None else ()), *others)
    half_width = ranking.spread(timing)
    return [note for note in notes if sample_notes.matters(note, half_width)]


# Rows that are the same at several sizes

_Placed = tuple[Problem, Ranked]


def _repeated(table: DeviceRanking) -> list[list[_Placed]]:
    """Cases that were skipped or failed for one reason at several sizes, each with those sizes.

    What skips a case may name its size: such reasons may differ in their numbers.
    """
    alike: dict[tuple[object, ...], list[_Placed]] = {}
    for ranking_ in table.problems:
        for row in ranking_.rows:
            outcome, case = row.outcome, row.outcome.case
            if outcome.status in ("skipped", "failed"):
                reason = outcome.reason or ""
                key = (
                    *(case.backend, case.kernel, tuple(case.params.items()), outcome.status),
                    footnotes.kind(reason) if outcome.status == "skipped" else reason,
                    _notes(outcome),
                )
                alike.setdefault(key, []).append((ranking_.problem, row))
    return [found for found in alike.values() if len({problem for problem, _ in found}) > 1]


def _without_result(table: DeviceRanking, repeated: list[list[_Placed]]) -> list[Group]:
    """A group for those that no size gave a result, and one for each other set of sizes."""
    groups: dict[tuple[Problem, ...], list[Row]] = {}
    for found in repeated:
        reasons = [row.outcome.reason or "" for _, row in found]
        same = found[0][1].outcome.status == "failed"
        row = _row(found[0][1], reason=reasons[0] if same else footnotes.merged(reasons))
        groups.setdefault(tuple(dict.fromkeys(problem for problem, _ in found)), []).append(row)
    every = len(table.problems)
    return [
        Group("no result at any size", tuple(rows), "all")
        if len(problems) == every
        else Group(
            f"no result at {(sizes := ', '.join(map(size_label, problems)))}", tuple(rows), sizes
        )
        for problems, rows in sorted(groups.items(), key=lambda item: -len(item[0]))
    ]


#: CSV's columns; numbers stay as they were recorded.
_FIELDS = {
    "backend": "outcome.case.backend",
    "device": "outcome.case.device",
    "device_kind": "outcome.case.device_kind",
    "workload": "outcome.case.problem.workload",
    "size": "outcome.case.problem.size",
    "M": "outcome.case.problem.M",
    "N": "outcome.case.problem.N",
    "K": "outcome.case.problem.K",
    "inputs": "outcome.case.problem.inputs",
    "seed": "outcome.case.problem.seed",
    "group": "outcome.case.group",
    "kernel": "outcome.case.kernel",
    "precision": "outcome.case.claims.precision",
    "params": "outcome.case.params",
    "status": "outcome.status",
    "reason": "outcome.reason",
    "best": "best",
    "median_ns": "outcome.median_ns",
    "interval_low_ns": "outcome.timing.interval_ns.0",
    "interval_high_ns": "outcome.timing.interval_ns.1",
    "spread": "spread",
    "samples": "outcome.samples_ns.len",
    "timing_mode": "outcome.mode",
    "settled": "outcome.timing.settled",
    "stopped": "outcome.timing.stopped",
    "hot_median_ns": "hot.median_ns",
    "hot_interval_low_ns": "hot.interval_ns.0",
    "hot_interval_high_ns": "hot.interval_ns.1",
    "hot_samples": "hot.samples_ns.len",
    "hot_settled": "hot.settled",
    "hot_stopped": "hot.stopped",
    "hot_notes": "hot.notes",
    "block_median_ns": "outcome.blocks.median_ns",
    "block_imbalance": "outcome.blocks.imbalance",
    "block_perturbation": "outcome.blocks.perturbation",
    "sm_mhz": "outcome.blocks.sm_mhz",
    "gflops": "gflops",
    "gbytes_per_s": "gbytes_per_s",
    "of_cublas": "of_cublas",
    "of_limit": "of_limit",
    "times_slowest": "times_slowest",
    "max_rel_err": "outcome.accuracy.max_rel_err",
    "avg_rel_err": "outcome.accuracy.avg_rel_err",
    "bound_ratio": "outcome.accuracy.bound_ratio",
    "registers": "outcome.build.resources.registers",
    "occupancy": "outcome.build.occupancy",
    "sha256": "outcome.case.sha256",
    "notes": "notes",
}
