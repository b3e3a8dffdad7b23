"""Runs the threads of a block, and the blocks, in other orders than a CPU usually does.

A CPU runs a block's threads one after the other, so a race may be right every time. Inputs are
integers whose sums are exact in any order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import msgspec
import numpy as np

from matbench import workloads
from matbench.bench.runnable import Runnable, WrongError
from matbench.kernelfile import includes, sizes, sweep
from matbench.kernelfile.syntax import without_comments
from matbench.model import Case, DeviceInfo, Kernel, Problem

#: Larger cases take too long, one thread after the other.
_MOST_OPERATIONS, _MOST_BLOCKS = 2**25, 2**12
MIRRORED, STRIDED = 1, 2  # orders; 0: as they are
_STRIDE = 1_000_003  # a prime, larger than any number of blocks
#: How blocks wait for others, which may then have to run before them.
_WAITS = re.compile(r"\bvolatile\b|\b__threadfence\b|\bwhile\b[^;{]*\batomic")
_OF_THREADS = "wrong if a block's threads run in another order (is a `__syncthreads()` missing?)"
_AT_ONCE = "right with one block after the other, wrong with several at once"
_OF_BLOCKS = "wrong if blocks run in another order (none may wait for, or add to, another's work)"


def candidates(case: Case, device: DeviceInfo) -> Iterator[Case]:
    """The kernel, if it takes a size, at an awkward shape or the nearest that it allows; then the
    case itself."""
    kernel = case.kernel
    workload = workloads.get(kernel.workload)
    size = sizes.parse_sizes(workload.smoke_sizes, workload)[-1]
    m, n, k = sweep.allowed(kernel, size, case.params, device) or size
    scaling = next(sweep.scalings(kernel, {}))
    scaling |= {"batch": min(3, scaling.get("batch", 1))}
    inputs = workload.probed_inputs[0]
    problem = Problem(m, n, k, inputs=inputs, workload=workload.name, **scaling)
    others = [case]
    if any(re.search(r"\b[MNK]\b", text) for text in kernel.args):
        translated = msgspec.structs.replace(kernel, source="")  # as it was for the case itself
        at = sweep.case(translated, problem, case.params, device)
        others.insert(0, msgspec.structs.replace(at, kernel=kernel))
    for one in others:
        is_small = workload.operations(one.problem) <= _MOST_OPERATIONS
        if one.launch is not None and one.launch.blocks <= _MOST_BLOCKS and is_small:
            yield one


def require_any_order(runnable: Runnable) -> bool:
    """`WrongError` if a result depends on the order of threads or blocks; false if it is wrong in
    each, which says nothing about races."""
    others = (trial for trial in runnable.prepared.others if trial.name == "integers")
    trial = next(others, runnable.prepared.reference)
    size, code = runnable.case.problem.size, _code(runnable.case.kernel)
    overlaps: list[int] = []

    def require(why: str, launch: Callable[[], None]) -> None:
        why = f"a race: {why}, as at {size}: "
        runnable.require_right_trial(trial, "reordered", launch, why=why)

    def is_right(launch: Callable[[], None] | None = None) -> bool:
        with suppress(WrongError):
            runnable.require_right_trial(trial, "reordered", launch)
            return True
        return False

    if not is_right():
        if is_right(partial(_run, runnable)):
            raise runnable.wrong("reordered", f"a race: {_AT_ONCE}, as at {size}")
        return False
    require(_OF_THREADS, lambda: overlaps.append(_overlap(runnable)))
    if any(overlaps) and "atomic" not in code:
        what = f"{overlaps[0]:,} elements of C are each written by several blocks, as at {size}"
        raise runnable.wrong("reordered", f"a race: {what}; use `atomicAdd`, or one block for each")
    for order in MIRRORED, STRIDED:
        of_blocks = 0 if _WAITS.search(code) else order
        try:
            require(_OF_BLOCKS, partial(_run, runnable, threads=order, blocks=of_blocks))
        except WrongError:
            require(_OF_THREADS, partial(_run, runnable, threads=order))
            raise
    return True


def _code(kernel: Kernel) -> str:
    return "".join(map(without_comments, (kernel.source, *includes.texts(kernel.includes))))


def _run(
    runnable: Runnable,
    *,
    threads: int = 0,
    blocks: int = 0,
    after: Callable[[], None] | None = None,
) -> None:
    """Launch one block after the other."""
    program, launch = runnable.built.reordered, runnable.launch
    assert program is not None
    program.restore()
    x, y, _ = launch.grid
    count = launch.blocks
    for turn in range(count):
        block = (turn, count - 1 - turn, (turn + count // 2) * _STRIDE % count)[blocks]
        place = block % x, block // x % y, block // (x * y)
        program.launch(launch, [*runnable.arguments, threads, *place])
        if after is not None:
            after()


def _overlap(runnable: Runnable) -> int:
    """Launch, and count the elements of C that more than one block changed."""
    C = runnable.result

    before = C.contents()
    writers = np.zeros(C.words, np.int32)

    def look() -> None:
        nonlocal before
        now = C.contents()
        writers[now != before] += 1
        before = now

    _run(runnable, after=look)
    return int((writers > 1).sum())
