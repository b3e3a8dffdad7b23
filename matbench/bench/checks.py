"""The checks of a case, in the order in which they are made. docs/correctness.md describes them.

Each has the name of its function here, or of what it does in `runnable.py` before and after every
launch, in `launches.py` to batches and calls, and in `samples.py` to inputs; `options.CHECKS` lists
all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec
import numpy as np

from matbench import workloads
from matbench.analysis import limits
from matbench.backends import Program, Variant
from matbench.bench import diagnosis
from matbench.bench.runnable import Runnable
from matbench.bench.samples import Draw
from matbench.errors import CaseError
from matbench.kernelfile import includes, instrument, sweep
from matbench.model import WORD_BYTES, Case, Kernel
from matbench.records.outcome import Timing

#: The most operations of a call without the compiler's optimizations.
_MOST_UNOPTIMIZED = 1 << 29
#: How often a kernel is run to see where results differ.
_MOST_RUNS = 20


# -- of a kernel and its builds: `CaseError` -------------------------------------------------------


def builds(kernel: Kernel) -> None:
    """A kernel may not tell the instrumented builds from the plain one."""
    for source in (kernel.source, *includes.texts(kernel.includes)):
        if name := instrument.telltale(source):
            raise CaseError(
                f"builds: the source uses `{name}`, which could tell it which of matbench's builds "
                "it is; use another name"
            )


def malloc(programs: Mapping[Variant, Program]) -> None:
    """It may not allocate memory that outlives a launch."""
    if any(program.allocates for program in programs.values()):
        raise CaseError(
            "malloc: allocates memory from the device's heap, which could carry results from "
            "one launch to the next"
        )


def require_launchable(case: Case, program: Program) -> None:
    """A launch may not need more shared memory than any GPU has, also on a CPU."""
    dynamic = case.launch.shared_bytes if case.launch is not None else 0
    needed = (program.resources.static_shared_bytes or 0) + dynamic
    if needed > (most := sweep.GPU_LIMITS["max_shared_bytes_per_block"]):
        needs = f"{case.kernel.entry} needs {needed:,} bytes of shared memory per block"
        raise CaseError(f"{needs}; no NVIDIA GPU allows more than {most:,}")


# -- before a case is timed: `WrongError`, as in all that follows ----------------------------------


def reference(runnable: Runnable) -> None:
    """Right on the inputs as drawn; its errors there are those of the case."""
    runnable.accuracy = runnable.require_right_trial(runnable.prepared.reference, "reference")
    runnable.first = runnable.hashed_result()


def trials(runnable: Runnable) -> None:
    """Right on the workload's other trials, which are named after checks: `integers`,
    `selection`."""
    for trial in runnable.prepared.others:
        runnable.require_right_trial(trial, trial.name)


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


def given(runnable: Runnable) -> None:
    """Checked on rounded inputs; the reported error is that on the inputs as given."""
    if runnable.prepared.given is None:
        return
    draw = Draw(runnable.prepared.given)
    runnable.run(draw)
    accuracy = runnable.compared(draw)
    assert runnable.accuracy is not None
    runnable.accuracy = msgspec.structs.replace(accuracy, bound_ratio=runnable.accuracy.bound_ratio)
    runnable.require_untouched(runnable.samples.verdicts())


BEFORE_TIMING: tuple[Callable[[Runnable], None], ...] = (reference, trials, staggered, given)


# -- after it was timed ----------------------------------------------------------------------------


def repeat(runnable: Runnable) -> None:
    """Right again on the reference.

    The kernel's device variables are not restored: it must not rely on their initial values, nor
    keep its answer to other inputs.
    """
    first = runnable.prepared.reference
    if runnable.built.program.variable_bytes:
        for trial in runnable.prepared.others[:1]:
            runnable.run(Draw(trial))
        runnable.require_right_trial(first, "repeat", restored=False)
    runnable.require_right_trial(first, "repeat", restored=False)


def determinism(runnable: Runnable) -> None:
    """And bit for bit as before, if the kernel does not declare otherwise."""
    is_promised = runnable.case.kernel.deterministic
    if not is_promised or "determinism" not in runnable.options.checks:
        return
    if runnable.hashed_result() == runnable.first:
        return
    results = []
    for _ in range(_MOST_RUNS):
        C = runnable.result.contents()
        results.append(C)
        places = np.flatnonzero(results[0] != C)
        if places.size:
            at = f"at offset {places[0]:,} of C"
            if runnable.buffers.own is None:
                at = diagnosis.place(int(places[0]), runnable.shape, runnable.case.problem)
            found = f"{places.size:,} of {C.size:,} elements differ, first {at}"
            break
        runnable.run(Draw(runnable.prepared.reference))
    else:
        found = f"C differed once, not in {_MOST_RUNS} more"
    raise runnable.wrong(
        "determinism",
        f"not deterministic: {found} between two runs on the same inputs; fix the race, or "
        "declare `deterministic = false`",
    )


def sources(runnable: Runnable) -> None:
    """matbench's copy of the inputs is as it was."""
    runnable.require_sources()


AFTER_TIMING: tuple[Callable[[Runnable], None], ...] = (repeat, determinism, sources)


def impossible(
    runnable: Runnable, timing: Timing, bandwidth: limits.Bandwidth | None, *, is_cold: bool
) -> tuple[str, ...]:
    """No times that the device cannot reach.

    If the limit is less certain, as for hot samples of a GPU, there is only a note.
    """
    info, case, problem = runnable.backend.info, runnable.case, runnable.case.problem
    if timing.median_ns is None or "impossible" not in runnable.options.checks:
        return ()
    if problem.alpha == 0:  # no multiplications or reads are needed then
        return ()
    workload, contract = workloads.workload_of(problem), case.kernel.contract
    clock = info.properties.get("clock rate (MHz)")
    most_mhz = max([float(clock or 0), *(c.sm_mhz or 0 for c in timing.conditions)]) or None
    operations = workload.operations(problem)
    words = sum(workload.words(name, problem) for name in workload.reads)
    read = WORD_BYTES[contract.storage] * words * problem.batch
    written = WORD_BYTES[contract.result] * workload.words("C", problem) * problem.batch
    floors = [limits.floor_of_operations(operations, info, most_mhz, contract.storage)]
    if info.kind == "cpu":
        floors += limits.floors_of_cpu(operations, read + written, info)
    elif is_cold and bandwidth is not None:
        floors.append(limits.floor_of_bytes(read, written, info, bandwidth))
    reason = limits.impossible(timing.median_ns, floors)
    if reason is not None and (is_cold or info.kind == "cpu"):
        raise runnable.wrong("impossible", reason)
    return () if reason is None else (reason,)
