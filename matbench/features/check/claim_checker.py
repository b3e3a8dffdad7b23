"""How much of its claims a kernel needs: it runs again with each claim removed or reduced.

Claims make checks easier to pass, and need no proof. So `matbench check` tests each claim at three
of the probes that passed, with all sets of parameters: the one with the shortest sum, which has
the smallest error bound, the one with the longest and the one with the most work; with signed
inputs if there are any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from matbench import workloads
from matbench.analysis.ranking import FLOAT32_EXPONENTS, Key, Weakening
from matbench.features.check.probe import Need
from matbench.kernelfile import sweep
from matbench.model import EIGHT_BITS, INTEGERS, Case, Kernel, Problem
from matbench.records.outcome import Claims, Outcome
from matbench.worker.worker import Worker
from matbench.workloads import oracle

#: How often a kernel that claims not to be deterministic is run.
_RUNS = 3

_SIZES = re.compile(r"\b(?:[MNK]|ld[abc]|stride_[abc])\b")

_Finding = tuple[bool | None, str]
_UNTRIED: _Finding = (None, "not tried: no probe passed")


def conditions(claims: Claims) -> list[Weakening]:
    """Each condition on sizes, for those who ask whether the kernel needs it."""
    return [
        Weakening("where", condition, f"only where {condition}")
        for condition in claims.where
        if _SIZES.search(condition)  # not only constants and limits
    ]


class ClaimChecker:
    """A kernel's probes, which of them passed, and the worker that runs more."""

    def __init__(
        self, worker: Worker, probed: Sequence[tuple[str, Case]], outcomes: Sequence[Outcome]
    ) -> None:
        self.worker = worker
        self.cases = [case for _, case in probed if not _is_large(case)]
        pairs = zip((case for _, case in probed), outcomes, strict=False)
        right = [case for case, outcome in pairs if outcome.status == "measured"]
        self.tried = _representative([case for case in right if not _is_large(case)])

    def need(self, claim: Weakening) -> Need:
        """How much of one claim of the kernel is needed."""
        ways: dict[Key, Callable[[], _Finding]] = {
            "precision": self._precision,
            "error_constant": self._error_constant,
            "exponents": self._exponents,
            "deterministic": self._deterministic,
            "where": lambda: self._where(claim.declared),
            "accumulator": lambda: self._needed("without it", accumulator=None),
            "result": lambda: (True, "needed: C has this type"),
        }
        needed, finding = ways[claim.key]() if self.tried or claim.key == "where" else _UNTRIED
        declared = f"where {claim.declared}" if claim.key == "where" else claim.declared
        return Need(key=claim.key, declared=declared, needed=needed, finding=finding)

    # -- one claim each --------------------------------------------------------------------

    def _precision(self) -> _Finding:
        contract = self._kernel.contract
        if contract.storage in ("float16", "bfloat16", *EIGHT_BITS, *INTEGERS):
            return True, f"needed: it reads {contract.storage} from memory"
        claims = {"precision": "float32", "exponents": contract.exponents}
        return self._needed("as float32", **claims)

    def _error_constant(self) -> _Finding:
        least = constant = 0.0
        while constant < self._kernel.error_constant:
            if self._passes(error_constant=constant):
                return (True, f"needs {constant:g}") if constant else (False, "not needed")
            least, constant = constant, 2 * constant or 1.0
        return True, f"needs more than {least:g}"

    def _exponents(self) -> _Finding:
        given = self._kernel.contract
        low, high = given.exponents
        lowest, highest = FLOAT32_EXPONENTS
        full = msgspec.structs.replace(given, exponents=FLOAT32_EXPONENTS)
        if oracle.shifts(given) == oracle.shifts(full):
            return None, "no check scales inputs beyond this range"
        if self._passes(exponents=FLOAT32_EXPONENTS):
            return False, "not needed: passes with float32's range"
        small = not self._passes(exponents=(lowest, high))
        large = not self._passes(exponents=(low, highest))
        if small == large:
            return True, "needed for small and large numbers" + ("" if small else " together")
        return True, f"needed only for {'small' if small else 'large'} numbers"

    def _deterministic(self) -> _Finding:
        for _ in range(_RUNS):
            for outcome in self._outcomes(deterministic=True):
                if outcome.check == "determinism":
                    at = outcome.case.problem
                    return True, f"needed: runs differed at {at.size}, {at.inputs} inputs"
                if outcome.status != "measured":
                    return None, f"not known: {outcome.status} when run again: {outcome.reason}"
        return False, "not needed: three runs agreed"

    def _where(self, condition: str) -> _Finding:
        """Run the probes that only this condition excludes, without it."""
        right = excluded = 0
        for case in (case for case in self.cases if _unmet(case) == condition):
            rules = case.kernel.launch
            others = tuple(other for other in rules.where if other != condition)
            launch = msgspec.structs.replace(rules, where=others)
            kernel = msgspec.structs.replace(case.kernel, launch=launch)
            freed = sweep.case(kernel, case.problem, case.params, self.worker.device)
            if _unmet(freed) in others:
                continue
            excluded += 1
            if freed.skip is None:
                right += self.worker.measure(freed).status == "measured"
        if not excluded:
            return None, "not tried: it excludes no probe that other conditions allow"
        if right == excluded:
            return False, f"not needed: all {excluded} probes that it excludes pass"
        return True, f"needed: {right} of {excluded} probes that it excludes pass without it"

    # -- runs with other claims ------------------------------------------------------------

    @property
    def _kernel(self) -> Kernel:
        return self.tried[0].kernel

    def _outcomes(self, **claims: Any) -> Iterator[Outcome]:
        kernel = msgspec.structs.replace(self._kernel, **claims)
        for case in self.tried:
            yield self.worker.measure(msgspec.structs.replace(case, kernel=kernel))

    def _passes(self, **claims: Any) -> bool:
        return all(outcome.status == "measured" for outcome in self._outcomes(**claims))

    def _needed(self, how: str, **claims: Any) -> _Finding:
        """Whether a claim is, because the kernel does not pass with these in its place."""
        many = len({case.problem.size for case in self.tried})
        sizes = "1 size" if many == 1 else f"{many} sizes"
        where = f"{how} at {sizes}, {self.tried[0].problem.inputs} inputs"
        if self._passes(**claims):
            return False, f"not needed: passes {where}"
        return True, f"needed: does not pass {where}"


