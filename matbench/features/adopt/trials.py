"""Trials of guesses: one launch each, which must not depend on what else the machine does.

So a launch that another program may have disturbed is repeated before it counts, and once a call
is right, limits count work, not seconds.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from matbench.backends.protocol import Variant
from matbench.errors import (
    BuildError,
    CaseError,
    LackingError,
    MatbenchError,
    OutOfMemoryError,
    UsageError,
)
from matbench.features.adopt import probing
from matbench.features.adopt.guess import Guess, NotCallableError
from matbench.features.adopt.hints import find_hints
from matbench.features.adopt.probing import ProbeResult
from matbench.features.adopt.subjects import ForeignKernel
from matbench.kernelfile import front_matter, includes, sweep
from matbench.model import Case, Kernel, Problem
from matbench.show.reasons import skip_reason
from matbench.worker.worker import LateError, Worker

#: The time of one launch, that of its repetition, and the pause in between.
_LAUNCH_S = 3.0
_REPEATED_S = 5.0
_PAUSE_S = 1.0
#: How long a right call is looked for.
_SEARCH_S = 15.0
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
    """The trials of one kernel; `SourceError` if its text cannot be read."""

    def __init__(self, subject: ForeignKernel, worker: Worker) -> None:
        self.subject, self.function, self.given = subject, subject.function, subject.given
        self.worker = worker
        self.hints = find_hints(subject.source, self.function, subject.headers, subject.beside)
        self.search_s, self.end_s = _SEARCH_S, math.inf
        self.ran = self.faults = self.failures = self.late = 0
        self.overran = False  # whether a right product was written one row or column past C
        self.built: set[tuple[str, ...]] = set()
        self.refused: dict[tuple[str, ...], BuildError] = {}
        #: Launches that did not complete, with the reason: they show nothing.
        self.unfinished: list[str] = []
        #: Problems at which a call was wrong, and whether it wrote or read outside a matrix.
        self.missed: list[tuple[Problem, bool]] = []
        #: The closest launch so far: how close, what was wrong with it if that is known, its guess.
        self.nearest: tuple[float, str, Guess | None] = 0.0, "", None

    @property
    def is_late(self) -> bool:
        """Whether it is too late to look for a right call."""
        return time.monotonic() > self.end_s

    def renew(self) -> None:
        """Begin a step of its own, except for launches that hang, as a search must end soon."""
        self.failures = 0

    def table_of(self, guess: Guess, **more: Any) -> dict[str, Any]:
        """The table for a guess."""
        return guess.table(self.function, **{**more, **self.given})

    def kernel(self, guess: Guess) -> Kernel:
        """The kernel called that way."""
        return self.load(self.table_of(guess))

    def build(self, guess: Guess) -> tuple[str, ...]:
        """What tells the builds of guesses apart."""
        return (*guess.template, *map(str, guess.params.values()))

    def load(self, table: dict[str, Any]) -> Kernel:
        """The kernel with a table, of which builds depend on the entry alone; `UsageError` if that
        is not valid."""
        bare, path = self.subject.bare.encode(), self.subject.path
        kernel = front_matter.parse(bare, str(path), path, None, {"name": "adopted", **table})
        identity = repr((kernel.source, kernel.entry)).encode()
        return msgspec.structs.replace(kernel, sha256=includes.identity(identity, kernel.includes))

    def case(self, guess: Guess, problem: Problem) -> Case:
        """The case of a guess."""
        return sweep.case(self.kernel(guess), problem, guess.params, self.worker.device)

    def build_ahead(self, guess: Guess, variants: Iterable[Variant]) -> None:
        """Start compiling a guess, each variant in a process of its own."""
        with contextlib.suppress(UsageError):
            case = self.case(guess, guess.problem)
            for variant in variants:
                self.worker.builders.start(self.worker.device, [case], (variant,))

    def open(self, guess: Guess) -> None:
        """Open the device, while a guess is compiled, and begin to look for a right call."""
        self.build_ahead(guess, ["plain"])
        try:
            self.worker.open()
        except CaseError as error:
            raise MatbenchError(error.reason) from None  # not the kernel's fault
        self.end_s = time.monotonic() + self.search_s

    def probe(self, guess: Guess, problem: Problem, poisoned: bool = False) -> ProbeResult | None:
        """The result of one launch; None if it failed, or if the search is at its limits."""
        build = self.build(guess)
        is_exhausted = self.failures >= _MOST_FAILURES or self.late >= _MOST_LATE
        if is_exhausted or build in self.refused:
            return None
        try:
            case = self.case(guess, problem)
            if case.skip is not None:
                is_lacking = case.skip.kind in ("requirement", "unavailable")
                raise (LackingError if is_lacking else UsageError)(skip_reason(case.skip))
            self.built.add(build)
            result = self._launched(case, poisoned)
        except BuildError as error:
            self.refused[build] = error
            return None
        except CaseError as error:
            self._failed(guess, case, error)
            return None
        except UsageError as error:
            self.note(guess, 0.005, str(error))
            return None
        except MatbenchError as error:
            raise NotCallableError(str(error)) from None
        self.ran += 1
        if result.product and result.spoiled:
            is_line = result.beyond_C <= max(problem.M, problem.N) * problem.batch
            self.overran |= is_line and result.spoiled == ("memory outside C",)
            self.note(guess, 0.5, f"writes to {result.spoiled[0]}")
        elif not result.product and result.share > _LEAST_SHARE:
            self.note(guess, 0.1 + result.share / 10, "")
        return result

    def _launched(self, case: Case, poisoned: bool) -> ProbeResult:
        """One launch; if other programs may be why it fails, one more."""
        launched = functools.partial(self.worker.run, probing.probed, case, poisoned, case=case)
        try:
            return launched(deadline_s=_LAUNCH_S)
        except CaseError as error:
            if not isinstance(error, _OF_OTHERS) and "from outside" not in error.reason:
                raise  # a new process for the next launch takes seconds
            time.sleep(_PAUSE_S)
        return launched(deadline_s=_REPEATED_S)

    def _failed(self, guess: Guess, case: Case, error: CaseError) -> None:
        """Count and describe a launch that failed twice."""
        why = self.worker.suspicions(case)
        # Without the option that sets the deadline, which `adopt` does not have.
        reason = "; ".join((error.reason.partition(" (see --")[0], *why))
        self.failures += 1
        self.faults += 1
        self.late += isinstance(error, LateError)
        if isinstance(error, _OF_OTHERS):
            self.unfinished.append(f"{case.problem.size}: {reason}{'' if why else f'; {BUSY}'}")
        self.note(guess, 0.01, reason)

    def is_right(self, guess: Guess, problem: Problem) -> bool:
        """Whether a launch computes the problem, and writes only to C."""
        result = self.probe(guess, problem)
        if result is None or (result.share == 1 and not result.spoiled):
            return result is not None
        is_outside = any("outside" in what for what in result.spoiled)
        self.missed.append((problem, result.has_nan or is_outside))
        return False

    def is_wrong(self, guess: Guess, problem: Problem) -> bool:
        """Whether a launch shows that a call is wrong; what other programs may cause does not."""
        self.renew()
        unfinished = len(self.unfinished)
        result = self.probe(guess, problem)
        if result is None:
            return self.failures > 0 and len(self.unfinished) == unfinished
        return result.share < 1 or bool(result.spoiled)

    def limit(self, guess: Guess, problem: Problem) -> str:
        """The limit that a launch exceeds, in words."""
        skip = self.case(guess, problem).skip
        return skip_reason(skip) if skip is not None and skip.kind == "limit" else ""

    def note(self, guess: Guess, nearness: float, words: str) -> None:
        """Keep the description of a wrong launch if it is the closest so far."""
        if nearness > self.nearest[0]:
            self.nearest = nearness, words, guess
