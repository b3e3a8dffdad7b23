"""Why a kernel is as fast as it is: what it claims, what it was given, and what was measured.

What front matter claims is called modelled, what a clock or a counter gave is called measured, and
no figure is both. The words at the end say what bounds the kernel, and never more than was seen.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from matbench import workloads
from matbench.analysis import architectures
from matbench.analysis.architectures import ARCHITECTURES, Architecture, Occupancy
from matbench.analysis.roofline import Point, Roofline
from matbench.backends import compiled_resources
from matbench.cache import Cache
from matbench.errors import BuildError, UsageError
from matbench.kernelfile import expressions, sweep
from matbench.measure import limits as device_limits
from matbench.measure.counters import Counters
from matbench.measure.limits import Limits
from matbench.model import (
    WORD_BYTES,
    Case,
    DeviceInfo,
    Environment,
    Kernel,
    Launch,
    Outcome,
    Problem,
    Resources,
    TimingMode,
    settings_of,
)
from matbench.records import results
from matbench.show.report import UNKNOWN, Column, Group, Report, Row, Section

#: The values of TILE that are held against each other, with the kernel's own.
TILES = (4, 8, 12, 16, 20, 24, 32)
#: From this share of a limit on it counts as what bounds a kernel.
BOUND = 0.7
#: Reading alone is faster than a copy by this factor at most.
_READS_MORE = 1.2
#: Below this occupancy there are few warps to hide latency.
_FEW = 0.5
#: A device whose product is not known: front matter may name its number of multiprocessors.
_MULTIPROCESSORS = 16
_ELEMENT_BYTES = 4
#: How a source asks for tensor cores, in PTX or CUDA C++.
_TENSOR_CORES = re.compile(r"\b(?:wg)?mma(?:\.|_sync|_async)|\bwmma::|\btcgen05\.mma")


class Traffic(msgspec.Struct, frozen=True):
    """Memory traffic as modelled: elements that all threads load and store, caches left aside.

    `least_bytes` reads each input once and writes the output once. Intensities are operations per
    byte of global memory; no kernel has a higher one than `least_intensity`. `claims` is front
    matter's `[model]`; where it has no `global_loads`, nothing but the least is modelled, nor where
    what it claims is less than that: `doubt` says so.
    """

    operations: int
    least_bytes: int
    least_intensity: float
    loads: float | None = None
    stores: float | None = None
    bytes: float | None = None
    intensity: float | None = None
    shared_loads: float | None = None
    claims: dict[str, str] = {}
    doubt: str | None = None


def traffic(
    kernel: Kernel, problem: Problem, params: Mapping[str, int], limits: Mapping[str, int]
) -> Traffic:
    """What `[model]` claims for one case; without `global_stores`, the output is written once.

    Where the host finishes, that output is one partial result per block.
    """
    workload = workloads.of(problem)
    operations, least_bytes = workload.operations(problem), _least_bytes(kernel, problem)
    values = _values(problem, params, limits)
    try:
        claimed = {
            name: float(expressions.evaluate(kernel.model[name], values))
            for name in ("global_loads", "global_stores", "shared_loads")
            if name in kernel.model
        }
    except expressions.ExpressionError as error:
        raise UsageError(f"{kernel.path}: [model]: {error}") from None
    least = Traffic(
        operations,
        least_bytes,
        operations / least_bytes,
        shared_loads=claimed.get("shared_loads"),
        claims=kernel.model,
    )
    if "global_loads" not in claimed:
        return least
    loads = claimed["global_loads"]
    stores = claimed.get("global_stores", float(_stored(kernel, problem, values)))
    moved = _loaded_bytes(kernel) * loads + _ELEMENT_BYTES * stores
    if not moved > 0:
        raise UsageError(f"{kernel.path}: [model] claims {moved:g} bytes of traffic for {params}")
    if moved < least_bytes:
        doubt = (
            f"its model claims {_bytes(moved)} of traffic, but there are {_bytes(least_bytes)} at "
            "least: at this size it does not hold"
        )
        return msgspec.structs.replace(least, doubt=doubt)
    return msgspec.structs.replace(
        least, loads=loads, stores=stores, bytes=moved, intensity=operations / moved
    )


def _stored(kernel: Kernel, problem: Problem, values: Mapping[str, int]) -> int:
    """Elements of C that a launch writes if it writes each once."""
    if kernel.finish is not None:
        with contextlib.suppress(expressions.ExpressionError):
            return math.prod(expressions.whole(axis, values) for axis in kernel.launch.grid)
    return workloads.of(problem).words("C", problem)


def _least_bytes(kernel: Kernel, problem: Problem) -> int:
    """Each input read once, as wide as its elements lie in memory; the output written once."""
    workload = workloads.of(problem)
    narrower = _ELEMENT_BYTES - _loaded_bytes(kernel)
    read = sum(workload.words(buffer, problem) for buffer in workload.reads)
    return workload.least_bytes(problem) - narrower * read


def _loaded_bytes(kernel: Kernel) -> int:
    return WORD_BYTES[kernel.reading.storage]


def _values(
    problem: Problem, params: Mapping[str, int], limits: Mapping[str, int]
) -> dict[str, int]:
    """What expressions of front matter may name."""
    return {**limits, **params, **workloads.of(problem).values(problem)}


class Width(msgspec.Struct, frozen=True, kw_only=True):
    """One set of parameters on one architecture: what fits on a multiprocessor, and what it costs.

    `architecture` is None for a device that the table does not know, `here` true for the one at
    hand: only there is something measured, and `driver_blocks` the driver's own count of resident
    blocks. `registers` and `shared_bytes` are None where no build told them; the occupancy then
    takes them as not limiting. `reason` says why a width is illegal, wrong or failed.
    """

    architecture: str | None
    here: bool = False
    params: dict[str, int]
    threads_per_block: int | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    occupancy: Occupancy | None = None
    driver_blocks: int | None = None
    modelled_loads: float | None = None
    measured_ns: float | None = None
    reason: str | None = None

    @property
    def resident_blocks(self) -> int | None:
        return self.occupancy.blocks if self.occupancy is not None else None

    @property
    def occupancy_share(self) -> float | None:
        return self.occupancy.share if self.occupancy is not None else None

    @property
    def limiters(self) -> tuple[str, ...]:
        return self.occupancy.limiters if self.occupancy is not None else ()


class Builds:
    """What builds give a kernel: by nvcc for any architecture that it knows, without a GPU."""

    def __init__(self, kernel: Kernel, outcomes: Sequence[Outcome], cache: Cache) -> None:
        self.kernel = kernel
        self.cache = cache
        self.shared = {
            str(outcome.params): outcome.resources.static_shared_bytes
            for outcome in outcomes
            if outcome.resources is not None
        }

    def resources(self, architecture: Architecture, params: dict[str, int]) -> Resources | None:
        """For one architecture; where nvcc does not know it, static shared memory alone."""
        found = self._compiled(architecture, params)
        return found or Resources(static_shared_bytes=self._static_shared_bytes(params))

    def _compiled(self, architecture: Architecture, params: dict[str, int]) -> Resources | None:
        capability = architecture.compute_capability
        return compiled_resources(capability, self.kernel, params, self.cache)

    def _static_shared_bytes(self, params: dict[str, int]) -> int | None:
        """The same in every build: from any that there is."""
        key = str(params)
        for architecture in ARCHITECTURES:
            if self.shared.get(key) is None:
                with contextlib.suppress(BuildError):
                    found = self._compiled(architecture, params)
                    self.shared[key] = found.static_shared_bytes if found is not None else None
        return self.shared.get(key)


def device_of(architecture: Architecture) -> DeviceInfo:
    """A device of that architecture, of no product in particular."""
    return DeviceInfo(
        backend="cuda",
        index=0,
        name=architecture.name,
        kind="gpu",
        driver="",
        toolkit="",
        limits=architecture.limits | {"multiprocessors": _MULTIPROCESSORS},
        compute_capability=architecture.compute_capability,
    )


def largest_legal(
    kernel: Kernel,
    problems: Sequence[Problem],
    params: Sequence[dict[str, int]],
    devices: Sequence[DeviceInfo],
) -> Problem:
    """The last problem that the first of the devices can run, or the next; else the last of all."""
    for device in devices:
        for problem in reversed(problems):
            if any(sweep.case(kernel, problem, each, device).skip is None for each in params):
                return problem
    return problems[-1]


def width(
    problem: Problem, params: dict[str, int], architecture: Architecture, builds: Builds
) -> Width:
    """A set of parameters on an architecture that need not be at hand."""
    kernel, device = builds.kernel, device_of(architecture)
    modelled = traffic(kernel, problem, params, device.limits).loads
    known = Width(architecture=architecture.name, params=params, modelled_loads=modelled)
    block = _block(kernel, problem, params, device.limits)
    threads = math.prod(block)
    case = sweep.case(kernel, problem, params, device)
    if threads > architecture.threads_per_block and "threads" in (case.skip or "threads"):
        sides = [str(size) for size in block if size > 1]
        shape = f"{' × '.join(sides)} = " if len(sides) > 1 else ""
        reason = f"{shape}{threads:,} threads a block > {architecture.threads_per_block:,}"
    elif case.launch is None or case.skip is not None:
        reason = (case.skip or "").replace("this device", architecture.name)
    else:
        try:
            return fitted(known, architecture, case.launch, builds.resources(architecture, params))
        except BuildError as error:
            reason = f"does not build: {error.reason.splitlines()[0]}"
    return msgspec.structs.replace(
        known, threads_per_block=threads or None, reason=f"illegal: {reason}"
    )


def _block(
    kernel: Kernel, problem: Problem, params: Mapping[str, int], limits: Mapping[str, int]
) -> tuple[int, ...]:
    """The block that front matter asks for, whether it is allowed or not; empty: it has none."""
    values = _values(problem, params, limits)
    try:
        return tuple(expressions.whole(axis, values) for axis in kernel.launch.block)
    except expressions.ExpressionError:
        return (0,)


def fitted(
    known: Width, architecture: Architecture, launch: Launch, resources: Resources | None
) -> Width:
    """A width with the occupancy that its launch and its build allow."""
    static = resources.static_shared_bytes if resources else None
    registers = resources.registers if resources else None
    found = architectures.occupancy(
        architecture,
        launch.threads_per_block,
        registers=registers,
        shared_bytes=(static or 0) + launch.shared_bytes,
    )
    return msgspec.structs.replace(
        known,
        threads_per_block=launch.threads_per_block,
        registers=registers,
        shared_bytes=None if static is None else static + launch.shared_bytes,
        occupancy=None if found.refused else found,
        reason=f"illegal: {found.refused}" if found.refused else None,
    )


def width_here(
    case: Case, device: DeviceInfo, outcome: Outcome, driver_blocks: int | None, builds: Builds
) -> Width:
    """A set of parameters on the device at hand, as it was measured there."""
    architecture = architectures.of_capability(device.compute_capability)
    if architecture is not None and case.launch is None:
        found = width(case.problem, case.params, architecture, builds)
    else:
        modelled = traffic(case.kernel, case.problem, case.params, device.limits).loads
        found = Width(
            architecture=architecture.name if architecture else None,
            params=case.params,
            modelled_loads=modelled,
        )
        if case.launch is not None and architecture is not None:
            found = fitted(found, architecture, case.launch, outcome.resources)
        elif case.launch is not None:
            static = outcome.resources.static_shared_bytes if outcome.resources else None
            found = msgspec.structs.replace(
                found,
                threads_per_block=case.launch.threads_per_block,
                shared_bytes=None if static is None else static + case.launch.shared_bytes,
            )
    if outcome.status != "measured" and found.reason is None:
        status = "illegal" if outcome.status == "skipped" else outcome.status
        first = (outcome.reason or "").partition("\n")[0]
        found = msgspec.structs.replace(found, reason=f"{status}: {first}")
    return msgspec.structs.replace(
        found,
        here=True,
        driver_blocks=driver_blocks,
        measured_ns=outcome.median_ns if outcome.status == "measured" else None,
    )


class Explanation(msgspec.Struct, frozen=True, kw_only=True, tag="explanation", tag_field="type"):
    """All that is known of one case, and `words` that say what it means.

    `unmeasured` is why the case has no time here, if it has none.
    """

    kernel: str
    title: str
    params: dict[str, int]
    problem: Problem
    device: str | None
    tensor_cores: bool
    whole_numbers: bool
    launch: Launch | None
    resources: Resources | None
    modelled: Traffic
    unmeasured: str | None
    measured_ns: float | None
    measured_interval_ns: tuple[float, float] | None
    measured_operations_per_s: float | None
    timing_mode: TimingMode | None
    limits: Limits | None
    clock_flop_per_s: float | None
    sm_mhz: float | None
    widths: tuple[Width, ...]
    counters: Counters | None = None
    words: tuple[str, ...] = ()


def explained(
    case: Case,
    device: DeviceInfo | None,
    outcome: Outcome | None,
    limits: Limits | None,
    widths: Sequence[Width],
    counters: Counters | None = None,
) -> Explanation:
    """Put together what was found of a case; without a device nothing is measured."""
    device_values = device.limits if device is not None else _limits_of(widths)
    modelled = traffic(case.kernel, case.problem, case.params, device_values)
    measured_ns = outcome.median_ns if outcome is not None else None
    mhz = _clock(outcome, limits)
    whole_numbers = workloads.of(case.problem).element == "int32"
    found = Explanation(
        kernel=case.kernel.name,
        title=workloads.of(case.problem).title,
        tensor_cores=_TENSOR_CORES.search(case.kernel.source) is not None,
        params=case.params,
        problem=case.problem,
        whole_numbers=whole_numbers,
        device=device.label if device is not None else None,
        launch=case.launch,
        resources=outcome.resources if outcome is not None else None,
        modelled=modelled,
        unmeasured=_unmeasured(outcome, device),
        measured_ns=measured_ns,
        measured_interval_ns=outcome.interval_ns if outcome is not None else None,
        timing_mode=outcome.timing_mode if outcome is not None else None,
        measured_operations_per_s=(
            modelled.operations / measured_ns * 1e9 if measured_ns else None
        ),
        limits=limits,
        clock_flop_per_s=(
            device_limits.of_clock(device, mhz, case.kernel.precision)
            if device is not None and not whole_numbers
            else None
        ),
        sm_mhz=mhz,
        widths=tuple(widths),
        counters=counters,
    )
    return msgspec.structs.replace(found, words=tuple(_words(found, device)))


def _unmeasured(outcome: Outcome | None, device: DeviceInfo | None) -> str | None:
    """Why there is no time of the case; None: there is one."""
    if outcome is None:
        return "no device is at hand" if device is None else "it was interrupted before"
    if outcome.status == "measured":
        return None
    first = (outcome.reason or "").partition("\n")[0]
    return f"{outcome.status}, {first}"


def _limits_of(widths: Sequence[Width]) -> dict[str, int]:
    """Where no device is at hand: the limits of the first architecture that was asked for."""
    named = [width.architecture for width in widths if width.architecture is not None]
    return architectures.named(named[0]).limits | {"multiprocessors": _MULTIPROCESSORS}


def _clock(outcome: Outcome | None, limits: Limits | None) -> float | None:
    """The SM clock while the case was sampled, or while the limits were."""
    moments = outcome.conditions if outcome is not None else ()
    clocks = sorted(moment.sm_mhz for moment in moments if moment.sm_mhz)
    if clocks:
        return clocks[len(clocks) // 2]
    return limits.sm_mhz if limits is not None else None


def roofline(found: Explanation) -> Roofline | None:
    """The device's roofline with this case on it; None where nothing was measured or computed.

    Its roof is the rate of floating-point arithmetic, which is none for whole numbers.
    """
    if found.limits is None or not found.measured_operations_per_s or found.whole_numbers:
        return None
    roof = Roofline(found.limits.copy_bytes_per_s, found.limits.fma_flop_per_s, ())
    modelled = found.modelled
    points = [
        Point(
            "◇",
            "the most that memory and arithmetic allow at the least traffic",
            modelled.least_intensity,
            roof.allowed(modelled.least_intensity),
        )
    ]
    if modelled.intensity is not None:
        points += [
            Point(
                "○",
                "the most at the modelled traffic, if no cache answered",
                modelled.intensity,
                roof.allowed(modelled.intensity),
            ),
            Point(
                "●",
                "measured rate, at the modelled intensity",
                modelled.intensity,
                found.measured_operations_per_s,
            ),
        ]
    else:
        points.append(
            Point(
                "●",
                "measured rate, at the least traffic's intensity",
                modelled.least_intensity,
                found.measured_operations_per_s,
            )
        )
    return roof._replace(points=tuple(points))


# -- as tables -----------------------------------------------------------------------------------


def as_report(
    found: Explanation, environments: Sequence[Environment], *, chart: int | None = 76
) -> Report:
    """The explanation in every form; `chart` is the width of the roofline, None: there is none."""
    roof = roofline(found)
    title = f"{found.kernel} {settings_of(found.params)}".strip() + f" at {found.problem.size}"
    heading = (
        f"{title} on {found.device}" if found.device is not None else f"{title}, no device at hand",
        *(roof.chart(chart) if chart is not None and roof is not None else ()),
    )
    groups: dict[tuple[bool, str | None], list[Width]] = {}
    for each in found.widths:
        groups.setdefault((each.here, each.architecture), []).append(each)
    return Report(
        sections=(
            Section(
                heading=heading,
                columns=(Column("of the case"), Column("figure", right=True)),
                last_title="remark",
                groups=(Group("", tuple(Row(fact[:2], "", fact[2]) for fact in facts(found))),),
            ),
            *(_width_section(found, widths) for widths in groups.values()),
        ),
        footer="\n".join(found.words),
        fields=_WIDTH_FIELDS,
        rows=found.widths,
        json=lambda: results.array([*environments, found]),
    )


#: CSV has the widths; numbers stay as they are.
_WIDTH_FIELDS = (
    "architecture", "here", "params", "threads_per_block", "registers", "shared_bytes",
    "resident_blocks", "driver_blocks", "occupancy_share", "limiters", "modelled_loads",
    "measured_ns", "reason",
)  # fmt: skip


def _width_section(found: Explanation, widths: Sequence[Width]) -> Section:
    first = widths[0]
    heading = []
    if first.here:
        heading.append(f"this: {found.device}")
    if first.architecture is not None:
        a = architectures.named(first.architecture)
        heading.append(
            f"{a.name}: a multiprocessor holds {a.threads:,} threads, {a.blocks} blocks, "
            f"{a.registers:,} registers and {a.shared_bytes:,} bytes of shared memory; "
            f"a block {a.threads_per_block:,} threads"
        )
    columns = (
        Column("parameters"),
        Column("threads", right=True),
        Column("registers", right=True, drop=3),
        Column("shared (B)", right=True),
        Column("fit by threads", right=True, drop=4),
        Column("by registers", right=True, drop=5),
        Column("by shared", right=True, drop=4),
        Column("resident", right=True),
        Column("occupancy", right=True, drop=1),
        Column("modelled loads", right=True, drop=2),
        Column("measured", right=True),
    )
    rows = [_width_row(each, chosen=each.params == found.params) for each in widths]
    kept = [i for i in range(len(columns)) if any(row.cells[i] != UNKNOWN for row in rows)]
    return Section(
        heading=(*heading, *unknowns(widths)),
        columns=tuple(columns[i] for i in kept),
        last_title="limited by",
        groups=(
            Group("", tuple(replace(row, cells=tuple(row.cells[i] for i in kept)) for row in rows)),
        ),
    )


def facts(found: Explanation) -> list[tuple[str, str, str]]:
    """Name, figure and remark, in the order in which they explain each other."""
    modelled, limits, given = found.modelled, found.limits, found.resources
    rate = _rates(found)
    rows: list[tuple[str, str, str]] = [
        ("operations", f"{modelled.operations:,}", found.title),
    ]
    if modelled.loads is not None and modelled.stores is not None:
        rows += [
            ("modelled loads", _count(modelled.loads), _claim(modelled, "global_loads")),
            ("modelled stores", _count(modelled.stores), _stores_claimed(found)),
            ("modelled traffic", _bytes(modelled.bytes), "if no cache answered"),
            ("modelled intensity", _intensity(modelled.intensity), "operations per byte"),
        ]
    if modelled.shared_loads is not None:
        shared = _count(modelled.shared_loads)
        rows.append(("modelled shared loads", shared, _claim(modelled, "shared_loads")))
    rows += [
        (
            "least traffic",
            _bytes(modelled.least_bytes),
            "each input read once, the output written once",
        ),
        ("highest intensity", _intensity(modelled.least_intensity), "at the least traffic"),
    ]
    if found.measured_ns is not None:
        rows.append(("measured time", _time(found.measured_ns), _how_measured(found)))
        if found.measured_operations_per_s:
            what = "operations on whole numbers" if found.whole_numbers else ""
            rows.append(("measured rate", rate(found.measured_operations_per_s), what))
        least = modelled.least_bytes / found.measured_ns * 1e9
        rows.append(("least bandwidth", _bandwidth(least), "the least traffic in that time"))
    if limits is not None:
        copied = _bandwidth(limits.copy_bytes_per_s)
        rows.append(("measured copy", copied, "this device's; read + written"))
        if not found.whole_numbers:
            fastest = rate(limits.fma_flop_per_s)
            rows.append(("measured multiply-adds", fastest, "this device's; float32"))
    if found.clock_flop_per_s is not None:
        rows.append(("the clock allows", rate(found.clock_flop_per_s), f"at {found.sm_mhz:,} MHz"))
    if given is not None and given.registers is not None:
        rows.append(("registers a thread", f"{given.registers}", _spilled(given)))
    if found.launch is not None:
        rows.append(("threads a block", f"{found.launch.threads_per_block:,}", ""))
        rows.append(("blocks", f"{found.launch.blocks:,}", ""))
    if given is not None and given.static_shared_bytes is not None and found.launch is not None:
        static, dynamic = given.static_shared_bytes, found.launch.shared_bytes
        how = f"{static:,} static + {dynamic:,} sized at launch"
        rows.append(("shared memory a block", f"{static + dynamic:,} bytes", how))
    if found.counters is not None:
        rows += _counted(found.counters, modelled)
    return rows


def _how_measured(found: Explanation) -> str:
    words = f"a quick look, {found.timing_mode}" if found.timing_mode else "a quick look"
    if found.measured_interval_ns is None or found.measured_ns is None:
        return words
    low, high = found.measured_interval_ns
    return f"{words}: ± {_share((high - low) / 2 / found.measured_ns)}"


def _claim(modelled: Traffic, name: str) -> str:
    return f"elements: {modelled.claims[name]}"


def _stores_claimed(found: Explanation) -> str:
    modelled = found.modelled
    if "global_stores" in modelled.claims:
        return _claim(modelled, "global_stores")
    output = workloads.of(found.problem).words("C", found.problem)
    partial = modelled.stores != output
    return "elements: a partial result per block" if partial else "elements: the output, once"


def _counted(counters: Counters, modelled: Traffic) -> Iterator[tuple[str, str, str]]:
    """What hardware counters measured, each beside what it stands against."""
    read, written = counters.dram_read_bytes, counters.dram_written_bytes
    if read is not None and written is not None:
        share = (read + written) / modelled.least_bytes
        against = f"{share:.2f} of the least"
        if modelled.bytes:
            against += f", {(read + written) / modelled.bytes:.2f} of the modelled"
        yield "measured DRAM traffic", _bytes(read + written), against
    if counters.shared_bytes is not None:
        against = "moved by its instructions"
        if modelled.shared_loads:
            share = counters.shared_bytes / (_ELEMENT_BYTES * modelled.shared_loads)
            against += f", {share:.2f} of the modelled loads"
        yield "measured shared memory", _bytes(counters.shared_bytes), against
    if counters.bank_conflicts is not None:
        yield "measured bank conflicts", f"{counters.bank_conflicts:,.0f}", "in shared memory"
    if counters.achieved_occupancy is not None:
        yield "measured occupancy", f"{counters.achieved_occupancy:.0%}", "warps active, on average"


def _width_row(each: Width, *, chosen: bool) -> Row:
    fits = each.occupancy
    by: Mapping[architectures.Limiter, int] = fits.by if fits is not None else {}

    def told(value: int | None) -> str:
        return UNKNOWN if value is None else f"{value:,}"

    resident = told(each.driver_blocks if fits is None else fits.blocks)
    if fits is not None and each.driver_blocks not in (None, fits.blocks):
        resident += f" (driver: {each.driver_blocks})"
    status, _, reason = (each.reason or _limiters(fits)).partition(": ")
    return Row(
        cells=(
            settings_of(each.params) or UNKNOWN,
            told(each.threads_per_block),
            told(each.registers),
            told(each.shared_bytes),
            *(told(by.get(resource)) for resource in ("threads", "registers", "shared memory")),
            resident,
            UNKNOWN if fits is None else f"{fits.share:.0%}",
            UNKNOWN if each.modelled_loads is None else _count(each.modelled_loads),
            UNKNOWN if each.measured_ns is None else _time(each.measured_ns),
        ),
        status=status,
        reason=reason,
        best=chosen,
    )


def _limiters(fits: Occupancy | None) -> str:
    return UNKNOWN if fits is None else ", ".join(fits.limiters)


def unknowns(widths: Sequence[Width]) -> list[str]:
    """What the widths of one architecture were computed without."""
    told = [each for each in widths if each.occupancy is not None]
    lines = []
    if any(each.registers is None for each in told):
        lines.append("registers unknown: taken as not limiting")
    if any(each.shared_bytes is None for each in told):
        lines.append("static shared memory unknown: taken as none")
    first = told[0].architecture if told else None
    if first is not None and architectures.named(first).compute_capability < (2, 0):
        lines.append("left out: a launch's parameters, here in shared memory too (≤ 256 bytes)")
    return lines


# -- in words ------------------------------------------------------------------------------------


def _words(found: Explanation, device: DeviceInfo | None) -> Iterator[str]:
    if found.modelled.loads is not None:
        least = found.modelled.least_bytes / _ELEMENT_BYTES
        factor = (found.modelled.loads + (found.modelled.stores or 0)) / least
        yield (
            f"As modelled it moves {_count(found.modelled.loads)} elements to the threads, "
            f"{factor:,.1f} times the least traffic."
        )
    elif found.modelled.doubt is not None:
        yield f"{found.modelled.doubt[0].upper()}{found.modelled.doubt[1:]}."
    for each in found.widths:
        if each.params == found.params and each.architecture is not None:
            yield _width_in_words(each, each.architecture)
    yield from _bound(found, device)


def _width_in_words(each: Width, name: str) -> str:
    params = " ".join(f"{key} = {value}" for key, value in each.params.items())
    title = ", ".join(filter(None, [f"this, {name}" if each.here else name, params]))
    fits = each.occupancy
    if fits is None:
        return f"{title}: {each.reason or 'not known'}."
    architecture = architectures.named(name)
    parts = []
    if "shared memory" in fits.by:
        parts.append(
            f"{each.shared_bytes or 0:,} bytes of shared memory a block leave room for "
            f"{_blocks(fits.by['shared memory'])} in {architecture.shared_bytes:,}"
        )
    parts.append(
        f"{architecture.threads:,} threads a multiprocessor hold {_blocks(fits.by['threads'])} "
        f"of {each.threads_per_block:,}"
    )
    if "registers" in fits.by:
        parts.append(
            f"{architecture.registers:,} registers hold {_blocks(fits.by['registers'])} "
            f"of {each.registers} a thread"
        )
    parts.append(f"and there can be {architecture.blocks} blocks")
    return (
        f"{title}: {', '.join(parts)}. So {_blocks(fits.blocks)} resident, limited by "
        f"{_limiters(fits)}: {fits.warps} of {architecture.warps} warps."
    )


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count:,} blocks"


def _bound(found: Explanation, device: DeviceInfo | None) -> Iterator[str]:
    """What bounds it, with the figures that say so."""
    limits, seconds = found.limits, (found.measured_ns or 0) * 1e-9
    if device is None or limits is None or not seconds:
        yield f"What bounds it is not known: {found.unmeasured or 'no limits were measured'}."
        return
    counted = _dram_share(found, seconds)
    least = found.modelled.least_bytes / seconds / limits.copy_bytes_per_s
    memory = (
        f"its measured DRAM traffic is {_share(counted)} of a copy's bandwidth"
        if counted is not None
        else f"the least traffic would take {_share(least)} of a copy's bandwidth"
    )
    computed = 0.0
    if found.tensor_cores:
        yield f"Tensor cores compute it, whose own limit is not measured here; {memory}."
    elif found.whole_numbers and found.measured_operations_per_s:
        computed_at = _rates(found)(found.measured_operations_per_s)
        yield (
            f"It computes at {computed_at} with whole numbers, "
            f"whose own limit is not measured here; {memory}."
        )
    elif found.measured_operations_per_s:
        computed = found.measured_operations_per_s / limits.fma_flop_per_s
        rate = _rates(found)
        yield (
            f"It computes at {rate(found.measured_operations_per_s)} of the "
            f"{rate(limits.fma_flop_per_s)} that multiply-adds alone reach here "
            f"({_share(computed)}); {memory}."
        )
    else:
        yield f"It computes nothing; {memory}."
    if computed > 1:
        yield "So that limit is not its own, or was measured while the machine was busier."
    elif computed >= BOUND:
        yield "Arithmetic bounds it."
    elif (counted or 0) >= BOUND:
        yield "Memory bounds it."
    elif (
        counted is None
        and least >= BOUND
        and device_limits.held_by_cache(device, found.modelled.least_bytes, found.timing_mode)
    ):
        yield "But the last-level cache holds all of it, and is faster than a copy of more."
    elif counted is None and BOUND <= least <= _READS_MORE:
        yield "Memory bounds it: no kernel moves less."
    else:
        yield from _bound_by_neither(found, device, counted)


def _dram_share(found: Explanation, seconds: float) -> float | None:
    counters, limits = found.counters, found.limits
    if counters is None or limits is None:
        return None
    read, written = counters.dram_read_bytes, counters.dram_written_bytes
    if read is None or written is None:
        return None
    return (read + written) / seconds / limits.copy_bytes_per_s


def _bound_by_neither(
    found: Explanation, device: DeviceInfo, counted: float | None
) -> Iterator[str]:
    assert found.limits is not None and found.measured_ns is not None
    idle = _idle(found, device)
    if idle:
        yield idle
    asked = (found.modelled.bytes or 0) / (found.measured_ns * 1e-9) / found.limits.copy_bytes_per_s
    if asked > 1:
        yield (
            f"The modelled traffic would need {asked:.1f} times a copy's bandwidth, so caches "
            f"answer at least {1 - 1 / asked:.0%} of it. What it waits for (caches, shared memory, "
            "barriers, latency) is not seen from here."
        )
    elif asked >= BOUND and counted is None:
        yield (
            f"The modelled traffic would take {asked:.0%} of a copy's bandwidth: memory bounds it "
            "if no cache answers, and whether one does is not seen from here."
        )
    elif not idle:
        yield "Neither limit is reached; what holds it back is not seen from here."
    resident = _this(found)
    if resident is not None and resident.occupancy is not None:
        share = resident.occupancy.share
        some = f"{share:.0%} of the warps that a multiprocessor can hold are resident"
        if share < _FEW:
            yield f"Only {some}: few to hide each other's waiting."
        else:
            yield f"{some}."
    if counted is None and device.backend == "cuda":
        yield "`--counters` measures DRAM traffic, bank conflicts and occupancy."


def _this(found: Explanation) -> Width | None:
    """The case's own row for the device at hand."""
    return next((w for w in found.widths if w.params == found.params and w.here), None)


