"""Runs cases in a process that may die, so that a bad kernel hurts only itself.

Each device has one worker process that owns it. A build and a measurement have a deadline each; a
worker that passes one, or dies, is replaced, and the case becomes a failed outcome with the reason.
"""

from __future__ import annotations

import concurrent.futures
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from matbench import signals
from matbench.errors import CaseError, MatbenchError
from matbench.model import Case, DeviceInfo, Kernel, Outcome, Problem, Status

if TYPE_CHECKING:
    from matbench.analysis.blocks import BlockSample
    from matbench.analysis.statistics import ComparisonPlan
    from matbench.backends import Variant
    from matbench.measure.bench import Duel, Options, Session
    from matbench.measure.limits import Limits

T = TypeVar("T")

DEFAULT_TIMEOUT_S = 60.0
DEFAULT_BUILD_TIMEOUT_S = 120.0


class Deadlines(msgspec.Struct, frozen=True):
    """How long a worker may take, in seconds."""

    build_s: float = DEFAULT_BUILD_TIMEOUT_S
    run_s: float = DEFAULT_TIMEOUT_S


class DiedError(MatbenchError):
    """The worker ended in the middle of a task; says how."""


class DeadlineError(MatbenchError):
    """The task passed its deadline and its worker was killed."""


class _LateError(CaseError):
    """What a `DeadlineError` is for its case."""


class Executor(Protocol):
    """Runs one task at a time in a process of its own; a cluster's scheduler could be another."""

    def call(self, function: Callable[..., T], *args: Any, timeout_s: float | None = None) -> T:
        """The task's result. `DiedError` or `DeadlineError` leave a fresh process behind."""

    def begin(self, function: Callable[..., object], *args: Any) -> None:
        """Start on a task whose result nobody waits for."""

    def kill(self) -> None:
        """End the process; the next call starts another."""


class _Process(SpawnProcess):
    """A process that is deaf to Ctrl-C and SIGTERM from its first moment: the main process hears
    them, for they may be sent to all of a group."""

    def start(self) -> None:
        if not hasattr(signal, "pthread_sigmask"):
            return super().start()
        deaf_to = {signal.SIGINT, signal.SIGTERM}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, deaf_to)
        try:
            super().start()  # the mask is inherited
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def terminate(self) -> None:
        self.kill()


class _Spawn(SpawnContext):
    Process = _Process


class LocalExecutor:
    """An executor on this machine: one spawned process, kept and replaced by pebble."""

    def __init__(self) -> None:
        self.pool: Any = None

    def _started(self) -> Any:
        from pebble import ProcessPool

        if self.pool is not None and not self.pool.active:  # its process died between two tasks
            self.kill()
        if self.pool is None:
            self.pool = ProcessPool(max_workers=1, context=_Spawn(), initializer=_start_process)
        return self.pool

    def begin(self, function: Callable[..., object], *args: Any) -> None:
        self._started().schedule(function, args=args)

    def call(self, function: Callable[..., T], *args: Any, timeout_s: float | None = None) -> T:
        result: T = _result(self._started().schedule(function, args=args, timeout=timeout_s))
        return result

    def kill(self) -> None:
        if self.pool is not None:
            pool, self.pool = self.pool, None
            pool.stop()
            pool.join()


def _result(future: Any) -> Any:
    """A task's result; the ways in which its process can be lost as errors of ours."""
    from concurrent.futures.process import BrokenProcessPool

    from pebble import ProcessExpired

    try:
        return future.result()
    except concurrent.futures.TimeoutError:
        raise DeadlineError("past its deadline") from None
    except ProcessExpired as error:
        raise DiedError(_manner_of_death(error.exitcode)) from None
    except BrokenProcessPool:
        raise DiedError("it was gone before the task began") from None


