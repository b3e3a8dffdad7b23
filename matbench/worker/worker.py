"""Runs cases in a process that may die, so that a bad kernel harms only its own case.

Each device has one worker process that owns it and keeps its `Session`. Builds and measurements
have deadlines; a worker that misses one, or dies, is replaced, and the case becomes a failed
outcome with the reason.
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

import msgspec

from matbench import workloads
from matbench.backends import bind_to, isolated
from matbench.bench.options import FIRST, Deadlines, Options, Round
from matbench.bench.outcomes import not_measured, skipped
from matbench.errors import (
    BuildError,
    CaseError,
    LackingError,
    MatbenchError,
    OutOfMemoryError,
    ResultError,
    explanation,
)
from matbench.kernelfile.suspicions import suspicions
from matbench.model import BuildKey, Case, DeviceInfo, Kernel, Problem, Skip
from matbench.records.outcome import Outcome, Status
from matbench.worker.builders import Builders
from matbench.worker.output import Listener
from matbench.worker.process import DeadlineError, DiedError, WorkerProcess
from matbench.worker.rounds import Rounds, Visit, in_rounds
from matbench.worker.scheduler import TaskGroup, at_the_same_time

if TYPE_CHECKING:
    from matbench.backends.protocol import Variants
    from matbench.bench.session import Session

T = TypeVar("T")
R = TypeVar("R")
#: Receives a case's label and its device when a visit begins.
Begin = Callable[[str, str], None]

#: How many devices work at the same time.
_MOST_DEVICES = 64
#: How many processes of functions in Python a device has at a time, for rounds.
_MOST_APART = 12
#: A case is sampled up to three times, and verification may take as long again.
_TIMES_SAMPLED = 6
#: Until the device is steady, launches may run twice as long as they are timed, for each of a pair.
TIMES_SUSTAINED = 8
#: What `--method rotating` counts as, in seconds: its warm-up and blocks take longer than sustained
#: ones of the same length.
_ROTATING_S = 5.0


class LateError(CaseError):
    """The error of a case that missed its deadline."""


# -- in the worker process -----------------------------------------------------------------------

_device: DeviceInfo
_options: Options
_judged: Any = None  # the process of functions
_session: Session | None = None


def _begin(device: DeviceInfo, options: Options, is_apart: bool) -> None:
    global _device, _options, _judged
    _device, _options = device, options
    if device.kind == "gpu":
        bind_to(device)
    _judged = isolated(device) if is_apart else None
    if device.backend != "host":
        with suppress(Exception):  # the first task raises it again
            _open()


def _open() -> Session:
    global _session
    if _session is None:
        from matbench.backends import open_backend
        from matbench.bench.session import Session
        from matbench.cache import Cache

        cache = Cache()
        _session = Session(open_backend(_device, cache, _judged), cache, _options)
        _session.backend.conditions()  # from now on, the load of other programs is known
        _session.backend.clock_agrees()  # for later comparison
        # No pause while a kernel is timed: garbage is collected between tasks, and what was
        # imported is left out of that.
        gc.disable()
        gc.freeze()
    return _session


class _OpenSession:
    """Among the arguments of a task, it stands for the session, which is opened if need be."""

    def __reduce__(self) -> tuple[Callable[[], Session], tuple[()]]:
        return _open, ()


def _is_open(session: Session) -> bool:
    return True


def _clock_ns() -> tuple[int, bool]:
    """This process's time, which all processes share, and whether the device agrees."""
    return time.perf_counter_ns(), _session is None or _session.backend.clock_agrees()


# -- in the main process -------------------------------------------------------------------------


class _Step(NamedTuple):
    """What a worker is doing, its deadline, and the option that sets the deadline."""

    doing: str
    deadline_s: float | None = None
    option: str = ""
    #: The source of any output meanwhile, and whether it is shown.
    printer: str = "driver"
    is_heard: bool = True


_OPENING = _Step("opening the device")
_PREPARING = _Step("preparing")  # a reference may take long
_CLOCK = _Step("reading the clock", 60.0)
#: How far clocks of two processes may be apart.
_CLOCK_NS = 10_000_000


