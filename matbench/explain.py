"""Why a kernel is as fast as it is: what it claims, what it was given, and what was measured.

What front matter claims is called modelled, what a clock or a counter gave is called measured, and
no figure is both. The words at the end say what bounds the kernel, and never more than was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from matbench import architectures, expressions, sweep
from matbench import limits as device_limits
from matbench.architectures import Architecture, Occupancy
from matbench.counters import Counters
from matbench.limits import Limits
from matbench.model import Case, DeviceInfo, Kernel, Launch, Outcome, Problem, Resources
from matbench.roofline import Point, Roofline

#: The values of TILE that are held against each other, with the kernel's own.
TILES = (4, 8, 12, 16, 20, 24, 32)
#: From this share of a limit on it counts as what bounds a kernel.
BOUND = 0.7
#: A device whose product is not known: front matter may name its number of multiprocessors.
_MULTIPROCESSORS = 16
_ELEMENT_BYTES = 4


class Traffic(msgspec.Struct, frozen=True):
    """Global memory as modelled: elements that all threads load and store, caches left aside.

    `least_bytes` reads each input once and writes the output once. `claimed` is false where front
    matter has no `global_loads`: then nothing is modelled but the least.
    """

    operations: int
    least_bytes: int
    loads: float | None
    stores: float | None

    @property
    def bytes(self) -> float | None:
        if self.loads is None or self.stores is None:
            return None
        return _ELEMENT_BYTES * (self.loads + self.stores)

    @property
    def intensity(self) -> float | None:
        """Operations per byte of what is modelled."""
        return self.operations / self.bytes if self.bytes else None

    @property
    def least_intensity(self) -> float:
        """Operations per byte of the least traffic: no kernel can have more."""
        return self.operations / self.least_bytes


def traffic(
    kernel: Kernel, problem: Problem, params: Mapping[str, int], limits: Mapping[str, int]
) -> Traffic:
    """What `[model]` claims for one case; without `global_stores`, C is written once."""
    values = {**limits, **params, "M": problem.M, "N": problem.N, "K": problem.K}
    elements = problem.M * problem.K + problem.K * problem.N + problem.M * problem.N
    claimed = {
        name: float(expressions.evaluate(kernel.model[name], values))
        for name in ("global_loads", "global_stores")
        if name in kernel.model
    }
    loads = claimed.get("global_loads")
    written = float(problem.M * problem.N)
    return Traffic(
        operations=problem.operations,
        least_bytes=_ELEMENT_BYTES * elements,
        loads=loads,
        stores=None if loads is None else claimed.get("global_stores", written),
    )


class Width(msgspec.Struct, frozen=True, kw_only=True):
    """One set of parameters on one architecture: what fits on a multiprocessor, and what it costs.

    `registers` and `shared_bytes` are None where no build told them; the occupancy then takes them
    as not limiting. `driver_blocks` is the driver's own count of resident blocks. `measured_ns` is
    there for the device at hand alone. With `illegal` it cannot run there, and that is why.
    """

    architecture: str
    params: dict[str, int]
    threads_per_block: int | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    occupancy: Occupancy | None = None
    driver_blocks: int | None = None
    modelled_loads: float | None = None
    measured_ns: float | None = None
    illegal: str | None = None


def width(
    kernel: Kernel,
    problem: Problem,
    params: dict[str, int],
    architecture: Architecture,
    resources: Resources | None,
) -> Width:
    """A set of parameters on an architecture that need not be at hand."""
    device = DeviceInfo(
        backend="cuda",
        index=0,
        name=architecture.name,
        kind="gpu",
        driver="",
        toolkit="",
        limits=architecture.limits | {"multiprocessors": _MULTIPROCESSORS},
        compute_capability=architecture.compute_capability,
    )
    modelled = traffic(kernel, problem, params, device.limits).loads
    known = Width(architecture=architecture.name, params=params, modelled_loads=modelled)
    block = _block(kernel, problem, params, device.limits)
    threads = math.prod(block)
    if threads > architecture.threads_per_block:
        shape = " × ".join(str(size) for size in block if size > 1)
        reason = f"{shape} = {threads:,} threads a block > {architecture.threads_per_block:,}"
        return msgspec.structs.replace(known, threads_per_block=threads, illegal=reason)
    case = sweep.case(kernel, problem, params, device)
    if case.launch is None or case.skip is not None:
        reason = (case.skip or "").replace("this device", architecture.name)
        return msgspec.structs.replace(known, threads_per_block=threads or None, illegal=reason)
    return fitted(known, architecture, case.launch, resources)


def _block(
    kernel: Kernel, problem: Problem, params: Mapping[str, int], limits: Mapping[str, int]
) -> tuple[int, ...]:
    """The block that front matter asks for, whether it is allowed or not; empty: it has none."""
    values = {**limits, **params, "M": problem.M, "N": problem.N, "K": problem.K}
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
        illegal=found.refused,
    )


class Explanation(msgspec.Struct, frozen=True, kw_only=True, tag="explanation", tag_field="type"):
    """All that is known of one case, and `words` that say what it means."""

    kernel: str
    params: dict[str, int]
    size: str
    device: str | None
    launch: Launch | None
    resources: Resources | None
    modelled: Traffic
    measured_ns: float | None
    measured_flop_per_s: float | None
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
    found = Explanation(
        kernel=case.kernel.name,
        params=case.params,
        size=case.problem.size,
        device=device.label if device is not None else None,
        launch=case.launch,
        resources=outcome.resources if outcome is not None else None,
        modelled=modelled,
        measured_ns=measured_ns,
        measured_flop_per_s=modelled.operations / measured_ns * 1e9 if measured_ns else None,
        limits=limits,
        clock_flop_per_s=(
            device_limits.of_clock(device, mhz, case.kernel.precision) if device else None
        ),
        sm_mhz=mhz,
        widths=tuple(widths),
        counters=counters,
    )
    return msgspec.structs.replace(found, words=tuple(_words(found, device)))


def _limits_of(widths: Sequence[Width]) -> dict[str, int]:
    named = architectures.named(widths[0].architecture.split()[-1])
    return named.limits | {"multiprocessors": _MULTIPROCESSORS}


def _clock(outcome: Outcome | None, limits: Limits | None) -> float | None:
    """The SM clock while the case was sampled, or while the limits were."""
    moments = outcome.conditions if outcome is not None else ()
    clocks = sorted(moment.sm_mhz for moment in moments if moment.sm_mhz)
    if clocks:
        return clocks[len(clocks) // 2]
    return limits.sm_mhz if limits is not None else None


def roofline(found: Explanation) -> Roofline | None:
    """The device's roofline with this case on it; None where nothing was measured."""
    if found.limits is None or found.measured_flop_per_s is None:
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
                found.measured_flop_per_s,
            ),
        ]
    else:
        points.append(
            Point(
                "●",
                "measured rate, at the least traffic's intensity",
                modelled.least_intensity,
                found.measured_flop_per_s,
            )
        )
    return roof._replace(points=tuple(points))