def _manner_of_death(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        try:
            name = signal.Signals(-exitcode).name
        except ValueError:
            name = f"signal {-exitcode}"
        words = {
            "SIGSEGV": "it crashed (segmentation fault: an address outside its memory)",
            "SIGABRT": "it aborted (SIGABRT)",
            "SIGFPE": "it crashed (arithmetic error, as a division by zero)",
            "SIGKILL": "it was killed from outside (SIGKILL, as when memory runs out)",
        }
        return words.get(name, f"it was ended by {name}")
    return f"it exited with code {exitcode}"


# -- in the worker process -----------------------------------------------------------------------

_session: Session | None = None


def _start_process() -> None:
    """What a kernel prints must not mix with the table; nothing outlives the main process."""
    signals.end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where there are no masks
    os.dup2(2, 1)


def _precompile(device: DeviceInfo, case: Case, variants: tuple[Variant, ...]) -> None:
    from matbench import backends
    from matbench.cache import Cache

    backends.precompile(device, case.kernel, case.params, Cache(), variants)


def _open(device: DeviceInfo, options: Options) -> Session:
    global _session
    if _session is None:
        from matbench.backends import open_backend
        from matbench.cache import Cache
        from matbench.measure import bench

        cache = Cache()
        _session = bench.Session(open_backend(device, cache), cache, options)
    return _session


def _begin(device: DeviceInfo, options: Options) -> None:
    _open(device, options)


def _prepare(device: DeviceInfo, options: Options, problem: Problem, kernel: Kernel) -> None:
    _open(device, options).prepare(problem, kernel.reading)


def _build(
    device: DeviceInfo, options: Options, case: Case, variants: tuple[Variant, ...] | None
) -> None:
    _open(device, options).build(case, variants)


def _measure_library(device: DeviceInfo, options: Options, case: Case) -> Outcome:
    from matbench.cache import Cache
    from matbench.measure import bench

    return bench.measure_library(case, device, Cache(), options)


def _measure(device: DeviceInfo, options: Options, case: Case) -> Outcome:
    return _open(device, options).measure(case)


def _look(
    device: DeviceInfo, options: Options, case: Case, samples: int, limit_ns: float, check: bool
) -> Outcome:
    return _open(device, options).look(case, samples, limit_ns, check=check)


def _profile(
    device: DeviceInfo, options: Options, case: Case
) -> tuple[Outcome, BlockSample | None]:
    return _open(device, options).profile(case)


def _compare(
    device: DeviceInfo,
    options: Options,
    baseline: Case,
    candidate: Case,
    plan: ComparisonPlan,
    seed: int,
) -> Duel:
    return _open(device, options).compare(baseline, candidate, plan, seed)


def _limits(device: DeviceInfo, options: Options, anew: bool) -> Limits:
    from matbench.measure import limits

    session = _open(device, options)
    return limits.measured(session.backend, session.cache, anew=anew)


def _resident_blocks(device: DeviceInfo, options: Options, case: Case) -> int | None:
    return _open(device, options).resident_blocks(case)


# -- in the main process -------------------------------------------------------------------------


class Builders:
    """Compiles the kernels of a sweep ahead of the worker that times them, several at once."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.pool: Any = None
        self.futures: dict[tuple[bytes, tuple[Variant, ...]], Any] = {}

    def start(
        self,
        device: DeviceInfo,
        cases: Iterable[Case],
        variants: tuple[Variant, ...],
    ) -> None:
        """Begin with every different build of these cases, in their order, where it disturbs no
        timing."""
        from pebble import ProcessPool

        from matbench.backends import can_precompile

        for case in cases if can_precompile(device) else ():
            key = _build_key(case), variants
            if case.skip is not None or key in self.futures:
                continue
            if self.pool is None:
                self.pool = ProcessPool(
                    max_workers=max(1, min(8, (os.cpu_count() or 1) // 2)),
                    context=_Spawn(),
                    initializer=_start_process,
                )
            self.futures[key] = self.pool.schedule(
                _precompile, args=(device, case, variants), timeout=self.deadline_s
            )

    def wait(self, case: Case) -> None:
        """Until the case's builds are in the cache; raises what building it raised."""
        wanted = _build_key(case)
        for future in [future for (key, _), future in self.futures.items() if key == wanted]:
            _result(future)

    def close(self) -> None:
        if self.pool is not None:
            self.pool.stop()
            self.pool.join()


def _build_key(case: Case) -> bytes:
    return msgspec.msgpack.encode((case.kernel.name, case.kernel.sha256, case.params))


class Worker:
    """One device's cases, one after the other."""

    def __init__(
        self,
        device: DeviceInfo,
        options: Options,
        deadlines: Deadlines,
        executor: Executor,
        builders: Builders,
    ) -> None:
        self.device = device
        self.options = options
        self.deadlines = deadlines
        self.executor = executor
        self.builders = builders
        self.late: Counter[bytes] = Counter()

    def deadlines_passed(self, case: Case) -> int:
        """How many runs of this kernel with these parameters, of any problem, took too long."""
        return self.late[_build_key(case)]

    def run(self, case: Case) -> Outcome:
        """Build, check and time one case; whatever happens becomes an outcome."""
        outcome = self._run(case)
        return msgspec.structs.replace(outcome, notes=(*case.notes, *outcome.notes))

    def _run(self, case: Case) -> Outcome:
        from matbench.measure.bench import not_measured, not_run

        if case.skip is not None:
            return not_run(case, self.device)
        try:
            if case.kernel.library is not None and case.kernel.on_host:
                return self._task("running", _measure_library, case)
            self._ready(case)
            return self._task("running", _measure, case)
        except CaseError as error:
            self.late[_build_key(case)] += isinstance(error, _LateError)
            return not_measured(case, self.device, "failed", error.reason)

    def look(self, case: Case, samples: int, limit_ns: float, *, check: bool) -> Outcome:
        """A few samples of one case, fewer when one takes longer than `limit_ns`."""
        from matbench.measure.bench import not_measured

        try:
            self._ready(case, ("plain",))
            return self._task("running", _look, case, samples, limit_ns, check)
        except CaseError as error:
            return not_measured(case, self.device, "failed", error.reason)

    def profile(self, case: Case) -> tuple[Outcome, BlockSample | None]:
        """Check one case and clock its blocks; whatever goes wrong is in the outcome."""
        from matbench.measure.bench import not_measured, not_run

        if case.skip is not None:
            return not_run(case, self.device), None
        try:
            self._ready(case)
            return self._task("running", _profile, case)
        except CaseError as error:
            return not_measured(case, self.device, "failed", error.reason), None

    def compare(self, baseline: Case, candidate: Case, plan: ComparisonPlan, seed: int) -> Duel:
        """Both cases in turns; a case that cannot run leaves no comparison."""
        from matbench.measure.bench import Duel, not_measured

        for case in (baseline, candidate):
            try:
                if case.skip is not None:
                    raise CaseError(case.skip)
                self._ready(case)
            except CaseError as error:
                skipped = case.skip is not None and not case.is_mistaken
                status: Status = "skipped" if skipped else "failed"
                untold = "not compared: the other one could not run"
                outcomes = [
                    not_measured(
                        one,
                        self.device,
                        status if one is case else "skipped",
                        error.reason if one is case else untold,
                    )
                    for one in (baseline, candidate)
                ]
                return Duel(outcomes[0], outcomes[1], None)
        try:
            return self._task("running", _compare, baseline, candidate, plan, seed)
        except CaseError as error:
            reason = f"comparing: {error.reason}"
            first, second = (
                not_measured(one, self.device, "failed", reason) for one in (baseline, candidate)
            )
            return Duel(first, second, None)

    def resident_blocks(self, case: Case) -> int | None:
        """Blocks that a multiprocessor holds of a built case at once, where the driver tells."""
        return self._task("building", _resident_blocks, case)

    def limits(self, *, anew: bool = False) -> Limits:
        """What the device can do at best, measured once and kept; `CaseError` where it fails."""
        return self._task("running", _limits, anew)

    def begin(self) -> None:
        """Start opening the device."""
        self.executor.begin(_begin, self.device, self.options)

    def _ready(self, case: Case, variants: tuple[Variant, ...] | None = None) -> None:
        self._task("preparing its inputs", _prepare, case.problem, case.kernel)
        self._attempt("building", lambda: self.builders.wait(case))
        self._task("building", _build, case, variants)

    def _task(self, doing: str, task: Callable[..., T], *args: Any) -> T:
        deadline, _ = self._deadline(doing)
        return self._attempt(
            doing,
            lambda: self.executor.call(task, self.device, self.options, *args, timeout_s=deadline),
        )

    def _deadline(self, doing: str) -> tuple[float | None, str]:
        return {
            "building": (self.deadlines.build_s, "--build-timeout"),
            "running": (self.deadlines.run_s, "--timeout"),
        }.get(doing, (None, ""))

    def _attempt(self, doing: str, call: Callable[[], T]) -> T:
        """What the call returns; whatever ends it otherwise is a `CaseError`."""
        try:
            return call()
        except CaseError as error:
            if error.fatal:
                self.executor.kill()
            raise
        except DeadlineError:
            deadline, option = self._deadline(doing)
            late = f"{doing} took longer than {deadline:g} s and was stopped (see {option})"
            raise _LateError(late) from None
        except DiedError as error:
            reason = f"{doing} ended its process: {error}"
        except MatbenchError:
            raise  # what is wrong with every case: a cache folder, say
        except Exception as error:
            # A mistake of matbench's own, or memory that ran out: this case's loss alone.
            self.executor.kill()
            reason = f"{doing} raised {type(error).__name__}: {error}"
        raise CaseError(reason)

    def close(self) -> None:
        self.executor.kill()


class Crew:
    """A worker for each device of a sweep, started when its first case comes."""

    def __init__(self, options: Options, deadlines: Deadlines) -> None:
        self.options = options
        self.deadlines = deadlines
        self.workers: dict[str, Worker] = {}
        self.builders = Builders(deadlines.build_s)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.builders.close()
        for worker in self.workers.values():
            worker.close()

    def worker(self, device: DeviceInfo) -> Worker:
        """The worker that owns a device."""
        if device.label not in self.workers:
            self.workers[device.label] = Worker(
                device, self.options, self.deadlines, LocalExecutor(), self.builders
            )
        return self.workers[device.label]

    def start(self, devices: Iterable[DeviceInfo]) -> None:
        """Begin to open devices; what goes wrong then shows again with their first case."""
        for device in devices:
            if device.backend != "host":
                self.worker(device).begin()

    def build_ahead(self, cases: Sequence[tuple[DeviceInfo, Case]]) -> None:
        """Start compiling for devices that are not disturbed by it."""
        for device, case in cases:
            self.builders.start(device, [case], self.options.builds)
