"""What determines the speed of a case: its figures, occupancy on each architecture, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from matbench import workloads
from matbench.analysis.ranking import spread
from matbench.errors import listed
from matbench.features.explain import machine_code_view
from matbench.features.explain.architectures import named
from matbench.features.explain.explanation import BOUND_SHARE
from matbench.features.explain.machine_code_view import WORDS
from matbench.features.explain.record import Explanation, Fit, Limiter, Limits
from matbench.model import WORD_BYTES
from matbench.records.environment import Environment
from matbench.show import table, units
from matbench.show.reasons import outcome_reason
from matbench.show.table import Column, Fact, Group, Report, Row, Section, numeric, under

PAGE = "explanations"
#: Below this occupancy there are few warps to hide latency.
_FEW = 0.5


def _by(limiter: Limiter) -> Callable[[Fit], int | None]:
    return lambda fit: fit.occupancy.by.get(limiter) if fit.occupancy is not None else None


def _resident(fit: Fit, text: str) -> str:
    if fit.occupancy is None:
        return units.count(fit.driver_blocks)
    differs = fit.driver_blocks not in (None, fit.occupancy.blocks)
    return f"{text} (driver: {fit.driver_blocks})" if differs else text


#: Of what fits.
_COLUMNS = (
    *under("", "architecture here"),
    Column("parameters", "params"),
    numeric("threads", "threads_per_block", form=units.count),
    numeric("registers", "registers", form=units.count, drop=3),
    numeric("shared (B)", "shared_bytes", form=units.count),
    numeric("fit by threads", value=_by("threads"), form=units.count, drop=4),
    numeric("by registers", value=_by("registers"), form=units.count, drop=5),
    numeric("by shared", value=_by("shared memory"), form=units.count, drop=4),
    numeric("resident", "resident_blocks", "occupancy.blocks", cell=_resident),
    *under("", "driver_blocks"),
    numeric("occupancy", "occupancy_share", "occupancy.share", drop=1,
            form=lambda share: units.UNKNOWN if share is None else f"{share:.0%}"),
    *under("occupancy", "limiters"),
    *under("", "reason"),
)  # fmt: skip


def report(explanations: Iterable[Explanation], environments: Sequence[Environment]) -> Report:
    """Explanations in every format."""
    shown = list(explanations)
    return Report(
        sections=tuple(part for each in shown for part in _sections(each, environments)),
        footer="\n".join(line for each in shown for line in words(each)),
        columns=_COLUMNS,
        rows=lambda: [fit for each in shown for fit in each.fits],
        records=lambda: [*environments, *shown],
    )


def _sections(explanation: Explanation, environments: Sequence[Environment]) -> Iterator[Section]:
    """The figures of the case, those of its machine code, and what fits on each architecture."""
    case = explanation.case
    infos = [info for environment in environments for info in environment.devices]
    labels = [i.label for i in infos if (i.backend, i.name) == (case.backend, case.device)]
    device = next(iter(labels), f"{case.backend} {case.device}" if case.device else "")
    heading = [f"{case.label}{f' on {device}' if device else ', no device'}"]
    if case.device_kind == "cpu":
        others = dict.fromkeys(fit.architecture for fit in explanation.fits if fit.architecture)
        told = "for occupancy and machine code of a GPU, add --arch hopper"
        told = f"{listed(others, 'and')}: as computed" if others else told
        heading.append(f"this is a CPU: times and limits are its own; {told}")
    yield table.facts_section(heading, "of the case", facts(explanation))
    if explanation.code is not None:
        yield machine_code_view.section(explanation.code, explanation.counters)
    for fits in table.grouped(explanation.fits, lambda fit: (fit.here, fit.architecture)).values():
        yield _fits_section(explanation, fits, device)


def _fits_section(explanation: Explanation, fits: Sequence[Fit], device: str) -> Section:
    heading = [f"this device: {device}"] if fits[0].here else []
    if fits[0].architecture is not None:
        a, told = named(fits[0].architecture), WORDS["occupancy"]
        heading.append(told["holds"].format(a=a))
        fitting = [fit for fit in fits if fit.occupancy is not None]
        if any(fit.registers is None for fit in fitting):
            heading.append(told["no registers"])
        if any(fit.shared_bytes is None for fit in fitting):
            heading.append(told["no shared memory"])
        if fitting and a.compute_capability < (2, 0):
            heading.append(told["parameters"])

    def row(fit: Fit) -> Row:
        limiters = units.UNKNOWN if fit.occupancy is None else ", ".join(fit.occupancy.limiters)
        status = "illegal" if fit.reason else limiters
        is_chosen = fit.params == explanation.case.params
        return Row(status=status, reason=fit.reason or "", best=is_chosen)

    rows = Row.each(_COLUMNS, fits, row)
    return table.section(heading or ["occupancy"], _COLUMNS, "limited by", [Group("", rows)])


def facts(explanation: Explanation) -> list[Fact]:
    """The figures of a case."""
    return [*_traffic(explanation), *_measured(explanation), *_counted(explanation)]


def _traffic(explanation: Explanation) -> Iterator[Fact]:
    moved, problem = explanation.traffic, explanation.case.problem
    claims, workload = moved.claims, workloads.workload_of(problem)
    yield Fact("operations", units.count(moved.operations), workload.title)
    if moved.bytes is not None:
        once = moved.stores == workload.words("C", problem) * problem.batch
        stores = "the output, once" if once else "a partial result per block"
        stores, loads = claims.get("global_stores", stores), claims.get("global_loads")
        how = "modelled"
        if moved.is_derived:
            how, loads, stores = "derived", "in the machine code", "in the machine code"
        times = f"without caches: {moved.bytes / moved.least_bytes:,.1f} × the minimum"
        yield Fact(f"{how} loads", units.count(moved.loads), f"elements: {loads}")
        yield Fact(f"{how} stores", units.count(moved.stores), f"elements: {stores}")
        yield Fact(f"{how} traffic", units.bytes_(moved.bytes), times)
        yield Fact(f"{how} intensity", units.number(moved.intensity), "operations per byte")
    elif moved.claimed_bytes is not None:
        invalid = "less than the minimum: the model is not valid at this size"
        yield Fact("modelled traffic", units.bytes_(moved.claimed_bytes), invalid)
    else:
        why = "[model] has no global_loads, and no machine code was read"
        if explanation.code is not None:
            why = "[model] has no global_loads, nor does all of it follow from the machine code"
        yield Fact("modelled traffic", units.UNKNOWN, why)
    if moved.shared_loads is not None:
        claim = f"elements: {claims['shared_loads']}"
        yield Fact("modelled shared loads", units.count(moved.shared_loads), claim)
    each_once = "each input read once, the output written once"
    yield Fact("minimum traffic", units.bytes_(moved.least_bytes), each_once)
    yield Fact("highest intensity", units.number(moved.least_intensity), "at the minimum traffic")


def _measured(explanation: Explanation) -> Iterator[Fact]:
    """Its time, rate and launch beside the device's limits."""
    rate, outcome, limits = rates_of(explanation), explanation.outcome, explanation.limits
    moved = explanation.traffic
    if outcome is not None and outcome.median_ns:
        how = f"median of a short run, {outcome.mode}"
        if (timing := outcome.timing) is not None and timing.interval_ns is not None:
            how += f": ± {units.percent(spread(timing))}"
        yield Fact("measured time", units.duration(outcome.median_ns), how)
        if explanation.operations_per_s:
            what = "operations on integers" if explanation.whole_numbers else ""
            yield Fact("measured rate", rate(explanation.operations_per_s), what)
        least = moved.least_bytes / outcome.median_ns * 1e9
        yield Fact("minimum bandwidth", units.bandwidth(least), "the minimum traffic in that time")
    if limits is not None:
        copied = units.bandwidth(limits.copy_bytes_per_s)
        yield Fact("measured copy", copied, "this device's limit, bytes read and written")
        if not explanation.whole_numbers:
            flat = rate(limits.fma_flop_per_s)
            yield Fact("measured multiply-adds", flat, "this device's limit, float32")
            yield from _roofs(explanation, limits)
    if explanation.clock_flop_per_s is not None:
        clock, arithmetic = f"at {units.count(explanation.sm_mhz)} MHz", explanation.case.arithmetic
        if arithmetic is not None:
            clock += f", with {arithmetic.products} × {arithmetic.precision} for each product"
        yield Fact("peak at this clock", rate(explanation.clock_flop_per_s), clock)
    if (launch := explanation.case.launch) is not None:
        threads = f"of {units.count(launch.threads_per_block)} threads"
        yield Fact("blocks", units.count(launch.blocks), threads)
    build = outcome.build if outcome is not None else None
    if build is not None and build.resources is not None and build.resources.spilled_bytes:
        spilled = f"{units.count(build.resources.spilled_bytes)} bytes"
        yield Fact("spilled registers", spilled, "per thread")


