"""What determines the speed of a case: its figures, and its occupancy on each architecture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from matbench import workloads
from matbench.analysis.ranking import spread
from matbench.errors import listed
from matbench.features.explain import machine_code_view, roofline
from matbench.features.explain.bounds import dram_traffic_bytes
from matbench.features.explain.bounds_view import rates_of, words
from matbench.features.explain.other_devices import named
from matbench.features.explain.record import Explanation, Fit, Limiter
from matbench.model import WORD_BYTES
from matbench.records import encoding
from matbench.records.environment import Environment
from matbench.show.table import (
    Column,
    Fact,
    Group,
    Report,
    Row,
    Section,
    facts_section,
    grouped,
    numeric,
    section,
    under,
)
from matbench.show.units import UNKNOWN, bandwidth, bytes_, count, duration, number, percent


def _by(limiter: Limiter) -> Callable[[Fit], int | None]:
    """How many blocks a resource alone would allow."""
    return lambda fit: fit.occupancy.by.get(limiter) if fit.occupancy is not None else None


def _resident(fit: Fit, text: str) -> str:
    if fit.occupancy is None:
        return count(fit.driver_blocks)
    differs = fit.driver_blocks not in (None, fit.occupancy.blocks)
    return f"{text} (driver: {fit.driver_blocks})" if differs else text


PAGE = "explanations"
#: Of what fits.
_COLUMNS = (
    *under("", "architecture here"),
    Column("parameters", "params"),
    numeric("threads", "threads_per_block", form=count),
    numeric("registers", "registers", form=count, drop=3),
    numeric("shared (B)", "shared_bytes", form=count),
    numeric("fit by threads", value=_by("threads"), form=count, drop=4),
    numeric("by registers", value=_by("registers"), form=count, drop=5),
    numeric("by shared", value=_by("shared memory"), form=count, drop=4),
    numeric("resident", "resident_blocks", "occupancy.blocks", cell=_resident),
    *under("", "driver_blocks"),
    numeric("occupancy", "occupancy_share", "occupancy.share", drop=1,
            form=lambda share: UNKNOWN if share is None else f"{share:.0%}"),
    *under("occupancy", "limiters"),
    *under("", "reason"),
)  # fmt: skip


def report(
    explanation: Explanation, environments: Sequence[Environment], *, chart: int | None = 76
) -> Report:
    """The explanation in every format; `chart` is the width of the roofline, None omits it."""
    device = _device(explanation, environments)
    heading = (
        f"{explanation.case.label}{f' on {device}' if device else ', no device'}",
        *_on_a_cpu(explanation),
        *(roofline.chart(explanation, chart) if chart is not None else ()),
    )
    groups = grouped(explanation.fits, lambda fit: (fit.here, fit.architecture))
    return Report(
        sections=(
            facts_section(heading, "of the case", facts(explanation)),
            *(
                [machine_code_view.section(explanation.code, explanation.counters)]
                if explanation.code is not None
                else []
            ),
            *(_fits_section(explanation, fits, device) for fits in groups.values()),
        ),
        footer="\n".join(words(explanation)),
        columns=_COLUMNS,
        rows=lambda: explanation.fits,
        json=lambda: encoding.array([*environments, explanation]),
    )


def recorded(
    found: Iterable[tuple[Explanation, object]], environments: Sequence[Environment]
) -> Report:
    """Explanations of record files, as `explain` prints them, without the text chart."""
    shown = [report(explanation, environments, chart=None) for explanation, _ in found]
    return Report(
        sections=tuple(section for each in shown for section in each.sections),
        footer="\n".join(each.footer for each in shown),
        columns=_COLUMNS,
        rows=lambda: [fit for each in shown for fit in each.rows()],
        json=lambda: encoding.array([*environments, *(explanation for explanation, _ in found)]),
    )


def _on_a_cpu(explanation: Explanation) -> Iterator[str]:
    """What a CPU shows of a kernel that is meant for GPUs."""
    if explanation.case.device_kind == "cpu":
        others = dict.fromkeys(fit.architecture for fit in explanation.fits if fit.architecture)
        yield "this is a CPU: times and limits are its own; " + (
            f"{listed(others, 'and')}: as computed"
            if others
            else "for occupancy and machine code of a GPU, add --arch hopper"
        )


def _device(explanation: Explanation, environments: Sequence[Environment]) -> str:
    """The device as its environment labels it; empty if there is none."""
    case = explanation.case
    for info in (info for environment in environments for info in environment.devices):
        if (info.backend, info.name) == (case.backend, case.device):
            return info.label
    return f"{case.backend} {case.device}"


def facts(explanation: Explanation) -> list[Fact]:
    """The figures of a case; later ones build on earlier ones."""
    return [
        *_traffic(explanation),
        *_measured(explanation),
        *_launched(explanation),
        *_counted(explanation),
    ]


def _traffic(explanation: Explanation) -> Iterator[Fact]:
    moved, problem = explanation.traffic, explanation.case.problem
    claims, workload = moved.claims, workloads.workload_of(problem)
    yield Fact("operations", count(moved.operations), workload.title)
    if moved.loads is not None:
        once = moved.stores == workload.words("C", problem) * problem.batch
        stores = "the output, once" if once else "a partial result per block"
        stores, loads = claims.get("global_stores", stores), claims.get("global_loads")
        how = "modelled"
        if moved.is_derived:
            how, loads, stores = "derived", "in the machine code", "in the machine code"
        yield Fact(f"{how} loads", count(moved.loads), f"elements: {loads}")
        yield Fact(f"{how} stores", count(moved.stores), f"elements: {stores}")
        yield Fact(f"{how} traffic", bytes_(moved.bytes), "without caches")
        yield Fact(f"{how} intensity", number(moved.intensity), "operations per byte")
    if moved.shared_loads is not None:
        claim = f"elements: {claims['shared_loads']}"
        yield Fact("modelled shared loads", count(moved.shared_loads), claim)
    each_once = "each input read once, the output written once"
    yield Fact("minimum traffic", bytes_(moved.least_bytes), each_once)
    yield Fact("highest intensity", number(moved.least_intensity), "at the minimum traffic")


def _measured(explanation: Explanation) -> Iterator[Fact]:
    rate, outcome, limits = rates_of(explanation), explanation.outcome, explanation.limits
    if outcome is not None and outcome.median_ns:
        how = f"median of a short run, {outcome.mode}"
        if (timing := outcome.timing) is not None and timing.interval_ns is not None:
            how += f": ± {percent(spread(timing))}"
        yield Fact("measured time", duration(outcome.median_ns), how)
        if explanation.operations_per_s:
            what = "operations on integers" if explanation.whole_numbers else ""
            yield Fact("measured rate", rate(explanation.operations_per_s), what)
        least = explanation.traffic.least_bytes / outcome.median_ns * 1e9
        yield Fact("minimum bandwidth", bandwidth(least), "the minimum traffic in that time")
    if limits is not None:
        copied = bandwidth(limits.copy_bytes_per_s)
        yield Fact("measured copy", copied, "this device's limit, bytes read and written")
        if not explanation.whole_numbers:
            fastest = rate(limits.fma_flop_per_s)
            yield Fact("measured multiply-adds", fastest, "this device's limit, float32")
    if explanation.clock_flop_per_s is not None:
        clock, arithmetic = f"at {count(explanation.sm_mhz)} MHz", explanation.case.arithmetic
        if arithmetic is not None:
            clock += f", with {arithmetic.products} × {arithmetic.precision} for each product"
        yield Fact("peak at this clock", rate(explanation.clock_flop_per_s), clock)


def _launched(explanation: Explanation) -> Iterator[Fact]:
    """Its launch; what a block takes is in the tables of what fits."""
    if (launch := explanation.case.launch) is not None:
        yield Fact("blocks", count(launch.blocks), f"of {count(launch.threads_per_block)} threads")
    build = explanation.outcome.build if explanation.outcome is not None else None
    if build is not None and build.resources is not None and build.resources.spilled_bytes:
        yield Fact(
            "spilled registers", f"{count(build.resources.spilled_bytes)} bytes", "per thread"
        )


def _counted(explanation: Explanation) -> Iterator[Fact]:
    """What hardware counters measured, each compared with the model."""
    counters, moved = explanation.counters, explanation.traffic
    if counters is None:
        return
    dram_bytes = dram_traffic_bytes(counters)
    if dram_bytes is not None:
        compared = f"{dram_bytes / moved.least_bytes:.2f} × the minimum"
        if moved.bytes:
            compared += f", {dram_bytes / moved.bytes:.2f} × the modelled"
        yield Fact("measured DRAM traffic", bytes_(dram_bytes), compared)
    if counters.shared_bytes is not None:
        compared = "moved by its instructions"
        if moved.shared_loads:
            ratio = counters.shared_bytes / (WORD_BYTES["float32"] * moved.shared_loads)
            compared += f", {ratio:.2f} × the modelled loads"
        yield Fact("measured shared memory", bytes_(counters.shared_bytes), compared)
    if counters.bank_conflicts is not None:
        yield Fact("measured bank conflicts", count(counters.bank_conflicts), "in shared memory")
    if counters.achieved_occupancy is not None:
        active = f"{counters.achieved_occupancy:.0%}"
        yield Fact("measured occupancy", active, "share of warps active, on average")


def _fits_section(explanation: Explanation, fits: Sequence[Fit], device: str) -> Section:
    first = fits[0]
    heading = [f"this device: {device}"] if first.here else []
    if first.architecture is not None:
        a = named(first.architecture)
        heading.append(
            f"{a.name}: a multiprocessor holds {a.threads:,} threads, {a.blocks} blocks, "
            f"{a.registers:,} registers and {a.shared_bytes:,} bytes of shared memory; "
            f"a block has at most {a.threads_per_block:,} threads"
        )

    def row(fit: Fit) -> Row:
        limiters = UNKNOWN if fit.occupancy is None else ", ".join(fit.occupancy.limiters)
        return Row(
            status="illegal" if fit.reason else limiters,
            reason=fit.reason or "",
            best=fit.params == explanation.case.params,
        )

    rows = Row.each(_COLUMNS, fits, row)
    return section([*heading, *_unknown(fits)], _COLUMNS, "limited by", [Group("", rows)])


def _unknown(fits: Sequence[Fit]) -> Iterator[str]:
    """The resources that were unknown when the occupancy on this architecture was computed."""
    fitting = [fit for fit in fits if fit.occupancy is not None]
    if any(fit.registers is None for fit in fitting):
        yield "registers unknown: assumed not to limit"
    if any(fit.shared_bytes is None for fit in fitting):
        yield "static shared memory unknown: assumed to be 0"
    first = fitting[0].architecture if fitting else None
    if first is not None and named(first).compute_capability < (2, 0):
        yield "not counted: launch parameters, which are in shared memory here (≤ 256 bytes)"