# -- as rows -------------------------------------------------------------------------------------


def facts(found: Explanation) -> list[tuple[str, str, str]]:
    """Name, figure and remark, in the order in which they explain each other."""
    modelled, limits, given = found.modelled, found.limits, found.resources
    rows: list[tuple[str, str, str]] = [
        ("operations", f"{modelled.operations:,}", "a multiply and an add for each term"),
    ]
    if modelled.loads is not None and modelled.stores is not None:
        rows += [
            ("modelled loads", _count(modelled.loads), "elements, as front matter claims them"),
            ("modelled stores", _count(modelled.stores), "elements"),
            ("modelled traffic", _bytes(modelled.bytes), "if no cache answered"),
            ("modelled intensity", _intensity(modelled.intensity), "operations per byte"),
        ]
    rows += [
        ("least traffic", _bytes(modelled.least_bytes), "each input read once, C written once"),
        ("highest intensity", _intensity(modelled.least_intensity), "at the least traffic"),
    ]
    if found.measured_ns is not None:
        rows.append(("measured time", _time(found.measured_ns), "a quick look: ± 5%"))
        rows.append(("measured rate", _rate(found.measured_flop_per_s), ""))
    if limits is not None:
        rows += [
            ("measured copy", _bandwidth(limits.copy_bytes_per_s), "this device's; read + written"),
            ("measured multiply-adds", _rate(limits.fma_flop_per_s), "this device's; float32"),
        ]
    if found.clock_flop_per_s is not None:
        rows.append(("the clock allows", _rate(found.clock_flop_per_s), f"at {found.sm_mhz:,} MHz"))
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
        yield "measured shared memory", _bytes(counters.shared_bytes), "moved by its instructions"
    if counters.bank_conflicts is not None:
        yield "measured bank conflicts", f"{counters.bank_conflicts:,.0f}", "in shared memory"
    if counters.achieved_occupancy is not None:
        yield "measured occupancy", f"{counters.achieved_occupancy:.0%}", "warps active, on average"


