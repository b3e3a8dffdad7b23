"""Chooses a kernel's parameters for a comparison or profile: the fastest in a quick look."""

from __future__ import annotations

from matbench.model import Case, DeviceInfo, settings_of
from matbench.worker.worker import WorkerPool


def fastest(pool: WorkerPool, device: DeviceInfo, cases: list[Case]) -> tuple[Case, str]:
    """The only case that can run, or the fastest in a quick look at all.

    Also returns a note on the choice; empty if there was none.
    """
    runnable = [case for case in cases if case.skip is None]
    if len(runnable) <= 1:
        return (runnable or cases)[0], ""
    worker = pool.worker(device, runnable[0].kernel)
    looks = [(worker.measure(case), case) for case in runnable]
    timed = [(outcome.median_ns, case) for outcome, case in looks if outcome.median_ns is not None]
    best = min(timed, key=lambda pair: pair[0])[1] if timed else runnable[0]
    values: dict[str, dict[int, None]] = {}
    for case in runnable:
        for name, value in case.params.items():
            values.setdefault(name, {})[value] = None
    varied = " and ".join(
        f"{name} {', '.join(map(str, tried))}" for name, tried in values.items() if len(tried) > 1
    )
    note = f"{best.kernel.name}: the fastest of {len(runnable)} in a quick look at {varied}"
    bad = [f"{settings_of(case.params)} {o.status}" for o, case in looks if o.median_ns is None]
    return best, f"{note}; {', '.join(bad)}" if bad else note