def _roofs(explanation: Explanation, limits: Limits) -> Iterator[Fact]:
    """The highest rates at the intensities of the traffic: by S. Williams and others, "Roofline",
    Communications of the ACM 52 (2009)."""
    rate, moved = rates_of(explanation), explanation.traffic
    how = "derived" if moved.is_derived else "modelled"
    for traffic, intensity in (("minimum", moved.least_intensity), (how, moved.intensity)):
        if intensity:
            slope = limits.copy_bytes_per_s * intensity
            limit = "the copy" if slope < limits.fma_flop_per_s else "multiply-adds"
            roof = rate(min(slope, limits.fma_flop_per_s))
            yield Fact(f"roof at the {traffic} traffic", roof, f"limited by {limit}")


def _counted(explanation: Explanation) -> Iterator[Fact]:
    """What hardware counters measured, each compared with the model."""
    counters, moved = explanation.counters, explanation.traffic
    if counters is None:
        return
    if counters.dram_bytes is not None:
        compared = f"{counters.dram_bytes / moved.least_bytes:.2f} × the minimum"
        if moved.bytes:
            compared += f", {counters.dram_bytes / moved.bytes:.2f} × the modelled"
        yield Fact("measured DRAM traffic", units.bytes_(counters.dram_bytes), compared)
    if counters.shared_bytes is not None:
        compared = "moved by its instructions"
        if moved.shared_loads:
            ratio = counters.shared_bytes / (WORD_BYTES["float32"] * moved.shared_loads)
            compared += f", {ratio:.2f} × the modelled loads"
        yield Fact("measured shared memory", units.bytes_(counters.shared_bytes), compared)
    if counters.bank_conflicts is not None:
        conflicts = units.count(counters.bank_conflicts)
        yield Fact("measured bank conflicts", conflicts, "in shared memory")
    if counters.achieved_occupancy is not None:
        active = f"{counters.achieved_occupancy:.0%}"
        yield Fact("measured occupancy", active, "share of warps active, on average")