def _is_large(case: Case) -> bool:
    return workloads.workload_of(case.problem).least_bytes(case.problem) > 2**31


def _unmet(case: Case) -> str | None:
    """The condition of `where` that excludes a case."""
    skip = case.skip
    return skip.needs if skip is not None and skip.kind == "condition" else None


def _representative(right: Sequence[Case]) -> list[Case]:
    """For each set of parameters, the cases with the shortest sum, the longest, and most work."""
    if not right:
        return []
    workload = workloads.workload_of(right[0].problem)
    kinds = {case.problem.inputs for case in right}
    kind = next(kind for kind in reversed(workload.probed_inputs) if kind in kinds)
    sets: dict[str, list[Case]] = {}
    for case in right:
        if case.problem.inputs == kind:
            sets.setdefault(str(case.params), []).append(case)
    chosen: set[tuple[str, Problem]] = set()
    for params, cases in sets.items():
        problems = [case.problem for case in cases]
        # Of the shortest sums, that of the most elements.
        shortest = min(problems, key=lambda at: (workload.terms(at), -workload.least_bytes(at)))
        longest, most = (max(problems, key=of) for of in (workload.terms, workload.operations))
        chosen |= {(params, problem) for problem in (shortest, longest, most)}
    return [case for case in right if (str(case.params), case.problem) in chosen]
