"""Timed calls of a function on the host, which may run code of its own before and after its work.

A call counts for what it does between two moments: its inputs are complete only right before the
timed interval, and C is what it is at the end of it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from matbench.backends import Argument, Call, Function, Program
from matbench.bench.launches import Launches, Times
from matbench.bench.layouts import Buffers
from matbench.bench.sampling import Sampler
from matbench.errors import CaseError

_clock_ns = time.perf_counter_ns
#: How late a result is taken in controls.
_LATE_S = 0.05
#: How many calls the host's time is the median of.
_HOST_CALLS = 5
#: The device is held for this many times the host's time of a call, but not for longer than this.
_HOLD_SHARE = 2
_LONGEST_HOLD_NS = 5_000_000
_LEAST_HOLD_NS = 50_000
#: The first calls may fill caches. Memory grows if most of the last calls keep nearly a C, and all
#: together this much, which allocators may hold; without end, if they do after so many calls, or
#: fewer that took long.
_CACHING_CALLS = 4
_LAST_CALLS = 8
_KEPT_SHARE = 0.9
_KEPT_BYTES = 32 << 20
_ENDLESS_CALLS, _FEWER_CALLS = 40, 12
_LONG_S = 6.0


class _Timed:
    """A call whose time on the host is known; without `takes`, its result is taken late."""

    def __init__(self, call: Call, *, takes: bool) -> None:
        self.call, self.takes = call, takes
        self.host_ns = 0.0

    def run(self) -> None:
        started = _clock_ns()
        self.call.run()
        self.host_ns = float(_clock_ns() - started)

    def take(self) -> None:
        if self.takes:
            self.call.take()

    def give(self) -> None:
        if not self.takes:
            time.sleep(_LATE_S)
            self.call.take()
        self.call.give()


class FunctionLaunches(Launches):
    """Calls of a function, each with its own inputs and each verified."""

    _host_ns: float | None = None

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._kept_bytes: list[int] = []  # by each call
        self._complete: Callable[[], None] = lambda: None  # completes the inputs of the next call

    def time(self) -> Times:
        if self.options.graph:
            raise CaseError("--graph: a function cannot be part of a CUDA graph; omit the option")
        times = super().time()
        return times._replace(host_ns=self._host_ns)

    def verify(self) -> None:
        super().verify()
        if self._is_growing():
            self._require_an_end()
            super().verify()

    def _hot_sampler(self) -> Sampler:
        return self.once_ns

    def _once_ns(self, program: Program, arguments: Sequence[Argument]) -> float:
        if self._host_ns is None and self.backend.info.kind == "gpu":
            self._host_ns = 0.0  # during these calls the device is not held
            self._host_ns = statistics.median(
                self._call_ns(arguments)[1] for _ in range(_HOST_CALLS)
            )
        return self._call_ns(arguments)[0]

    def _call_ns(self, arguments: Sequence[Argument]) -> tuple[float, float]:
        """The device's time for one verified call, and the host's."""
        launches = [(self.checks.buffers, self._next_draw())]
        function = cast(Function, self.built.program)
        self._make_ready(launches)
        used = function.used_bytes if "growth" in self.options.checks else lambda: None
        before = used()
        timed = _Timed(function.call(arguments), takes="returned" in self.options.checks)
        taken_ns = self.backend.time_call_ns(
            timed, cold=self.options.cold, hold=self._hold_for_call, ready=self._complete
        )
        self.backend.synchronize()
        timed.give()
        after = used()
        self._kept_bytes += [] if before is None or after is None else [after - before]
        if "replaced" in self.options.checks and (name := function.replaced()):
            raise self.checks.wrong("replaced", f"replaced {name}, which matbench measures with")
        self._compare(launches)
        return taken_ns, timed.host_ns

    def _without_pause_ns(self, count: int) -> float:
        """By the host's clock, because the pauses that it makes are part of the calls."""
        function = cast(Function, self.built.program)
        self._complete()
        call = function.call(self.arguments)
        began_ns = _clock_ns()
        for _ in range(count):
            call.run()
        self.backend.synchronize()
        mean_ns = (_clock_ns() - began_ns) / count
        call.take()
        call.give()
        return mean_ns

    def start(self) -> None:
        call = cast(Function, self.built.program).call(self.arguments)
        call.run()
        call.take()
        call.give()

    def _written(self, buffers: Buffers) -> None:
        if "ready" in self.options.checks:
            self._complete = self.samples.set_aside(buffers, self.checks.case.kernel)

    def _hold_for_call(self) -> None:
        """Keep the device busy while the host makes a call, unless the host is being timed."""
        if self._host_ns:
            wanted_ns = max(_LEAST_HOLD_NS, _HOLD_SHARE * self._host_ns)
            self.kernels.hold(round(min(wanted_ns, _LONGEST_HOLD_NS)))

    def _is_growing(self) -> bool:
        """Whether the last calls kept memory for a result each.

        What was not used before a call and is after it counts: on a GPU, other programs' memory may
        be in the numbers, too.
        """
        kept = self._kept_bytes[_CACHING_CALLS:]
        least = _KEPT_SHARE * self.checks.result.data.nbytes
        return (
            len(kept) > 1
            and sum(kept) > _KEPT_BYTES
            and statistics.median(kept[-_LAST_CALLS:]) > least
        )

    def _require_an_end(self) -> None:
        """`WrongError` if memory goes on growing, as it does not if only some results are kept."""
        late_s = time.monotonic() + _LONG_S
        while self._is_growing():
            kept = self._kept_bytes[_CACHING_CALLS:]
            enough = _ENDLESS_CALLS if time.monotonic() < late_s else _FEWER_CALLS
            if len(kept) >= enough:
                raise self.checks.wrong(
                    "growth",
                    f"memory grows with every call: {sum(kept) >> 20:,} MiB more after "
                    f"{len(kept)} calls",
                )
            self._call_ns(self.arguments)