def rates_of(explanation: Explanation) -> units.Formatter:
    """All rates of an explanation in the unit of the largest."""
    if explanation.whole_numbers:
        return units.rates([explanation.operations_per_s], "op/s")
    most = explanation.limits.fma_flop_per_s if explanation.limits is not None else None
    return units.rates([explanation.operations_per_s, explanation.clock_flop_per_s, most], "FLOP/s")


def words(explanation: Explanation) -> Iterator[str]:
    """What limits the case, in sentences that say only what was modelled or measured."""
    bound, outcome, limits = explanation.bound, explanation.outcome, explanation.limits
    if bound.by == "not known":
        why = "no limits were measured"
        if outcome is None:
            why = "the run was interrupted" if explanation.case.device else "there is no device"
        elif outcome.status != "measured":
            first, _, _ = outcome_reason(outcome).partition("\n")
            why = f"{outcome.status}, {first}"
        yield f"What limits it is not known: {why}."
        yield from machine_code_view.words(explanation)
        return
    rate, counted = rates_of(explanation), bound.counted_share
    if explanation.tensor_cores:
        computed = "It uses tensor cores, whose limit is not measured"
    elif not explanation.operations_per_s:
        computed = "It does no arithmetic"
    else:
        computed = f"It computes at {rate(explanation.operations_per_s)}"
        if explanation.whole_numbers or limits is None:
            computed += " with integers, for which no limit is measured"
        else:
            share = units.percent(bound.computed_share)
            most = rate(limits.fma_flop_per_s)
            computed += f", {share} of the {most} measured for multiply-adds alone"
    moved = "the minimum traffic" if counted is None else "its measured DRAM traffic"
    share = units.percent(bound.least_share if counted is None else counted)
    yield f"{computed}; {moved} takes {share} of the bandwidth of a copy."
    if bound.by == "memory" and counted is not None:
        yield "It is memory-bound."
    elif bound.by != "neither":
        yield WORDS["conclusions"][bound.by]
    else:
        yield from _neither(explanation)
    yield from machine_code_view.words(explanation)


def _neither(explanation: Explanation) -> Iterator[str]:
    bound, launch, neither = explanation.bound, explanation.case.launch, WORDS["neither"]
    idle, modelled = bound.idle_multiprocessors, bound.modelled_share or 0.0
    if idle and launch is not None:
        blocks = "1 block" if launch.blocks == 1 else f"{launch.blocks:,} blocks"
        many = f"{launch.blocks + idle} multiprocessors"
        yield f"The launch has {blocks} for {many}: {idle} are idle."
    if modelled > 1:
        yield neither["cached"].format(modelled=modelled, cached=1 - 1 / modelled)
    elif modelled >= BOUND_SHARE and bound.counted_share is None:
        yield neither["uncached"].format(modelled=modelled)
    elif explanation.case.device_kind == "cpu":
        yield neither["cpu"]
    elif not idle:
        yield neither["gpu"]
    for fit in explanation.fits:
        if fit.here and fit.params == explanation.case.params and fit.occupancy is not None:
            few = ": few warps to hide latency" if fit.occupancy.share < _FEW else ""
            yield f"Its occupancy is {fit.occupancy.share:.0%}{few}."
    if bound.counted_share is None and explanation.case.backend == "cuda":
        yield "`--counters` measures DRAM traffic, bank conflicts and occupancy."
