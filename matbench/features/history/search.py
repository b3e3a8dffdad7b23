"""Finds the commits that made a kernel slower: each version against the right one before it, or by
bisection.

A commit is to blame only if two intervals of the ratio lie wholly beyond the margin: that of its
version and the one before, and that of a second comparison with the sides exchanged. A bisection
also takes what versions farther away say of both, for the second. The two come from different
processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import msgspec

from matbench.analysis.statistics import ComparisonPlan, Ratio
from matbench.features.versions.commits import CommittedVersion
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Problem
from matbench.records import resuming
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import CaseRecord, Outcome
from matbench.records.writing import RecordWriter
from matbench.worker import comparing
from matbench.worker.worker import WorkerPool


@dataclass(eq=False)
class HistoryStep(CommittedVersion):
    """A version, and what was measured of it: `record` compares it with the version `before`.

    For a slowdown, `second` is the same ratio from other samples, which must confirm it.
    """

    case: Case | None = None
    outcome: Outcome | None = None
    before: HistoryStep | None = None
    record: ComparisonRecord | None = None
    second: Ratio | None = None


@dataclass
class Bench:
    """Measures versions on one problem, if the writer's file lacks them, and writes them there.

    UNDECIDED comparisons are measured again.
    """

    pool: WorkerPool
    device: DeviceInfo
    problem: Problem
    overrides: dict[str, tuple[int, ...]]
    plan: ComparisonPlan
    writer: RecordWriter
    versions: Sequence[CommittedVersion]

    def __post_init__(self) -> None:
        self._codes = {version.kernel.sha256: version.code for version in self.versions}
        # The first, so that the fastest parameters do not change when more are added.
        outcomes = resuming.finished(reversed(self.writer.outcomes)).values()
        self._outcomes = {self._key(outcome.case): outcome for outcome in outcomes}
        options = self.pool.options.on(self.device.kind)
        mode = "cold" if options.cold else "hot graph" if options.graph else "hot"
        self._records: dict[tuple[resuming.CaseKey, ...], ComparisonRecord] = {
            (self._key(record.baseline.case), self._key(record.candidate.case)): record
            for record in self.writer.findings
            if isinstance(record, ComparisonRecord) and record.candidate.mode == mode
        }
        self._here: set[tuple[resuming.CaseKey, ...]] = set()  # by the process that there is

    def _key(self, case: CaseRecord) -> resuming.CaseKey:
        """Equal for versions of the same code."""
        code = self._codes.get(case.sha256, case.sha256)
        return resuming.CaseKey.from_case(case)._replace(sha256=code)

    def check(self, step: HistoryStep) -> None:
        """Check a version, and choose its fastest parameters."""
        cases = sweep.cases([step.kernel], [self.problem], self.overrides, self.device)
        runnable = [case for case in cases if case.skip is None] or cases[:1]
        looks = [(self._outcome(case), case) for case in runnable]
        step.outcome, step.case = min(looks, key=lambda look: look[0].median_ns or inf)

    def _outcome(self, case: Case) -> Outcome:
        key = self._key(CaseRecord.from_case(case, self.device))
        outcome = self._outcomes.get(key)
        if outcome is None:
            outcome = self.pool.worker(self.device, case.kernel).measure(case)
            if outcome.status in ("measured", "wrong"):  # others may be able to run next time
                self.writer.write(outcome)
                self._outcomes[key] = outcome
        return outcome

    def compare(
        self, old: HistoryStep, new: HistoryStep, *, anew: bool = False
    ) -> ComparisonRecord:
        """Two right versions, timed in turns; `anew`: in a new process."""
        cases = [step.case for step in (old, new) if step.case is not None]
        key = tuple(self._key(CaseRecord.from_case(case, self.device)) for case in cases)
        known = self._records.get(key)
        if known and not self._is_undecided(known) and not (anew and key in self._here):
            return known
        if anew:
            self.pool.renew()
            self._here.clear()
        workers = [self.pool.worker(self.device, case.kernel) for case in cases]
        record = msgspec.structs.replace(
            comparing.compare(workers, cases, self.plan, self.problem.seed),
            baseline_name=old.label,
            candidate_name=new.label,
        )
        if record.comparison is not None:
            self.writer.write(record)
            self._records[key] = record
            self._here.add(key)
        return record

    def _is_undecided(self, record: ComparisonRecord) -> bool:
        """Whether an edge of the margin lies within the interval."""
        low, high = record.interval or (0.0, inf)
        edge = 1 + self.plan.threshold
        return any(low <= bound < high for bound in (edge, 1 / edge))


class HistorySearch:
    """The steps of a history, neighbours of the same code as one; `remarks` say what stays open."""

    def __init__(self, versions: Sequence[CommittedVersion], margin: float) -> None:
        pairs = zip(versions, ["", *(version.code for version in versions)], strict=False)
        self.steps = [
            HistoryStep(**vars(version)) for version, code in pairs if version.code != code
        ]
        self.edge = 1 + margin
        self.remarks: list[str] = []

    def run(self, bench: Bench, begin: Callable[[str], None], *, bisect: bool) -> None:
        """Compare each version with the right one before it, or only what a bisection needs;
        `begin` is told what comes next."""
        self._bench, self._begin = bench, begin
        low = next(filter(self._is_right, range(len(self.steps))), len(self.steps))
        if bisect:
            high = next(filter(self._is_right, range(len(self.steps) - 1, low, -1)), low)
            ratio = self._compared(low, high) if high > low else None
            if ratio is not None and ratio.low > self.edge:
                self._bisect(low, high, ratio)
            return
        for high in filter(self._is_right, range(low + 1, len(self.steps))):
            self._judge(low, high)
            low = high if self._is_right(high) else low

    def is_blamed(self, step: HistoryStep) -> bool:
        """Whether both intervals say that it is slower by more than the margin."""
        first = step.record and Ratio.of(step.record)
        return bool(first and step.second and min(first.low, step.second.low) > self.edge)

    def _is_right(self, index: int) -> bool:
        step = self.steps[index]
        if step.outcome is None:
            self._begin(f"checking {step.label}")
            self._bench.check(step)
        return step.outcome is not None and step.outcome.status == "measured"

    def _compared(self, low: int, high: int, *, anew: bool = False) -> Ratio | None:
        """The interval of the ratio of two versions; None if one of them turned out to be wrong."""
        old, new = self.steps[low], self.steps[high]
        if new.before is not old or new.record is None:
            self._begin(f"{new.label} against {old.label}")
            new.before, new.record = old, self._bench.compare(old, new, anew=anew)
            if new.record.candidate.is_broken:
                new.outcome = new.record.candidate
        return Ratio.of(new.record)

    def _judge(self, low: int, high: int, known: Ratio | None = None) -> bool:
        """Whether the second of two neighbours is to blame, by two of their ratios: both measured,
        or one of them `known` from others."""
        old, new = self.steps[low], self.steps[high]
        known = known if new.before is not old else None
        ratio = self._compared(low, high, anew=known is not None)
        if ratio is not None and ratio.low > self.edge:
            swapped = None if known else Ratio.of(self._bench.compare(new, old, anew=True))
            new.second = swapped.inverse() if swapped else known
        return self.is_blamed(new)

    def _bisect(self, low: int, high: int, ratio: Ratio) -> bool:
        """Find what made version `high` slower than `low`, whose `ratio` is beyond the margin.

        The ratios of both and of one half give that of the other half, which is measured only if
        the margin lies within it. Returns whether anything was told.
        """
        between = sorted(range(low + 1, high), key=lambda index: abs(2 * index - low - high))
        middle = next(filter(self._is_right, between), None)
        if middle is None:
            return self._judge(low, high, ratio)
        left, right, told = self._compared(low, middle), None, False
        if left is None and not self._is_right(middle):
            return self._bisect(low, high, ratio)
        if left is not None:
            right = ratio.over(left)
            told = left.low > self.edge and self._bisect(low, middle, left)
        if right is None or right.low <= self.edge < right.high:
            right = self._compared(middle, high)
        if right is not None and right.low > self.edge:
            told |= self._bisect(middle, high, right)
        if not told:
            where = f"{self.steps[low].commit} to {self.steps[high].commit}"
            self.remarks.append(f"{where}: slower, but no single commit is shown to be to blame")
        return True