class Worker:
    """Runs one device's cases for a pool, one after the other; any failure becomes an outcome."""

    #: What the worker that was last asked for anything is doing.
    doing: ClassVar[str] = ""

    def __init__(self, pool: WorkerPool, device: DeviceInfo, *, is_apart: bool) -> None:
        self.device = device
        self.options, self.builders, self.listener = pool.options, pool.builders, pool.listener
        options, deadlines = pool.options, pool.deadlines
        self._rest = ExitStack() if is_apart else None
        self.process = WorkerProcess(_begin, device, options, is_apart, leads=is_apart)
        self._building = _Step("building", deadlines.build_s, deadlines.option, "compiler")
        kinds = options.cold + options.hot if options.timed else 0
        #: How long a task may take, in seconds.
        self.run_s = deadlines.run_s + _TIMES_SAMPLED * kinds * (options.max_time_s or 0.0)
        self.run_s += TIMES_SUSTAINED * (options.sustained_s or _ROTATING_S * options.rotating)
        self._running = _Step("running", self.run_s, deadlines.option, "kernel")
        self.gives_up = deadlines.gives_up
        self._late = pool.late
        self._is_replaced = False  # if the process may be another one since the last case
        self._warnings: dict[BuildKey, tuple[str, ...]] = {}
        self._refused: dict[tuple[BuildKey, Variants | None], BuildError] = {}

    def measure(self, case: Case, which: Round = FIRST, *, is_timed: bool = True) -> Outcome:
        """Build, check and, if it `is_timed`, time one case, in one round; later ones do not build
        and check it."""
        from matbench.bench.session import Session

        is_ready = which.number > 1 and not self._is_replaced
        if not is_ready and (unfit := self.unfit(case)) is not None:
            return unfit
        self._is_replaced = False
        # What a kernel prints is shown once, not in each round.
        step = self._running._replace(is_heard=which.number == 1)
        try:
            if is_timed:
                outcome = self._do(step, Session.measure, case, which)
            else:
                outcome = self._do(step, Session.checked, case)
        except OutOfMemoryError as error:
            return self.failed(case, error)
        except CaseError as error:
            outcome = self.failed(case, error)
        return self.explained(case, outcome)

    def run(
        self,
        task: Callable[..., T],
        *given: Any,
        case: Case | None = None,
        with_inputs: bool = False,
        deadline_s: float | None = None,
        option: str | None = None,
    ) -> T:
        """What a function of the open session, and of what is `given`, returns: data.

        The plain build of a `case` is made before, and its inputs if the function needs them. It
        may take as long as a case, or `deadline_s`, which an `option` sets. `CaseError` if any of
        that fails.
        """
        step = self._running._replace(deadline_s=deadline_s or self.run_s)
        step = step._replace(option=option or step.option)
        if case is not None:
            self._make_ready(case, ("plain",), with_inputs=with_inputs)
        return self._do(step, task, *given)

    def open(self) -> None:
        """Open the device; `CaseError` if that fails."""
        self._do(_OPENING, _is_open)

    def unfit(self, case: Case) -> Outcome | None:
        """The outcome of a case that cannot run, or has no less work than one of this kernel with
        these parameters that missed its deadline, or whose probes did so twice; None if its inputs
        and builds are ready."""
        if case.skip is not None:
            return skipped(case, self.device, case.skip)
        late, work = self._late[case.build_key], workloads.work_of(case.problem)
        less = [other for other in late if workloads.work_of(other) <= work]
        if self.gives_up and (less or (len(late) > 1 and not self.options.timed)):
            given = {"size": (less or late)[0].size, "option": self._running.option}
            return skipped(case, self.device, Skip("timeouts", given={**given}))
        try:
            self._make_ready(case, None, with_inputs=True)
        except LackingError as error:
            return skipped(case, self.device, Skip("unavailable", error.reason))
        except CaseError as error:
            return self.failed(case, error)
        return None

    def explained(self, case: Case, outcome: Outcome) -> Outcome:
        """The outcome; if it has a reason, with what may be behind it."""
        if outcome.reason is None:
            return outcome
        reason = "; ".join((outcome.reason, *self.suspicions(case)))
        return msgspec.structs.replace(outcome, reason=reason)

    def suspicions(self, case: Case) -> list[str]:
        """Why a kernel that was built may be wrong, or not end: what its compiler warned of, and
        what its text shows."""
        told = self._warnings.get(case.build_key, ())
        return [*told, *(suspicions(case.kernel, told) if case.kernel.kind.has_source else ())]

    def failed(self, case: Case, error: CaseError) -> Outcome:
        """The outcome of a case that ended with this error."""
        if isinstance(error, LateError):
            self._late[case.build_key].append(case.problem)
        status: Status = "wrong" if isinstance(error, ResultError) else "failed"
        return not_measured(case, self.device, status, error.reason)

    def forget(self) -> None:
        """Let go of all builds, so that memory does not grow with the number of kernels."""
        from matbench.bench.session import Session

        self._refused.clear()
        self._warnings.clear()
        with suppress(CaseError):  # the next case fails in the same way
            self._do(_PREPARING, Session.forget)

    def close(self) -> None:
        self.process.kill()
        if self._rest is not None:
            self._rest.close()

    def _make_ready(self, case: Case, builds: Variants | None, *, with_inputs: bool) -> None:
        """Make a case's builds, and its inputs, also in a process that has replaced another. A
        kernel that did not compile is not compiled again for another problem."""
        from matbench.bench.session import Session

        key = case.build_key, builds
        if key in self._refused:
            raise self._refused[key]
        if with_inputs:
            self._do(_PREPARING, Session.prepare, case.problem, case.kernel.contract)
        else:
            self.open()
        try:
            with self._failing(self._building):
                self.builders.wait(self.device, case, builds)
            warnings = self._do(self._building, Session.build, case, builds)
            self._warnings[case.build_key] = warnings
        except BuildError as error:
            self._refused[key] = error
            raise

    def _do(self, step: _Step, task: Callable[..., T], *given: Any) -> T:
        """What a function of the open session, and of what is `given`, returns."""
        is_heard = step.is_heard
        if self._rest is not None:
            self._rest.close()
        try:
            with self._failing(step):
                answer = self.process.call(task, _OpenSession(), *given, timeout_s=step.deadline_s)
            if step.doing == self._running.doing and self.device.kind == "cpu":
                self._require_clock()
            return answer
        except CaseError:
            is_heard = self._is_replaced = True
            raise
        finally:
            if self._rest is not None:
                self._rest.enter_context(self.process.stopped())
            said = self.process.said()
            if said.lines and is_heard and self.listener is not None:
                self.listener(step.printer, said)

    def _require_clock(self) -> None:
        """`CaseError`, and a new process, if a kernel changed the clock of this one, which would
        time the next kernel, too."""
        before_ns = time.perf_counter_ns()
        with self._failing(_CLOCK):
            now_ns, agrees = self.process.call(_clock_ns, timeout_s=_CLOCK.deadline_s)
            late_ns = time.perf_counter_ns() - now_ns
            if not agrees or now_ns < before_ns - _CLOCK_NS or late_ns < -_CLOCK_NS:
                said = "the clock of its process is no longer the system's: the kernel changed it"
                raise CaseError(said, fatal=True)

    @contextmanager
    def _failing(self, step: _Step) -> Iterator[None]:
        """Any failure of a step is a `CaseError`."""
        Worker.doing = step.doing
        try:
            yield
            return
        except CaseError as error:
            if error.fatal:
                self.process.kill()
            raise
        except DeadlineError:
            late = f"{step.doing} took longer than {step.deadline_s:.3g} s and was stopped"
            raise LateError(f"{late} (see {step.option})") from None
        except DiedError as error:
            reason = f"{step.doing}: the worker process {error}"
        except Exception as error:
            is_alone = self._rest is not None and type(error) is not MatbenchError
            if isinstance(error, MatbenchError) and not is_alone:
                raise  # it concerns every case, such as an unusable cache folder
            # A bug in matbench, or a function's process that is broken: only this case fails.
            self.process.kill()
            reason = f"{step.doing} raised {type(error).__name__}: {explanation(error)}"
        raise CaseError(reason)


