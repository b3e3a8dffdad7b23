"""What a judge answers: verdicts on kernels, and comparisons of two."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from matbench.model import Adoption, Problem
from matbench.records.comparison import ComparisonRecord
from matbench.records.comparison import Verdict as Relation
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome, Status
from matbench.records.reading import Contents

#: The first of these that a case of a problem has is that of the problem, as one set of constants
#: may not fit; the worst problem counts.
_OF_A_PROBLEM: tuple[Status, ...] = ("wrong", "failed", "measured", "skipped")
_WORST_FIRST: tuple[Status, ...] = ("wrong", "failed", "skipped", "measured")


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel at all sizes and swept constants; `cases` are records, as in files.

    It is `measured` if it has a time at each size, and is right wherever it runs. Otherwise
    `reason` says why not: that of the first case which is wrong, or else failed, or else skipped at
    a size without a time. A kernel that cannot be read or called is `failed` and has no cases, or
    `skipped` if it needs another device.
    `adoption`: how one without front matter was called, or if no call is right, the closest.
    """

    kernel: str
    status: Status
    reason: str | None = None
    cases: tuple[Outcome, ...] = ()
    adoption: Adoption | None = None

    @classmethod
    def of(cls, kernel: str, cases: Iterable[Outcome], adoption: Adoption | None = None) -> Verdict:
        """The verdict that follows from these cases."""
        from matbench.show.reasons import outcome_reason

        cases = tuple(cases)
        if not cases:
            return cls(kernel=kernel, status="skipped", reason="it has no cases at these sizes")
        of_problems: dict[Problem, Outcome] = {}
        for case in sorted(cases, key=lambda case: _OF_A_PROBLEM.index(case.status)):
            of_problems.setdefault(case.case.problem, case)
        worst = min(of_problems.values(), key=lambda case: _WORST_FIRST.index(case.status))
        reason = outcome_reason(worst) if worst.status != "measured" else None
        return cls(
            kernel=kernel, status=worst.status, reason=reason, cases=cases, adoption=adoption
        )

    @property
    def median_ns(self) -> float | None:
        """Nanoseconds: the median at the fastest constants, added up over the sizes; None unless
        `measured`."""
        if self.status != "measured":
            return None
        from matbench.analysis import ranking

        return sum(best.median_ns or 0.0 for best in ranking.fastest(self.cases))

    def rows(self) -> list[dict[str, Any]]:
        """A flat dict for each case, as for `Records.rows`."""
        return _rows(self.cases, ())


class Comparisons(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate against a baseline, timed in turns at each size; `records` are as in files."""

    records: tuple[ComparisonRecord, ...] = ()
    reason: str | None = None

    @property
    def verdict(self) -> Relation | None:
        """FASTER, SLOWER or SAME if that holds at all sizes, else UNDECIDED. None if one of the two
        is wrong or did not run; then `reason` says why."""
        if self.reason is not None or not self.records:
            return None
        verdicts = {record.verdict for record in self.records}
        return verdicts.pop() if len(verdicts) == 1 else "UNDECIDED"

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Of each size: the candidate's median as a multiple of the baseline's."""
        return tuple(record.ratio for record in self.records)


class Records(Contents):
    """The records of a file: `outcomes`, the `environments` of the runs that wrote them, and
    `findings` of other commands with their outcomes; `notes` name lines that are no records."""

    def rows(self) -> list[dict[str, Any]]:
        """A flat dict for each outcome, with the columns of `--format csv`; None: not known."""
        return _rows(self.outcomes, self.environments)


def read(path: str | Path) -> Records:
    """The records of a file; `UsageError` if matbench did not write it."""
    return Records(Path(path))


def _rows(outcomes: Iterable[Outcome], about: Iterable[Environment]) -> list[dict[str, Any]]:
    from matbench.show import outcomes as table
    from matbench.show.table import flat

    report = table.report(outcomes, about)
    columns = [column for column in report.columns if column.key]
    return [{column.key: flat(column.at(row)) for column in columns} for row in report.rows()]
