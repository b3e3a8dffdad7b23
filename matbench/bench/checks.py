"""The checks of a case, in the order in which they are made. docs/correctness.md describes them.

Each has the name of its function here, of a trial, or of what it does in `runnable.py` before and
after every launch, in `launches.py` to batches and calls, and in `samples.py` to inputs;
`options.CHECKS` lists all of them.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec
import numpy as np

from matbench import workloads
from matbench.analysis import limits
from matbench.backends.protocol import Call, Function, Program, Variant, Work
from matbench.bench import diagnosis
from matbench.bench.loop import SLOW_NS
from matbench.bench.runnable import Runnable, WrongError
from matbench.bench.samples import FEW_LINES, Draw
from matbench.errors import CaseError
from matbench.kernelfile import includes, instrument, sweep
from matbench.kernelfile.syntax import without_comments
from matbench.model import INTEGERS, WORD_BYTES, Case, Kernel
from matbench.records.outcome import Timing

#: The most operations of a call without the compiler's optimizations.
_MOST_UNOPTIMIZED = 1 << 29
#: How often a kernel is run to see where results differ.
_MOST_RUNS = 20
#: Larger cases take too long with one thread after the other.
_MOST_OPERATIONS, _MOST_BLOCKS = 2**25, 2**12
MIRRORED, STRIDED = 1, 2  # orders; 0: as they are
_STRIDE = 1_000_003  # a prime, larger than any number of blocks
#: How blocks wait for others, which may then have to run before them.
_WAITS = re.compile(r"\bvolatile\b|\b__threadfence\b|\bwhile\b[^;{]*\batomic")
_OF_THREADS = "wrong if a block's threads run in another order (is a `__syncthreads()` missing?)"
_AT_ONCE = "right with one block after the other, wrong with several at once"
_OF_BLOCKS = "wrong if blocks run in another order (none may wait for, or add to, another's work)"
#: Pairs of launches, how often they are timed, how often the whole is repeated, and for how long a
#: device is held meanwhile.
_PAIRS = 4
_TRIES = 3
_ATTEMPTS = 3
_HOLD_NS = 2_000_000
#: How much longer a launch may take on changed inputs: a share of its time, and nanoseconds.
_LONGER = {"gpu": (0.25, 5e3), "cpu": (1.0, 50e3)}
#: An input changes at the last of so many random moments of a block.
_MOMENTS = 3
#: Which part of C surely changes with a column of A, whatever the type.
_CHANGED_PART = 0.1


# -- of a kernel and its builds: `CaseError` -------------------------------------------------------


def builds(kernel: Kernel) -> None:
    """A kernel may not tell the instrumented builds from the plain one."""
    for source in (kernel.source, *includes.texts(kernel.includes)):
        if found := instrument.TELLTALE.search(without_comments(source)):
            raise CaseError(
                f"builds: the source uses `{' '.join(found[0].split())}`, which could tell it "
                "which of matbench's builds it is; use another name"
            )


def require_within_limits(
    case: Case, programs: Mapping[Variant, Program], names: frozenset[str]
) -> None:
    """Its builds may not allocate memory that outlives a launch; a launch may not need more shared
    memory than any GPU has, also on a CPU."""
    if "malloc" in names and any(program.allocates for program in programs.values()):
        raise CaseError(
            "malloc: allocates memory from the device's heap, which could carry results from "
            "one launch to the next"
        )
    dynamic = case.launch.shared_bytes if case.launch is not None else 0
    needed = (programs["plain"].resources.static_shared_bytes or 0) + dynamic
    if needed > (most := sweep.GPU_LIMITS["max_shared_bytes_per_block"]):
        needs = f"{case.kernel.entry} needs {needed:,} bytes of shared memory per block"
        raise CaseError(f"{needs}; no NVIDIA GPU allows more than {most:,}")


# -- before a case is timed: `WrongError`, as in all that follows ----------------------------------


def trials(runnable: Runnable) -> None:
    """Right on the reference, and on the workload's other trials, which are named after checks:
    `integers`, `selection`.

    The errors of a case are those on the reference. If its kernel rounds its inputs, these are
    rounded there, and the errors are those on the inputs as given.
    """
    prepared = runnable.prepared
    accuracy = runnable.require_right_trial(prepared.reference, "reference")
    runnable.accuracy = accuracy
    runnable.first = runnable.kernels.hashed(runnable.key, runnable.result.data)
    for trial in prepared.others:
        runnable.require_right_trial(trial, trial.name)
    if prepared.given is not None:
        as_given = runnable.require_right_trial(prepared.given)
        runnable.accuracy = msgspec.structs.replace(as_given, bound_ratio=accuracy.bound_ratio)


def staggered(runnable: Runnable) -> None:
    """Right with a build whose threads drift apart."""
    case, build, kind = runnable.case, runnable.built.staggered, runnable.case.kernel.kind
    operations = workloads.workload_of(case.problem).operations(case.problem)
    if build is None or (kind.races_s and operations > _MOST_UNOPTIMIZED):
        return
    unused = [runnable.C.data] * kind.is_launched
    ended_s = time.monotonic() + kind.races_s
    while True:
        runnable.require_right_trial(
            runnable.prepared.reference,
            "staggered",
            lambda: build.launch(runnable.launch, [*runnable.arguments, *unused]),
            why=f"a race: wrong if {kind.race}; ",
        )
        if time.monotonic() >= ended_s:
            return


BEFORE_TIMING: tuple[Callable[[Runnable], None], ...] = (trials, staggered)


# -- after it was timed ----------------------------------------------------------------------------


def repeat(runnable: Runnable) -> None:
    """Right again on the reference; and bit for bit as before, if the kernel does not declare
    otherwise.

    The kernel's device variables are not restored: it must not rely on their initial values, nor
    keep its answer to other inputs.
    """
    first, C, names = runnable.prepared.reference, runnable.result, runnable.options.checks
    if runnable.built.program.variable_bytes:
        for trial in runnable.prepared.others[:1]:
            runnable.run(Draw(trial))
        runnable.require_right_trial(first, "repeat", restored=False)
    runnable.require_right_trial(first, "repeat", restored=False)
    is_same = runnable.kernels.hashed(runnable.key, C.data) == runnable.first
    if not is_same and runnable.case.kernel.deterministic and "determinism" in names:
        raise not_deterministic(runnable)


def not_deterministic(runnable: Runnable) -> WrongError:
    """Where results on the reference differ: it is run again until they do."""
    first = runnable.result.contents()
    for _ in range(_MOST_RUNS):
        runnable.run(Draw(runnable.prepared.reference))
        C = runnable.result.contents()
        places = np.flatnonzero(first != C)
        if places.size:
            at = f"at offset {places[0]:,} of C"
            if runnable.buffers.own is None:
                at = diagnosis.place(int(places[0]), runnable.shape, runnable.case.problem)
            found = f"{places.size:,} of {C.size:,} elements differ, first {at}"
            break
    else:
        found = f"C differed once, not in {_MOST_RUNS} more"
    return runnable.wrong(
        "determinism",
        f"not deterministic: {found} between two runs on the same inputs; fix the race, or "
        "declare `deterministic = false`",
    )


AFTER_TIMING: tuple[Callable[[Runnable], None], ...] = (repeat, Runnable.require_sources)


def impossible(
    runnable: Runnable, timing: Timing, bandwidth: limits.Bandwidth | None, *, is_cold: bool
) -> tuple[str, ...]:
    """No times that the device cannot reach. If the limit is less certain, as for hot samples of a
    GPU, there is only a note."""
    info, case, problem = runnable.backend.info, runnable.case, runnable.case.problem
    has_work = problem.alpha != 0  # else no multiplications or reads are needed
    if timing.median_ns is None or not has_work or "impossible" not in runnable.options.checks:
        return ()
    workload, contract = workloads.workload_of(problem), case.kernel.contract
    operations = workload.operations(problem)
    words = sum(workload.words(name, problem) for name in workload.reads)
    read = WORD_BYTES[contract.storage] * words * problem.batch
    written = WORD_BYTES[contract.result] * workload.words("C", problem) * problem.batch
    floors: list[limits.Floor | None]
    if info.kind == "cpu":
        floors = [*limits.floors_of_cpu(operations, read + written, info)]
    else:
        clock = float(info.properties.get("clock rate (MHz)") or 0)
        most_mhz = max([clock, *(c.sm_mhz or 0 for c in timing.conditions)]) or None
        floors = [limits.floor_of_operations(operations, info, most_mhz, contract.storage)]
        if is_cold and bandwidth is not None:
            floors.append(limits.floor_of_bytes(read, written, info, bandwidth))
    reason = limits.impossible(timing.median_ns, floors)
    if reason is not None and (is_cold or info.kind == "cpu"):
        raise runnable.wrong("impossible", reason)
    return () if reason is None else (reason,)


# -- of the order of threads -----------------------------------------------------------------------
# A CPU runs a block's threads one after the other, so a race may be right every time. Inputs are
# integers whose sums are exact in any order.


def reordered_cases(case: Case) -> Iterator[Case]:
    """The kernel at an awkward size, and the case itself, unless they are large."""
    awkward = case.awkward and msgspec.structs.replace(case.awkward, kernel=case.kernel)
    for one in filter(None, (awkward, case)):
        is_small = workloads.workload_of(one.problem).operations(one.problem) <= _MOST_OPERATIONS
        if one.launch is not None and one.launch.blocks <= _MOST_BLOCKS and is_small:
            yield one


def require_any_order(runnable: Runnable) -> bool:
    """`WrongError` if a result depends on the order of threads or blocks; false if it is wrong in
    each, which says nothing about races."""
    others = (trial for trial in runnable.prepared.others if trial.name == "integers")
    trial = next(others, runnable.prepared.reference)
    kernel, overlaps = runnable.case.kernel, list[int]()
    at = f"as at {runnable.case.problem.size}"
    code = "".join(map(without_comments, (kernel.source, *includes.texts(kernel.includes))))

    require = partial(runnable.require_right_trial, trial, "reordered")
    of_threads, of_blocks = (f"a race: {why}, {at}: " for why in (_OF_THREADS, _OF_BLOCKS))
    try:
        require()
    except WrongError:
        try:
            require(partial(_run, runnable))
        except WrongError:
            return False
        raise runnable.wrong("reordered", f"a race: {_AT_ONCE}, {at}") from None
    require(partial(_run, runnable, overlaps=overlaps), why=of_threads)
    if any(overlaps) and "atomic" not in code:
        count = overlaps[0]
        many = f"{count:,} elements of C are each" if count > 1 else "an element of C is"
        what = f"{many} written by several blocks, {at}"
        raise runnable.wrong("reordered", f"a race: {what}; use `atomicAdd`, or one block for each")
    for order in MIRRORED, STRIDED:
        blocks = 0 if _WAITS.search(code) else order
        try:
            require(partial(_run, runnable, threads=order, blocks=blocks), why=of_blocks)
        except WrongError:
            require(partial(_run, runnable, threads=order), why=of_threads)
            raise
    return True


def _run(
    runnable: Runnable, *, threads: int = 0, blocks: int = 0, overlaps: list[int] | None = None
) -> None:
    """Launch one block after the other; note how many elements of C several blocks changed."""
    program, launch, C = runnable.built.reordered, runnable.launch, runnable.result
    assert program is not None
    program.restore()
    x, y, _ = launch.grid
    count = launch.blocks
    now = C.contents()
    writers = np.zeros_like(now, np.int32)
    for turn in range(count):
        block = (turn, count - 1 - turn, (turn + count // 2) * _STRIDE % count)[blocks]
        place = block % x, block // x % y, block // (x * y)
        program.launch(launch, [*runnable.arguments, threads, *place])
        if overlaps is not None:
            before, now = now, C.contents()
            writers[now != before] += 1
    if overlaps is not None:
        overlaps.append(int((writers > 1).sum()))


# -- of launches on the inputs of the launch before ------------------------------------------------
# Only sustained launches have the same inputs again and again (`Launches.block`), in turn with
# others. A kernel that skips work then keeps C and something of its inputs, from which it sees
# whether they changed, and how.


def require_same_work(runnable: Runnable, repeated_ns: float, launches: int) -> None:
    """`WrongError` if the kernel skips work in a block, where a launch takes `repeated_ns`, and
    there are so many on a set of buffers: it may count them in its workspace, and skip work late.
    """
    problem, C = runnable.case.problem, runnable.result
    is_matrix = problem.workload == workloads.DEFAULT
    if "repeated" not in runnable.options.checks or problem.alpha == 0:
        return
    if isinstance(runnable.built.program, Function):
        return  # whose calls had inputs of their own
    draw = runnable.samples.draw(secrets.randbits(64))
    runnable.run(draw)
    runnable.compare([(runnable.buffers, draw)], at_once=True)
    for _ in range(max(secrets.randbelow(launches) for _ in range(_MOMENTS))):
        runnable.start()
    # B may be 0 wherever a column counts, because samples of whole numbers select single terms.
    if runnable.case.kernel.contract.storage not in INTEGERS or problem.N >= FEW_LINES:
        runnable.start()
        runnable.backend.synchronize()
        before = C.contents()
        given = runnable.buffers, runnable.case.kernel
        put_back = runnable.samples.set_aside(*given, whole=not is_matrix)
        runnable.start()
        runnable.backend.synchronize()
        changed = np.count_nonzero(before != C.contents())
        put_back()
        elements = problem.M * problem.N * problem.batch if is_matrix else 1
        if changed < _CHANGED_PART * elements:
            raise runnable.wrong("repeated", "skips work: A changed after a launch, C did not")
    if not is_matrix:
        return  # a sum's inputs take as long to recognise as to add up
    longer_ns = min(_longer_ns(runnable, repeated_ns) for _ in range(_ATTEMPTS))
    runnable.start()
    runnable.backend.synchronize()
    runnable.compare_again()
    share, least_ns = _LONGER[runnable.backend.info.kind]
    if longer_ns > share * repeated_ns + least_ns:
        raise runnable.wrong(
            "repeated",
            f"skips work: on the inputs of the launch before it takes {repeated_ns / 1e3:,.1f} µs, "
            f"on others {longer_ns / 1e3:,.1f} µs more",
        )


def _longer_ns(runnable: Runnable, repeated_ns: float) -> float:
    """How much longer a launch takes if A differs from the one before than if it changed back.

    Launches are timed in pairs. Before each, all of A changes, to NaN if the type has it, and
    changes back: before the first of the two, or between them, so that neither has the inputs of
    the launch before. (A kernel could update what it has kept for a few columns.) On a CPU, no
    launch's own clock sees all of them.
    """
    pairs, tries = (_PAIRS, _TRIES) if repeated_ns < SLOW_NS else (1, 1)
    is_cpu = runnable.backend.info.kind == "cpu"

    def run(*, between: bool) -> None:
        for _ in range(pairs):
            given = runnable.buffers, runnable.case.kernel
            put_back = runnable.samples.set_aside(*given, whole=True)
            if between:
                runnable.start()
            put_back()
            if not between:
                runnable.start()
            runnable.start()
        if is_cpu:
            runnable.backend.synchronize()

    def least_ns(*, between: bool) -> float:
        call = Call(partial(run, between=between), runs_on_host=is_cpu)
        work = Work([call], hold=lambda: runnable.kernels.hold(_HOLD_NS))
        return min(runnable.backend.timed_ns(work) for _ in range(tries))

    return (least_ns(between=True) - least_ns(between=False)) / (2 * pairs)
