"""Finds the commits that made a kernel slower: each version against the right one before it, or by
bisection.

A commit is to blame only if two intervals of the ratio lie wholly beyond the margin: that of its
version and the one before, and that of a second comparison with the sides exchanged. A bisection
also takes what versions farther away say of both, for the second. The two come from different
processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from matbench.analysis.gathering import CaseKey, finished
from matbench.analysis.ranking import LEAST
from matbench.analysis.statistics import ComparisonPlan
from matbench.features.history.commits import CommittedVersion, Ratio
from matbench.model import Case, DeviceInfo, Kernel
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import CaseRecord, Outcome
from matbench.records.writing import RecordWriter
from matbench.worker.comparing import Bench, Contender
from matbench.worker.worker import WorkerPool


class RecordedBench(Bench):
    """Measures only what the writer's file lacks, and writes that there.

    UNDECIDED comparisons, in whose interval an edge of the margin lies, are measured again.
    """

    def __init__(
        self, pool: WorkerPool, device: DeviceInfo, plan: ComparisonPlan, seed: int,
        writer: RecordWriter,
    ) -> None:  # fmt: skip
        super().__init__(pool, device, plan, seed)
        self.writer = writer
        # The first, so that the fastest parameters do not change when more are added.
        self._outcomes = finished(reversed(writer.outcomes))
        options = pool.options.on(device.kind)
        self._records = {
            (CaseKey.from_case(one.baseline.case), CaseKey.from_case(one.candidate.case)): one
            for one in writer.findings
            if isinstance(one, ComparisonRecord) and one.candidate.mode in options.modes
        }
        self._here: set[tuple[CaseKey, CaseKey]] = set()  # by the process that there is

    def _key(self, case: Case) -> CaseKey:
        return CaseKey.from_case(CaseRecord.from_case(case, self.device))

    def measure(self, case: Case) -> Outcome:
        outcome = self._outcomes.get(self._key(case)) or super().measure(case)
        if outcome.status in ("measured", "wrong") and self._key(case) not in self._outcomes:
            self.writer.write(outcome)  # others may be able to run next time
            self._outcomes[self._key(case)] = outcome
        return outcome

    def compare(
        self, baseline: Contender, candidate: Contender, *, anew: bool = False
    ) -> ComparisonRecord:
        """Two right versions, timed in turns; `anew`: in a new process."""
        key = self._key(baseline.case), self._key(candidate.case)
        known = self._records.get(key)
        if known and not (anew and key in self._here):
            low, high = known.interval or (0.0, inf)
            edge = 1 + self.plan.threshold
            if not any(low <= bound < high for bound in (edge, 1 / edge)):
                return known
        if anew:
            self.pool.renew()
            self._here.clear()
        record = super().compare(baseline, candidate)
        if record.comparison is not None:
            self.writer.write(record)
            self._records[key] = record
            self._here.add(key)
        return record


class HistorySearch:
    """The steps of a history, neighbours of the same code as one; `remarks` say what stays open."""

    def __init__(self, versions: Sequence[CommittedVersion], margin: float) -> None:
        pairs = zip(versions, ["", *(version.code for version in versions)], strict=False)
        self.steps = [version for version, code in pairs if version.code != code]
        self.edge = 1 + margin
        self.remarks: list[str] = []

    def run(
        self, bench: RecordedBench, cases: Callable[[Kernel], list[Case]],
        begin: Callable[[str], None], *, bisect: bool,
    ) -> None:  # fmt: skip
        """Compare each version with the right one before it, or only what a bisection needs.

        `cases` are those of a version; `begin` is told what comes next.
        """
        self._bench, self._cases, self._begin = bench, cases, begin
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

    def is_blamed(self, step: CommittedVersion) -> bool:
        """Whether both intervals say that it is slower by more than the margin, and by more than
        the place of data in memory can make it."""
        first = step.record and Ratio.of(step.record)
        if not step.record or not first or not step.second:
            return False
        edge = max(self.edge, 1 + LEAST[step.record.candidate.case.device_kind])
        return min(first.low, step.second.low) > edge

    def _is_right(self, index: int) -> bool:
        step = self.steps[index]
        if step.outcome is None:
            self._begin(f"checking {step.label}")
            best = self._bench.fastest(self._cases(step.kernel), is_checked=True)
            step.contender = Contender(step.label, best.case, best.outcome)
        return step.outcome is not None and step.outcome.status == "measured"

    def _compared(self, low: int, high: int, *, anew: bool = False) -> Ratio | None:
        """The interval of the ratio of two versions; None if one of them turned out to be wrong."""
        old, new = self.steps[low], self.steps[high]
        if new.before is not old or new.record is None:
            self._begin(f"{new.label} against {old.label}")
            new.before, new.record = old, self._turns(old, new, anew=anew)
            if new.record.candidate.is_broken and new.contender is not None:
                new.contender.outcome = new.record.candidate
        return Ratio.of(new.record)

    def _turns(self, *steps: CommittedVersion, anew: bool) -> ComparisonRecord:
        contenders = (step.contender for step in steps if step.contender is not None)
        return self._bench.compare(*contenders, anew=anew)

    def _judge(self, low: int, high: int, known: Ratio | None = None) -> bool:
        """Whether the second of two neighbours is to blame, by two of their ratios: both measured,
        or one of them `known` from others."""
        old, new = self.steps[low], self.steps[high]
        known = known if new.before is not old else None
        ratio = self._compared(low, high, anew=known is not None)
        if ratio is not None and ratio.low > self.edge:
            swapped = None if known else Ratio.of(self._turns(new, old, anew=True))
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
