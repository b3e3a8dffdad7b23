"""Outcomes as tables: a section per device, a group per size, fastest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from matbench import workloads
from matbench.analysis import gathering, ranking, statistics
from matbench.analysis.ranking import DeviceRanking, Ranked, held_mhz
from matbench.model import Problem, settings_of
from matbench.records.environment import Environment
from matbench.records.outcome import PERTURBATION_LIMIT, Outcome, Timing
from matbench.show import reasons, units
from matbench.show.table import (
    ON_PAGES,
    Column,
    Group,
    JUnitCase,
    Report,
    Row,
    Section,
    grouped,
    numeric,
    section,
    under,
)
from matbench.show.units import UNKNOWN

BEST = "★"
#: The fastest of the kernels with claims.
BEST_WITH_CLAIMS = "☆"
PERTURBED = "≈"

STYLES = {"measured": "green", "wrong": "bold red", "failed": "red", "skipped": "yellow"}


def report(
    outcomes: Iterable[Outcome], environments: Iterable[Environment], *, fastest: bool = False
) -> Report:
    """The results of the cases; with `fastest`, each kernel only at its fastest parameters.

    A failed case that was retried is shown once, and so are the repetitions of a case. GPUs come
    first, baselines on the CPU last, then by how much devices of the same name differ.
    """
    every, given = list(outcomes), list(environments)
    shown, about = gathering.gathered(every, given)
    statuses = [outcome.status for outcome in shown]
    footer = ", ".join(f"{statuses.count(status)} {status}" for status in ranking.STATUSES)
    if fastest:
        shown = every = ranking.fastest(shown)
        footer += f"; {len(shown)} shown: each kernel at its fastest parameters"
    devices = [device for environment in about for device in environment.devices]
    tables = ranking.tables(shown, devices)
    return Report(
        sections=(*(_section(table, about) for table in tables),),
        footer=footer if statuses else "no outcomes",
        columns=COLUMNS,
        rows=lambda: [row for table in tables for row in table.rows],
        records=lambda: [*given, *every],
        tests=lambda: [_test(row.outcome) for table in tables for row in table.rows],
    )


#: What JUnit calls each status.
ENDED = {"measured": "passed", "wrong": "failure", "failed": "error", "skipped": "skipped"}


def _test(outcome: Outcome) -> JUnitCase:
    """A case as CI systems count it; its time is that of one launch."""
    case = outcome.case
    placing, seed = case.placing, case.problem.seed
    more = {placing.transpose, placing.layout, f"seed {seed}"} - {"NN", "row-major", "seed 0"}
    kernel = f"{case.kernel} {settings_of(case.params)}".strip()
    return JUnitCase(
        suite=f"{case.backend} {case.device}",
        name=f"{kernel} at {', '.join([size_label(case.problem), *sorted(more)])}",
        ended=ENDED[outcome.status],
        reason=reasons.outcome_reason(outcome),
        time_s=None if outcome.median_ns is None else outcome.median_ns / 1e9,
        notes=outcome.notes,
    )


def _section(table: DeviceRanking, environments: Sequence[Environment]) -> Section:
    columns = in_unit(*units.rate_column((r.work_per_s for r in table.rows), table.workload.rate))
    groups, apart = _without_result(table)
    outcomes = sorted((row.outcome for row in table.rows), key=lambda o: o.case.backend == "host")
    ids = {one.case.device_id for one in outcomes if one.case.backend != "host"} - {""}
    places = gathering.places(environments) if len(ids) > 1 else {}
    ranked: list[Group] = []
    for problem, every in table.problems.items():
        label = size_label(problem)
        device_id = every[0].outcome.case.device_id
        if len(ids) > 1 and device_id in ids:
            label += f" on {places.get(device_id, device_id)}"
        # Rows without a time are not ranked; they are listed with the first.
        rankings = grouped(
            (row for row in every if id(row) not in apart),
            lambda row: (bool(row.claims), row.is_double) if row.rivals else (False, False),
        )
        for (claimed, double), among in sorted(rankings.items()):
            title = f"{label}{', float64' if double else ''}{', with claims' if claimed else ''}"
            own = Row.each(columns, among, partial(row_of, among=among))
            ranked.append(Group(f"size {title}", own, title))
    workload, heading = table.workload, list[str]()
    if workload is not workloads.MATMUL:
        about = [f"{workload.name}: {workload.title}"]
        if workload.rate == "B/s":
            about.append("B/s counts each input once and the result")
        if workload.relative_to != "|R|":
            about.append(f"errors are relative to {workload.relative_to}")
        heading.append("; ".join(about))
    heading += device_lines(outcomes, environments, baselines=table.baselines)
    heading += sustained_line(outcomes)
    timed = [r.outcome for r in table.rows if r.rivals and r.outcome.case.device_kind == "cpu"]
    if doubtful := sum(bool(_doubts(outcome.timing)) for outcome in timed):
        is_open = any(row.mark and row.notes for group in ranked for row in group.rows)
        heading.append(
            f"{doubtful} of {len(timed)} times are unsteady or did not settle: usual on a CPU, and "
            "no failure. Trust each only within its ±"
            + ("; a note marks those that leave open which is fastest" if is_open else "")
        )
    blocks = [one.blocks for one in outcomes if one.blocks is not None]
    slowed = [one.perturbation or 0.0 for one in blocks if one.is_perturbed]
    text = f"per block: reading the clock slowed the launch by more than {PERTURBATION_LIMIT:.0%}"
    return section(
        heading=heading,
        columns=columns,
        last_title="status",
        groups=[*ranked, *groups],
        legend=((PERTURBED, f"{text} ({units.percent(max(slowed))} at worst)"),) if slowed else (),
    )


def sustained_line(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """How long sustained launches took, and the power of the idle device."""
    sustained = [outcome.sustained for outcome in outcomes if outcome.sustained is not None]
    if not sustained:
        return
    seconds = units.extremes([one.duration_s for one in sustained], partial(units.number, digits=2))
    line = f"sustained: blocks of launches back to back, {seconds} s in all"
    idle = [one.idle_w for one in sustained if one.idle_w is not None]
    if idle:
        watts = units.extremes(idle, units.number)
        line += f"; the idle device takes {watts} W, which is not subtracted"
    elif all(one.power_w is None for one in sustained):
        line += "; this device has no energy counter"
    yield line


def _without_result(table: DeviceRanking) -> tuple[list[Group], set[int]]:
    """Cases skipped or failed for the same reason at several sizes, and the `id` of their rows:
    a group for those without a result at any size, and one for each other set of sizes."""

    def alike(row: Ranked) -> tuple[object, ...]:
        case, params = row.outcome.case, tuple(row.outcome.case.params.items())
        return case.backend, case.kernel, params, reasons.kind(row.outcome), _notes(row)

    def sizes_of(cases: Iterable[Ranked]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(size_label(row.outcome.case.problem) for row in cases))

    without = (row for row in table.rows if row.outcome.status in ("skipped", "failed"))
    repeated = [cases for cases in grouped(without, alike).values() if len(sizes_of(cases)) > 1]
    groups = []
    for sizes, several in sorted(grouped(repeated, sizes_of).items(), key=lambda it: -len(it[0])):
        every = len(sizes) == len(table.problems)
        label = "all" if every else ", ".join(sizes)
        shown = [
            replace(one, reason=reasons.outcome_reason(*(row.outcome for row in cases)))
            for cases in several
            for one in Row.each(COLUMNS, cases[:1], row_of)
        ]
        title = f"no result at {'any size' if every else label}"
        groups.append(Group(title, tuple(shown), label))
    return groups, {id(row) for cases in repeated for row in cases}


def row_of(row: Ranked, among: Sequence[Ranked] | None = None) -> Row:
    """`among` is its ranking: on a CPU, where doubts are usual, only those are told that leave open
    which of it is the fastest."""
    outcome, doubts = row.outcome, _doubts(row.outcome.timing)
    if among is not None and row.rivals and outcome.case.device_kind == "cpu":
        if row.rivals == 1:
            doubts = [*_drift(outcome.timing)]
        elif not row.leads or sum(one.leads for one in among) == 1:
            doubts = []
    return Row(
        status="" if row.rivals else outcome.status,  # a time implies "measured"
        reason=reasons.outcome_reason(outcome),
        claims=_claimed(row),
        notes=(*doubts, *_notes(row)),
        style=STYLES[outcome.status],
        best=row.best,
        mark=(BEST if row.best else BEST_WITH_CLAIMS) if row.leads and row.rivals > 1 else "",
    )


def size_label(problem: Problem) -> str:
    """The size, and inputs, alpha, beta and batch if they are not the usual ones."""
    usual = Problem(1, 1, 1, inputs=workloads.workload_of(problem).inputs[0])
    drawn = [f"{problem.inputs} inputs"] if problem.inputs != usual.inputs else []
    names = (n for n in ("alpha", "beta", "batch") if getattr(problem, n) != getattr(usual, n))
    factors = [f"{name} = {getattr(problem, name):.9g}" for name in names]
    return ", ".join([problem.size, *drawn, *factors])


def _claimed(row: Ranked) -> str:
    """The claims that weakened the checks of its result, if there is a result."""
    judged = row.claims and row.outcome.status in ("measured", "wrong")
    return f"claims: {'; '.join(row.claims)}" if judged else ""


#: Other programs that take no more than this share of a CPU hardly disturb a library's threads.
_BUSY = 0.1


def _notes(row: Ranked) -> tuple[str, ...]:
    """The notes on its samples, on the case, and on its other launches; see also `_doubts`."""
    outcome, sustained, notes = row.outcome, row.outcome.sustained, [*row.notes]
    if row.hot is not None:
        notes += [f"hot samples: {note}" for note in (*_doubts(row.hot), *row.hot.notes)]
    share = ranking.others_share([outcome]) if outcome.case.backend == "host" else None
    if share is not None and share > _BUSY:
        told = f"other programs took {share:.0%} of its cores"
        notes.append(f"{told}; one thread is steadier (OPENBLAS_NUM_THREADS=1)")
    if sustained is not None and not sustained.steady:
        notes.append("sustained: the device was not steady")
    if sustained is not None and sustained.throttled:
        notes.append(f"sustained: clocks throttled: {', '.join(sustained.throttled)}")
    return tuple(notes)


def _doubts(timing: Timing | None) -> list[str]:
    """What its samples alone give reason to doubt."""
    state = []
    if timing is not None and timing.settled is False:
        state = [f"not settled: {timing.stopped}" if timing.stopped else "not settled"]
    return [*state, *_drift(timing)]


def _drift(timing: Timing | None) -> tuple[str, ...]:
    if timing is None:
        return ()
    shift = statistics.drift(timing.samples_ns, ranking.spread(timing))
    told = f"drifting: {shift:+.1%} from the first to the last third of the samples"
    return (told,) if shift else ()


def _remarks(row: Ranked) -> str:
    reason = reasons.outcome_reason(row.outcome)
    notes = *_doubts(row.outcome.timing), *_notes(row)
    return " · ".join(filter(None, [reason, _claimed(row), *notes]))


#: Of which pages show first what tells cases apart, then speed and accuracy.
COLUMNS: tuple[Column, ...] = (
    *under("outcome.case", "backend"),
    Column("device", "device", "outcome.case.device", drop=ON_PAGES, page=4),
    *under("outcome.case", "device_id device_kind"),
    *under("outcome.case.problem", "workload size M N K alpha beta batch"),
    Column("inputs", "inputs", "outcome.case.problem.inputs", drop=ON_PAGES, page=4),
    *under("outcome.case.problem", "seed"),
    *under("outcome.case.placing", "layout transpose"),
    *under("outcome.case", "group"),
    Column("kernel", "kernel", "outcome.case.kernel", shared=True, page=1),
    Column("precision", "precision", "outcome.case.claims.precision", drop=ON_PAGES, page=4),
    Column("parameters", "params", "outcome.case.params", shared=True, page=1),
    numeric("size", value=lambda row: row.work, drop=ON_PAGES, page=1,
            cell=lambda row, _: size_label(row.outcome.case.problem)),
    Column("status", "status", "outcome.status", drop=ON_PAGES, page=2),
    Column("", "reason", lambda row: reasons.outcome_reason(row.outcome)),
    *under("", "best claims"),
    numeric("time", "median_ns", "outcome.median_ns", scale=units.durations, page=1),
    *under("outcome.timing.interval_ns", "interval_low_ns=0 interval_high_ns=1"),
    numeric("±", "spread", form=units.percent, drop=1, page=2),
    numeric("samples", "samples", "outcome.samples_ns.len", drop=ON_PAGES, page=4,
            form=lambda many: units.count(many or None)),
    Column("timing", "timing_mode", "outcome.mode", drop=ON_PAGES, page=4),
    *under("outcome.timing", "settled stopped"),
    numeric("hot", "hot_median_ns", "hot.median_ns", scale=units.durations, drop=2, page=3),
    numeric("hot ±", value=lambda row: ranking.spread(row.hot), form=units.percent, drop=2),
    *under("hot.interval_ns", "hot_interval_low_ns=0 hot_interval_high_ns=1"),
    *under("hot", "hot_samples=samples_ns.len hot_settled=settled hot_stopped=stopped"),
    Column("", "hot_notes", lambda row: (*_drift(row.hot), *(row.hot.notes if row.hot else ()))),
    numeric("host", "host_ns", "outcome.host_ns", scale=units.durations, drop=4),
    numeric("sustained", value="sustained_per_s", drop=2, place=1, page=3),
    *under("outcome.sustained", "sustained_ns=mean_ns sustained_steady=steady"),
    numeric("SM MHz", "sustained_sm_mhz", "outcome.sustained.sm_mhz",
            partial(units.number, digits=4), drop=4, place=1, page=3),
    numeric("W", "sustained_power_w", "outcome.sustained.power_w", units.number, drop=3, place=1,
            page=3),
    *under("outcome.sustained", "sustained_idle_w=idle_w"),
    numeric("J per launch", "sustained_energy_j", "outcome.sustained.energy_j", units.number,
            drop=1, place=1, page=3),
    numeric("work/J", "sustained_work_per_j", "work_per_j", drop=3, place=1, page=3,
            form=lambda work: units.number(work and work / 1e9)),
    numeric("per block", "block_median_ns", "outcome.blocks.median_ns", scale=units.durations,
            cell=lambda row, text: (
                f"{PERTURBED} {text}" if (one := row.outcome.blocks) and one.is_perturbed else text
            ), drop=5, page=3),
    numeric("imbalance", "block_imbalance", "outcome.blocks.imbalance", units.percent, drop=8,
            page=3),
    *under("outcome.blocks", "block_perturbation=perturbation sm_mhz"),
    numeric("rate", value="work_per_s", drop=2, page=2),
    Column("", "gflops", lambda row: row.giga_per_s("FLOP/s")),
    Column("", "gbytes_per_s", lambda row: row.giga_per_s("B/s")),
    numeric("% of cuBLAS", "of_cublas", form=units.share, drop=9, page=2),
    numeric("% of NumPy", "of_numpy", form=units.share, drop=9, page=2),
    numeric("% of limit", "of_limit", form=units.share, drop=10, page=2),
    numeric("× slowest", "times_slowest", form=units.times, drop=4, place=2,
            cell=lambda row, text: text if row.rivals > 1 else UNKNOWN),
    numeric("max rel err", "max_rel_err", "outcome.accuracy.max_rel_err", units.error, drop=3,
            shared=True, place=2, page=2),
    numeric("avg rel err", "avg_rel_err", "outcome.accuracy.avg_rel_err", units.error, drop=6,
            shared=True, place=2, page=3),
    numeric("of bound", "bound_ratio", "outcome.accuracy.bound_ratio", units.percent, drop=7,
            shared=True, place=2, page=3),
    numeric("registers", "registers", "outcome.build.resources.registers", units.count,
            drop=ON_PAGES, page=3),
    numeric("occupancy", "occupancy", "outcome.build.occupancy", units.percent, drop=ON_PAGES,
            page=3),
    *under("outcome.case", "sha256"),
    Column("", "notes", lambda row: (*_drift(row.outcome.timing), *row.notes)),
    Column("remarks", value=_remarks, drop=ON_PAGES, page=2),
)  # fmt: skip


def in_unit(
    rate: str, form: units.Formatter, columns: Sequence[Column] = COLUMNS
) -> tuple[Column, ...]:
    """The columns with a format for rates; `rate` names its unit: `GFLOP/s`, or `GB/s`."""
    titles = {"rate": rate, "sustained": f"sustained {rate}"}
    titles |= {"work/J": f"G{rate[1:].removesuffix('/s')}/J"}
    titles |= {"% of limit": "% of copy"} if rate[1:] == "B/s" else {}
    forms = dict.fromkeys(("rate", "sustained"), form)
    return tuple(
        replace(c, title=titles.get(c.title, c.title), form=forms.get(c.title, c.form))
        for c in columns
    )


# The lines above a table: the device, its software, and the conditions of the measurement

CPU_TIMINGS = "CPU timings: measured on a processor, not on a GPU"

_MODES = {
    "cold": "cold samples: the cache is overwritten before each",
    "hot": "hot samples: the cache is not overwritten",
    "hot graph": "hot samples: launches back to back, as one CUDA graph",
    "rotating": "samples are blocks of launches on rotating buffers, at the settled clock",
}


def device_lines(
    outcomes: Sequence[Outcome], environments: Sequence[Environment], *, baselines: bool = False
) -> list[str]:
    """Device, driver and toolkit, then the conditions; the outcomes are those of one device."""
    first = outcomes[0].case
    backends = dict.fromkeys(outcome.case.backend for outcome in outcomes)
    used = [
        (str(device.properties.get("host") or environment.host), device)
        for environment in environments
        for device in environment.devices
        if device.name == first.device and device.backend in backends
    ]
    hosts = dict.fromkeys(host for host, _ in used)
    named = ["baselines on the CPU" if baselines else "", _agreed(backends), first.device]
    # The host's load when its cases began, and its frequency governor.
    moments = [t.conditions[0] for o in outcomes for t in (o.cold, o.hot) if t and t.conditions]
    loads = [moment.load for moment in moments if moment.load is not None]
    governors = _agreed(sorted({moment.governor for moment in moments if moment.governor}))
    load = [
        f"load average {units.extremes(loads, '{:,.1f}'.format)}" if loads else "",
        f"frequency governor {governors}" if governors else "",
    ]
    # SM clocks while blocks were stamped or samples taken, separately for hot samples.
    stamped = [o.blocks.sm_mhz for o in outcomes if o.blocks is not None and o.blocks.sm_mhz]
    held = stamped or [clock for o in outcomes if (clock := held_mhz(o.timing))]
    hot = [clock for o in outcomes if o.cold is not None and (clock := held_mhz(o.hot))]
    clocks = [
        f"SM clock held: {units.extremes(held, '{:,.0f}'.format)} MHz" if held else "",
        f"hot: {units.extremes(hot, '{:,.0f}'.format)} MHz" if hot else "",
    ]
    repeats = {environment.settings.get("repeat", 1) for environment in environments} - {1}
    lines = [
        " · ".join(filter(None, named)) or "device unknown",
        _agreed(f"driver {device.driver} · {device.toolkit}" for _, device in used),
        *([CPU_TIMINGS, " · ".join(filter(None, load))] if first.device_kind == "cpu" else []),
        ", ".join(filter(None, clocks)),
        _modes(outcomes),
        f"each case in {_agreed(map(str, repeats))} processes" if repeats else "",
        f"from several hosts: {_agreed(hosts)}" if len(hosts) > 1 else "",
    ]
    return [line for line in lines if line]


def _agreed(texts: Iterable[str]) -> str:
    """Different texts, each once."""
    return " / ".join(dict.fromkeys(filter(None, texts)))


def _modes(outcomes: Sequence[Outcome]) -> str:
    """The kind of samples that rows are ranked by, and the kind in the column `hot`."""
    modes = {outcome.mode for outcome in outcomes if outcome.mode is not None}
    if len(modes) > 1:
        return f"{' and '.join(sorted(modes))} samples, ranked separately"
    hot = [_MODES[mode] for mode in sorted({o.hot.mode for o in outcomes if o.hot})]
    beside = [mode.replace("hot samples", "hot") for mode in hot] if "cold" in modes else []
    return "; ".join([_MODES[mode] for mode in modes] + beside)