#: Titles of `width_rows`.
WIDTH_TITLES = (
    "parameters", "threads a block", "registers", "shared bytes", "fit by threads", "by blocks",
    "by registers", "by shared memory", "resident blocks", "occupancy", "modelled loads",
    "measured time", "limited by",
)  # fmt: skip


def width_rows(widths: Sequence[Width]) -> list[tuple[str, ...]]:
    """The table of widths of one architecture, in the columns of `WIDTH_TITLES`."""
    return [_width_row(each) for each in widths]


def _width_row(each: Width) -> tuple[str, ...]:
    fits = each.occupancy
    by: Mapping[architectures.Limiter, int] = fits.by if fits is not None else {}

    def told(value: int | None) -> str:
        return "–" if value is None else f"{value:,}"

    resident = told(fits.blocks) if fits is not None else "–"
    if fits is not None and each.driver_blocks not in (None, fits.blocks):
        resident += f" (driver: {each.driver_blocks})"
    return (
        " ".join(f"{name}={value}" for name, value in each.params.items()) or "–",
        told(each.threads_per_block),
        told(each.registers),
        told(each.shared_bytes),
        *(told(by.get(r)) for r in ("threads", "blocks", "registers", "shared memory")),
        resident,
        f"{fits.share:.0%}" if fits is not None else "–",
        "–" if each.modelled_loads is None else _count(each.modelled_loads),
        "–" if each.measured_ns is None else _time(each.measured_ns),
        f"illegal: {each.illegal}" if each.illegal else _limiters(fits),
    )


def _limiters(fits: Occupancy | None) -> str:
    return "–" if fits is None else " and ".join(fits.limiters)


def unknowns(widths: Sequence[Width]) -> list[str]:
    """What the widths of one architecture were computed without."""
    told = [each for each in widths if each.occupancy is not None]
    lines = []
    if any(each.registers is None for each in told):
        lines.append("registers not known here: taken as not limiting")
    if any(each.shared_bytes is None for each in told):
        lines.append("static shared memory not known here: taken as none")
    if told and architectures.named(told[0].architecture.split()[-1]).registers_to == "block":
        lines.append("the parameters of a launch lie in shared memory too (≤ 256 bytes): left out")
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
    for each in found.widths:
        if each.params == found.params:
            yield _width_in_words(each)
    yield from _bound(found, device)


def _width_in_words(each: Width) -> str:
    name = each.architecture
    params = " ".join(f"{key} = {value}" for key, value in each.params.items()) or "its block"
    if each.illegal:
        return f"{name}, {params}: illegal, {each.illegal}."
    fits = each.occupancy
    if fits is None:
        return f"{name}, {params}: how many blocks a core holds is not told."
    architecture = architectures.named(name.split()[-1])
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
        f"{name}, {params}: {', '.join(parts)}. So {_blocks(fits.blocks)} resident, limited by "
        f"{_limiters(fits)}: {fits.warps} of {architecture.warps} warps."
    )


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count:,} blocks"


