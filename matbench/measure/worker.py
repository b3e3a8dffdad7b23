"""Runs cases in a process that may die, so that a bad kernel hurts only itself.

Each device has one worker process that owns it and keeps its `Session`. A build and a measurement
have a deadline each; a worker that passes one, or dies, is replaced, and the case becomes a failed
outcome with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from matbench.errors import CaseError, MatbenchError
from matbench.measure.builders import Builders, build_key
from matbench.measure.options import Deadlines, Options
from matbench.measure.process import DeadlineError, DiedError, Pool
from matbench.model import Case, DeviceInfo, Problem, Reading

if TYPE_CHECKING:
    from matbench.analysis.statistics import ComparisonPlan
    from matbench.backends import Variant
    from matbench.measure.session import Found, Session
    from matbench.records.comparison import ComparisonRecord
    from matbench.records.explanation import Limits
    from matbench.records.outcome import Outcome

T = TypeVar("T")
P = ParamSpec("P")


class _LateError(CaseError):
    """What a `DeadlineError` is for its case."""


# -- in the worker process -----------------------------------------------------------------------

_device: DeviceInfo
_options: Options
_session: Session | None = None


def _begin(device: DeviceInfo, options: Options) -> None:
    global _device, _options
    _device, _options = device, options


def _open() -> Session:
    global _session
    if _session is None:
        from matbench.backends import open_backend
        from matbench.cache import Cache
        from matbench.measure.session import Session

        cache = Cache()
        _session = Session(open_backend(_device, cache), cache, _options)
    return _session


def _start() -> None:
    _open()


def _do(method: Callable[..., T], args: tuple[Any, ...], more: dict[str, Any]) -> T:
    """Call a method of the session."""
    return method(_open(), *args, **more)


def _measure_library(case: Case) -> Outcome:
    from matbench.cache import Cache
    from matbench.measure import library

    return library.measure(case, _device, Cache(), _options)


# -- in the main process -------------------------------------------------------------------------


class Worker:
    """One device's cases, one after the other; whatever happens becomes an outcome."""

    def __init__(
        self, device: DeviceInfo, options: Options, deadlines: Deadlines, builders: Builders
    ) -> None:
        self.device = device
        self.options = options
        self.deadlines = deadlines
        self.builders = builders
        self.pool = Pool(_begin, device, options)
        self._prepared: tuple[Problem, Reading] | None = None
        self._late: Counter[bytes] = Counter()

    def start(self) -> None:
        """Begin to open the device."""
        self.pool.schedule(_start)

    def deadlines_passed(self, case: Case) -> int:
        """How many runs of this kernel with these parameters, of any problem, took too long."""
        return self._late[build_key(case)]

    def measure(self, case: Case) -> Found:
        """Build, check and time one case."""
        from matbench.measure.session import Session

        return self._on_case(case, Session.measure)

    def clock_blocks(self, case: Case) -> Found:
        """Build and check one case, and clock its blocks."""
        from matbench.measure.session import Session

        return self._on_case(case, Session.clock_blocks)

    def look(self, case: Case, samples: int, limit_ns: float, *, check: bool) -> Outcome:
        """A few samples of one case, fewer when one takes longer than `limit_ns`."""
        from matbench.measure.outcomes import not_measured
        from matbench.measure.session import Session

        try:
            self._ready(case, ("plain",))
            return self._ask(Session.look, case, samples, limit_ns, check=check)
        except CaseError as error:
            return not_measured(case, self.device, "failed", error.reason)

    def compare(
        self, baseline: Case, candidate: Case, plan: ComparisonPlan, seed: int
    ) -> ComparisonRecord:
        """Both cases in turns; a case that cannot run leaves no comparison."""
        from matbench.measure.outcomes import not_measured, not_run
        from matbench.measure.session import Session
        from matbench.records.comparison import ComparisonRecord

        def without(first: Outcome, second: Outcome) -> ComparisonRecord:
            return ComparisonRecord(
                baseline_name=baseline.kernel.name,
                candidate_name=candidate.kernel.name,
                baseline=first,
                candidate=second,
                comparison=None,
            )

        cases = (baseline, candidate)
        untold = "not compared: the other one could not run"
        for case in cases:
            try:
                if case.skip is None:
                    self._ready(case)
                    continue
                broken = not_run(case, self.device)
            except CaseError as error:
                broken = not_measured(case, self.device, "failed", error.reason)
            first, second = (
                broken if each is case else not_measured(each, self.device, "skipped", untold)
                for each in cases
            )
            return without(first, second)
        try:
            return self._ask(Session.compare, baseline, candidate, plan, seed)
        except CaseError as error:
            reason = f"comparing: {error.reason}"
            first, second = (not_measured(c, self.device, "failed", reason) for c in cases)
            return without(first, second)

    def limits(self, *, anew: bool = False) -> Limits:
        """What the device can do at best, measured once and kept; `CaseError` where it fails."""
        from matbench.measure.session import Session

        return self._ask(Session.limits, anew=anew)

    def close(self) -> None:
        self.pool.kill()

    def _on_case(self, case: Case, method: Callable[[Session, Case], Found]) -> Found:
        from matbench.measure.outcomes import not_measured, not_run
        from matbench.measure.session import Found

        if case.skip is not None:
            return Found(not_run(case, self.device))
        try:
            if case.kernel.library is not None and case.kernel.on_host:
                return Found(self._task("running", _measure_library, case))
            self._ready(case)
            return self._ask(method, case)
        except CaseError as error:
            self._late[build_key(case)] += isinstance(error, _LateError)
            return Found(not_measured(case, self.device, "failed", error.reason))

    def _ready(self, case: Case, variants: tuple[Variant, ...] | None = None) -> None:
        """Inputs and builds in place. Preparing has no deadline: a reference may take long."""
        from matbench.measure.session import Session

        wanted = case.problem, case.kernel.reading
        if self._prepared != wanted:
            self._prepared = None
            self._task("preparing its inputs", _do, Session.prepare, wanted, {})
            self._prepared = wanted
        self._attempt("building", lambda: self.builders.wait(case))
        self._task("building", _do, Session.build, (case, variants), {})

    def _ask(
        self, method: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs
    ) -> T:
        """What a method of the session returns."""
        found: T = self._task("running", _do, method, args, more)
        return found

    def _task(self, doing: str, task: Callable[..., T], *args: Any) -> T:
        deadline_s, _ = self._deadline(doing)
        return self._attempt(doing, lambda: self.pool.call(task, *args, timeout_s=deadline_s))

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
                self._lost()
            raise
        except DeadlineError:
            self._prepared = None
            deadline_s, option = self._deadline(doing)
            late = f"{doing} took longer than {deadline_s:g} s and was stopped (see {option})"
            raise _LateError(late) from None
        except DiedError as error:
            self._prepared = None
            reason = f"{doing} ended its process: {error}"
        except MatbenchError:
            raise  # what is wrong with every case: a cache folder, say
        except Exception as error:
            # A mistake of matbench's own, or memory that ran out: this case's loss alone.
            self._lost()
            reason = f"{doing} raised {type(error).__name__}: {error}"
        raise CaseError(reason)

    def _lost(self) -> None:
        self._prepared = None
        self.pool.kill()


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
            self.workers[device.label] = Worker(device, self.options, self.deadlines, self.builders)
        return self.workers[device.label]

    def start(self, devices: Iterable[DeviceInfo]) -> None:
        """Begin to open devices; what goes wrong then shows again with their first case."""
        for device in devices:
            if device.backend != "host":
                self.worker(device).start()

    def build_ahead(self, cases: Sequence[tuple[DeviceInfo, Case]]) -> None:
        """Start compiling for devices that are not disturbed by it."""
        for device, case in cases:
            self.builders.start(device, [case], self.options.builds)
