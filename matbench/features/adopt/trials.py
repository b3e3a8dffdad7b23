"""Trials of guesses: one launch each, which must not depend on what else the machine does.

So a launch that another program may have disturbed is repeated before it counts, and once a call
is right, limits count work, not seconds.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from matbench.errors import BuildError, CaseError, MatbenchError, OutOfMemoryError, UsageError
from matbench.features.adopt import probing
from matbench.features.adopt.argument_guesses import NotCallableError
from matbench.features.adopt.calling import CallGuess
from matbench.features.adopt.probing import ProbeResult
from matbench.features.adopt.subjects import ForeignKernel
from matbench.kernelfile import includes, sweep
from matbench.model import Case, Kernel, Problem
from matbench.show.reasons import skip_reason
from matbench.worker.worker import LateError, Worker

#: The time of one launch, that of its repetition, and the pause in between.
_LAUNCH_S = 3.0
_REPEATED_S = 5.0
_PAUSE_S = 1.0
#: How many launches may fail or hang.
_MOST_FAILURES = 4
_MOST_LATE = 2
#: What other programs may cause.
_OF_OTHERS = (LateError, OutOfMemoryError)
#: What to do about such a launch.
BUSY = "if the device was busy, try again"
#: The share of C that must be right for a call to count as close.
_LEAST_SHARE = 0.05


class AdoptTrials:
    """The trials of one kernel."""

    def __init__(self, subject: ForeignKernel, worker: Worker) -> None:
        self.subject = subject
        self.worker = worker
        self.ran = self.faults = self.failures = self.late = 0
        self.overran = False  # whether a right product was also written outside C
        self.built: set[tuple[str, ...]] = set()
        self.refused: dict[tuple[str, ...], str] = {}
        #: Launches that did not complete, with the reason: they show nothing.
        self.unfinished: list[str] = []
        #: Problems at which a call was wrong, and whether it went beyond the edge of a matrix.
        self.missed: list[tuple[Problem, bool]] = []
        #: The closest launch so far: how close, what was wrong with it if that is known, its guess.
        self.nearest: tuple[float, str, CallGuess | None] = 0.0, "", None

    def table_of(self, guess: CallGuess, **more: Any) -> dict[str, Any]:
        """The table for a guess."""
        return guess.table(self.subject.function, **{**more, **self.subject.given})

    def kernel(self, guess: CallGuess) -> Kernel:
        """The kernel called that way; whatever the call, the same entry is built only once."""
        kernel = self.subject.load(self.table_of(guess))
        identity = repr((kernel.source, kernel.entry)).encode()
        return msgspec.structs.replace(kernel, sha256=includes.identity(identity, kernel.includes))

    def probe(
        self, guess: CallGuess, problem: Problem, *, poisoned: bool = False
    ) -> ProbeResult | None:
        """The result of one launch; None if it failed, or if the search is at its limits."""
        build = (*guess.geometry.template, *map(str, guess.geometry.params.values()))
        if self.is_exhausted or build in self.refused:
            return None
        case = self.case(guess, problem, build)
        if case is None:
            return None
        self.built.add(build)
        try:
            result = self.launched(case, poisoned)
        except BuildError as error:
            self.refused[build] = error.reason
            return None
        except CaseError as error:
            self.failed(guess, case, error)
            return None
        except MatbenchError as error:
            raise NotCallableError(str(error)) from None
        self.ran += 1
        if result.product and result.spoiled:
            self.overran = self.overran or result.spoiled == ("memory outside C",)
            self.note(guess, 0.5, f"writes to {result.spoiled[0]}")
        elif not result.product and result.share > _LEAST_SHARE:
            self.note(guess, 0.1 + result.share / 10, "")
        return result

    def case(self, guess: CallGuess, problem: Problem, build: tuple[str, ...]) -> Case | None:
        """The case of a guess; None if it cannot be launched."""
        params = guess.geometry.params
        try:
            case = sweep.case(self.kernel(guess), problem, params, self.worker.device)
        except UsageError as error:
            self.note(guess, 0.005, str(error))
            return None
        except MatbenchError as error:
            raise NotCallableError(str(error)) from None
        if case.skip is None:
            return case
        reason = skip_reason(case.skip)
        if case.skip.kind in ("requirement", "unavailable"):
            self.refused[build] = reason
        else:
            self.note(guess, 0.005, reason)
        return None

    def failed(self, guess: CallGuess, case: Case, error: CaseError) -> None:
        """Count and describe a launch that failed twice."""
        why = self.worker.suspicions(case)
        reason = error.reason.partition(" (see --")[0]  # `adopt` has no option for deadlines
        reason = "; ".join((reason, *why))
        self.failures += 1
        self.faults += 1
        self.late += isinstance(error, LateError)
        if isinstance(error, _OF_OTHERS):
            busy = "" if why else f"; {BUSY}"
            self.unfinished.append(f"{case.problem.size}: {reason}{busy}")
        self.note(guess, 0.01, reason)

    @property
    def is_exhausted(self) -> bool:
        """Whether the search is at its limits."""
        return self.failures >= _MOST_FAILURES or self.late >= _MOST_LATE

    def renew(self) -> None:
        """Begin a step of its own, except for launches that hang, as a search must end soon."""
        self.failures = 0

    def launched(self, case: Case, poisoned: bool) -> ProbeResult:
        """One launch; if other programs may be why it fails, one more."""
        try:
            return self._probed(case, poisoned, _LAUNCH_S)
        except CaseError as error:
            if not isinstance(error, _OF_OTHERS) and "from outside" not in error.reason:
                raise  # a new process for the next launch takes seconds
            time.sleep(_PAUSE_S)
        return self._probed(case, poisoned, _REPEATED_S)

    def _probed(self, case: Case, poisoned: bool, limit_s: float) -> ProbeResult:
        return self.worker.run(probing.probed, case, poisoned, case=case, deadline_s=limit_s)

    def is_right(self, guess: CallGuess, problem: Problem) -> bool:
        """Whether a launch computes the problem, and writes only to C."""
        result = self.probe(guess, problem)
        if result is None or (result.share == 1 and not result.spoiled):
            return result is not None
        self.missed.append((problem, result.is_beyond))
        return False

    def is_wrong(self, guess: CallGuess, problem: Problem) -> bool:
        """Whether a launch shows that a call is wrong; what other programs may cause shows
        nothing."""
        self.renew()
        before = self.faults, len(self.unfinished)
        result = self.probe(guess, problem)
        if result is None:
            return self.faults > before[0] and len(self.unfinished) == before[1]
        return result.share < 1 or bool(result.spoiled)

    def limit(self, guess: CallGuess, problem: Problem) -> str:
        """The limit that a launch exceeds, in words."""
        params, device = guess.geometry.params, self.worker.device
        skip = sweep.case(self.kernel(guess), problem, params, device).skip
        return skip_reason(skip) if skip is not None and skip.kind == "limit" else ""

    def note(self, guess: CallGuess, nearness: float, words: str) -> None:
        """Keep the description of a wrong launch if it is the closest so far."""
        if nearness > self.nearest[0]:
            self.nearest = nearness, words, guess