def _bound(found: Explanation, device: DeviceInfo | None) -> Iterator[str]:
    """What bounds it, with the figures that say so."""
    limits, seconds = found.limits, (found.measured_ns or 0) * 1e-9
    if device is None or limits is None or not seconds or found.measured_flop_per_s is None:
        yield "Nothing was measured, so nothing is said of what bounds it."
        return
    computed = found.measured_flop_per_s / limits.fma_flop_per_s
    rates = f"{_rate(found.measured_flop_per_s)} of {_rate(limits.fma_flop_per_s)}"
    counted = _dram_share(found, seconds)
    least = found.modelled.least_bytes / seconds / limits.copy_bytes_per_s
    if computed > 1:
        yield (
            f"It computes faster than this device's multiply-adds were measured ({rates}): that "
            "limit is not its own. Tensor cores have another; so has a machine less busy."
        )
    elif computed >= BOUND:
        yield f"Bound by arithmetic: {rates} that multiply-adds alone reach ({computed:.0%})."
    elif counted is not None and counted >= BOUND:
        yield f"Bound by memory: its measured DRAM traffic takes {counted:.0%} of a copy's bandwidth."
    elif BOUND <= least <= 1:
        yield (
            f"Bound by memory: even the least traffic, {_bytes(found.modelled.least_bytes)}, takes "
            f"{least:.0%} of a copy's bandwidth."
        )
    else:
        yield from _bound_by_neither(found, device, rates, computed, least, counted)


def _dram_share(found: Explanation, seconds: float) -> float | None:
    counters, limits = found.counters, found.limits
    if counters is None or limits is None:
        return None
    read, written = counters.dram_read_bytes, counters.dram_written_bytes
    if read is None or written is None:
        return None
    return (read + written) / seconds / limits.copy_bytes_per_s


def _bound_by_neither(
    found: Explanation,
    device: DeviceInfo,
    rates: str,
    computed: float,
    least: float,
    counted: float | None,
) -> Iterator[str]:
    assert found.limits is not None and found.measured_ns is not None
    copied = found.limits.copy_bytes_per_s
    memory = (
        f"its measured DRAM traffic takes {counted:.0%}"
        if counted is not None
        else f"the least traffic would take {least:.0%}"
    )
    yield (
        f"Arithmetic does not bound it: {rates} that multiply-adds alone reach ({computed:.0%}). "
        f"Of a copy's bandwidth {memory}."
    )
    idle = _idle(found, device)
    if idle:
        yield idle
    asked = (found.modelled.bytes or 0) / (found.measured_ns * 1e-9) / copied
    if asked > 1:
        yield (
            f"The modelled traffic would need {asked:.1f} times a copy's bandwidth, so caches answer "
            f"at least {1 - 1 / asked:.0%} of it. What it waits for (caches, shared memory, "
            "barriers, latency) is not seen from here"
            + ("." if counted is not None else "; `--counters` sees more of it on an NVIDIA GPU.")
        )
    elif asked >= BOUND and counted is None:
        yield (
            f"The modelled traffic would take {asked:.0%} of a copy's bandwidth: memory bounds it if "
            "no cache answers, and whether one does is not seen from here."
        )
    elif not idle:
        yield "Neither limit is near: it waits, and for what is not seen from here."
    resident = _this(found)
    if resident is not None and resident.occupancy is not None:
        share = resident.occupancy.share
        if share < 0.5:
            yield (
                f"Only {share:.0%} of the warps that a multiprocessor can hold are resident "
                f"(limited by {_limiters(resident.occupancy)}): few to wait behind each other."
            )
        else:
            yield f"{share:.0%} of the warps that a multiprocessor can hold are resident."


def _this(found: Explanation) -> Width | None:
    """The case's own row for the device at hand."""
    own = (w for w in found.widths if w.params == found.params and w.measured_ns is not None)
    return next(own, None)


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
            return "–"
        power = min(int(math.log10(value) // 3) if value >= 1 else 0, len(units) - 1)
        scaled = value / 1000**power
        digits = max(0, 2 - int(math.log10(scaled))) if scaled >= 1 else 2
        return f"{scaled:.{digits if power else min(digits, 1)}f} {units[power]}".rstrip()

    return shown


_bytes = _scaled(("B", "kB", "MB", "GB", "TB", "PB"))
_bandwidth = _scaled(("B/s", "kB/s", "MB/s", "GB/s", "TB/s"))
_rate = _scaled(("flop/s", "kflop/s", "Mflop/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"))


def _time(nanoseconds: float) -> str:
    return _scaled(("ns", "µs", "ms", "s"))(nanoseconds)


def _count(elements: float) -> str:
    return f"{elements:,.0f}"


def _intensity(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"


def _spilled(given: Resources) -> str:
    if given.spilled_bytes is None:
        return ""
    return f"{given.spilled_bytes:,} bytes spilled" if given.spilled_bytes else "none spilled"
