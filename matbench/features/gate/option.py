"""Options of `compare`: the gate for CI, its summary for a pull request, and record files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from matbench.cli.console import require_apart, say
from matbench.cli.options import ReportOptions, Share, VerdictOptions, option
from matbench.errors import MatbenchError, UsageError
from matbench.show import safe

if TYPE_CHECKING:
    from matbench.records.comparison import ComparisonRecord
    from matbench.records.environment import Environment

#: How many of the cases that one file lacks are named.
_SHOWN_LABELS = 8


@dataclass(frozen=True)
class GateOptions:
    """What fails."""

    TITLE: ClassVar = VerdictOptions.TITLE

    fail_if_slower: float | None = option(
        "--fail-if-slower",
        type=Share(),
        metavar="SHARE",
        help="Exit 1 if the candidate is SLOWER by more than this, such as 5%, and 3 if no case "
        "could be judged.",
    )
    allow_skips: bool = option(
        "--allow-skips",
        is_flag=True,
        help="Exit 0 even if --fail-if-slower could not judge any case.",
    )

    @property
    def summary(self) -> str | None:
        """The file that GitHub shows on the page of a workflow's run."""
        return os.environ.get("GITHUB_STEP_SUMMARY") or None

    def __post_init__(self) -> None:
        if self.summary is not None:
            self._append("")  # fails now, not after measuring

    def summarize(
        self, records: Sequence[ComparisonRecord], environments: Sequence[Environment],
        remarks: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Append the summary to its file, if there is one; remarks go below the verdict."""
        if self.summary is None:
            return
        from matbench.features.gate import summary

        text = summary.summary(records, environments, self.fail_if_slower, remarks)
        try:
            self._append(text)
        except UsageError as error:  # it was possible before measuring
            raise MatbenchError(str(error)) from None

    def compare_files(self, old: str, new: str, threshold: float, shown: ReportOptions) -> None:
        """Compare two record files case by case; then exit as the gate says."""
        from matbench.features.gate import recorded
        from matbench.records.reading import Contents
        from matbench.show import comparisons

        require_apart({"GITHUB_STEP_SUMMARY": self.summary, **shown.outputs}, (old, new))
        read = [Contents(Path(file)) for file in (old, new)]
        first, second = ((one.environments, one.outcomes) for one in read)
        joined = recorded.compare_records(first, second, (old, new), threshold)

        def tell(line: str) -> None:
            say(safe.line(line), err=True)

        for line in (*read[0].notes, *read[1].notes, *joined.differences):
            tell(f"note: {line}")
        shown.show(comparisons.report(joined.records, second[0], self.refuses))
        self.summarize(joined.records, second[0], joined.differences + joined.broken)
        for file, labels in ((old, joined.only_old), (new, joined.only_new)):
            if labels:
                named = ", ".join(labels[:_SHOWN_LABELS])
                more = len(labels) - _SHOWN_LABELS
                tell(f"only in {file}: {named}" + (f" and {more:,} more" if more > 0 else ""))
        for line in joined.broken:
            tell(line)
        if self.fail_if_slower is None:
            return
        if joined.incomparable and not self.allow_skips:
            tell("not comparable: environments differ; --allow-skips makes the exit code 0")
            sys.exit(3)
        self.exit(joined.records, broken=bool(joined.broken))

    def refuses(self, record: ComparisonRecord) -> bool:
        """Whether the candidate is slower than allowed."""
        from matbench.features.gate import recorded

        return recorded.is_too_slow(record, self.fail_if_slower)

    def exit(self, records: Sequence[ComparisonRecord], *, broken: bool) -> None:
        """Exit 1 if a result is wrong or too slow; 3 if --fail-if-slower could judge no case."""
        from matbench.features.gate import recorded
        from matbench.show import reasons

        allowed = self.fail_if_slower
        if broken or any(map(self.refuses, records)):
            sys.exit(1)
        if allowed is None or self.allow_skips:
            return
        if not any(recorded.is_judged(record, allowed) for record in records):
            why = reasons.comparison_reason(records[0]) if records else "no case is on both sides"
            how = "--allow-skips makes the exit code 0"
            say(f"--fail-if-slower could not judge any case: {safe.line(why)}; {how}", err=True)
            sys.exit(3)

    def _append(self, text: str) -> None:
        assert self.summary is not None
        try:
            with Path(self.summary).open("a", encoding="utf-8") as file:
                file.write(text)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(
                f"GITHUB_STEP_SUMMARY={self.summary}: cannot be written: {why}"
            ) from None