def results(
    groups: Iterable[TaskGroup[T]], do: Callable[[DeviceInfo, T], R], threads: ThreadPoolExecutor
) -> Iterator[tuple[T, R]]:
    """Every task with its result, as soon as it is done, here in the calling thread.

    If several GPUs can work, each is given its tasks in another thread. A CPU works alone: whatever
    else runs there would slow it down. The first exception that `do` raises is raised here.
    """
    alone = list(groups)
    shared = [group for group in alone if group.devices[0].kind == "gpu"]
    if len({(info.backend, info.identity) for group in shared for info in group.devices}) > 1:
        yield from at_the_same_time(shared, do, threads)
        alone = [group for group in alone if group.devices[0].kind != "gpu"]
    for group in alone:
        for task in group.tasks:
            yield task, do(group.devices[0], task)


class CaseRunner(AbstractContextManager[Any], Protocol):
    """What measures the cases of a sweep: workers of this machine, or of others."""

    def start(self, devices: Iterable[DeviceInfo]) -> None: ...
    def build_ahead(self, cases: Sequence[tuple[DeviceInfo, Case]]) -> None: ...
    def renew(self) -> None: ...
    def measured(self, groups: Iterable[TaskGroup[Case]], begin: Begin) -> Iterator[Visit]: ...


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """A worker for each device of a sweep, started with its first case.

    `listener` is called with the output of kernels soon after it was printed. `builders` is how
    many processes compile ahead.
    """

    def __init__(
        self,
        options: Options,
        deadlines: Deadlines,
        listener: Listener | None = None,
        most_apart: int = _MOST_APART,
        builders: int | None = None,
    ) -> None:
        self.options = options
        self.most_apart = most_apart
        self.deadlines = deadlines
        self.listener = listener
        self.workers: dict[tuple[str, str], Worker] = {}
        self.builders = Builders(deadlines.build_s, builders)
        #: What missed its deadline, in any worker.
        self.late: defaultdict[BuildKey, list[Problem]] = defaultdict(list)
        self._threads = ThreadPoolExecutor(_MOST_DEVICES)

    def __exit__(self, *_: object) -> None:
        self.builders.close()
        self.renew()
        self._threads.shutdown()
        self.renew()  # a thread may have been about to start a process

    def worker(self, device: DeviceInfo, kernel: Kernel | None = None) -> Worker:
        """The worker that owns a device. A function on the host has one of its own, because what
        its code leaves in its process must not affect other kernels."""
        function, is_apart = "", kernel is not None and kernel.kind.is_apart
        if kernel is not None and is_apart:
            function = repr((kernel.path, kernel.entry, kernel.source, kernel.includes))
        key = device.label, function
        if key not in self.workers:
            others = [known for known in [*self.workers] if known[0] == key[0] and known[1]]
            if is_apart and len(others) >= self.most_apart:
                self.workers.pop(others[0]).close()
            self.workers[key] = Worker(self, device, is_apart=is_apart)
        return self.workers[key]

    def distribute(
        self,
        groups: Iterable[TaskGroup[T]],
        do: Callable[[Worker, T], R],
        kernel: Kernel | None = None,
    ) -> Iterator[tuple[T, R]]:
        """The `results` of all tasks, each done by a device's worker; if all are of one `kernel`,
        they have its worker. If several GPUs work at the same time, `do` is called in threads."""
        return results(
            groups, lambda info, task: do(self.worker(info, kernel), task), self._threads
        )

    def measured(self, groups: Iterable[TaskGroup[Case]], begin: Begin) -> Iterator[Visit]:
        """Measure all cases of the groups, in rounds."""

        def visit(device: DeviceInfo, rounds: Rounds) -> Visit | None:
            which = rounds.next()
            if which is None:
                return None
            begin(rounds.case.label, device.where)
            worker = self.worker(device, rounds.case.kernel)
            return rounds.taken(device, worker.measure(rounds.case, which))

        visits = results(in_rounds(groups, self.options), visit, self._threads)
        return filter(None, map(itemgetter(1), visits))

    def forget(self) -> None:
        """Let go of what is kept of earlier kernels; those to come are compiled again."""
        self.late.clear()
        self.builders.forget()
        for worker in [*self.workers.values()]:
            worker.forget()

    def renew(self) -> None:
        """End all workers' processes: the next case starts in a new one."""
        for worker in [*self.workers.values()]:
            worker.close()

    def start(self, devices: Iterable[DeviceInfo]) -> None:
        """Start opening devices; errors appear again with their first case."""
        for device in devices:
            self.worker(device).process.start()
            self.builders.start_own(device)

    def build_ahead(self, cases: Sequence[tuple[DeviceInfo, Case]]) -> None:
        """Start compiling for devices whose timing is not disturbed by it."""
        for device, case in cases:
            self.builders.start(device, [case], self.options.builds)