def _idle(found: Explanation, device: DeviceInfo) -> str | None:
    """Multiprocessors that a launch leaves without a block."""
    units = device.limits["multiprocessors"]
    if found.launch is None or device.kind != "gpu" or found.launch.blocks >= units:
        return None
    idle = units - found.launch.blocks
    return (
        f"The launch has {_blocks(found.launch.blocks)} for {units} multiprocessors: "
        f"{idle} of them have nothing to do."
    )


# -- numbers -------------------------------------------------------------------------------------


def _scaled(units: Sequence[str]) -> Callable[[float | None], str]:
    """Three significant digits with the unit of its thousand."""

    def shown(value: float | None) -> str:
        if value is None:
            return UNKNOWN
        power = min(int(math.log10(value) // 3) if value >= 1 else 0, len(units) - 1)
        scaled = value / 1000**power
        digits = max(0, 2 - int(math.log10(scaled))) if scaled >= 1 else 2
        return f"{scaled:.{digits if power else min(digits, 1)}f} {units[power]}".rstrip()

    return shown


_bytes = _scaled(("B", "kB", "MB", "GB", "TB", "PB"))
_bandwidth = _scaled(("B/s", "kB/s", "MB/s", "GB/s", "TB/s"))


def _rates(found: Explanation) -> Callable[[float], str]:
    """All rates of an explanation in the unit of the largest, to three significant digits."""
    if found.whole_numbers:
        return _scaled(("op/s", "kop/s", "Mop/s", "Gop/s", "Top/s"))
    measured, limits = found.measured_operations_per_s, found.limits
    known = (measured, found.clock_flop_per_s, limits.fma_flop_per_s if limits else None)
    most = max((rate for rate in known if rate), default=1.0)
    power = min(max(0, int(math.log10(most) // 3)), 5)
    unit = ("", "k", "M", "G", "T", "P")[power] + "FLOP/s"

    def shown(rate: float) -> str:
        scaled = rate / 1000**power
        digits = 2 - math.floor(math.log10(scaled)) if scaled > 0 else 0
        return f"{scaled:,.{max(0, digits)}f} {unit}"

    return shown


def _time(nanoseconds: float) -> str:
    return _scaled(("ns", "µs", "ms", "s"))(nanoseconds)


def _share(share: float) -> str:
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def _count(elements: float) -> str:
    return f"{elements:,.0f}"


def _intensity(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.2f}"


def _spilled(given: Resources) -> str:
    if given.spilled_bytes is None:
        return ""
    return f"{given.spilled_bytes:,} bytes spilled" if given.spilled_bytes else "none spilled"
