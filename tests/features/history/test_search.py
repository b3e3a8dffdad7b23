"""Which versions are to blame, and how many comparisons that takes: on simulated clocks."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from support.golden import paged
from support.optional import present
from support.records import environment, in_turns, outcome, timing
from support.tables import shown

from matbench.analysis.statistics import ComparisonPlan, compare_samples
from matbench.bench.options import Options
from matbench.features.history import view
from matbench.features.history.commits import CommittedVersion, Ratio
from matbench.features.history.search import HistorySearch, RecordedBench
from matbench.features.history.view import answer
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Kernel, LaunchRules, Problem, Skip
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import CaseRecord, Outcome, Status
from matbench.records.writing import RecordWriter
from matbench.worker.comparing import Contender

KERNEL = Kernel("mine", LaunchRules(block=(), grid=()))
MARGIN = 0.1


class Simulated:
    """A bench whose versions take these times; 0: one is wrong. A pair differs by a few percent
    whenever it is compared, and one sample in ten is late."""

    def __init__(self, times: Sequence[float], seed: int = 0, doubtful: Sequence[int] = ()) -> None:
        self.times, self.doubtful = times, {str(index) for index in doubtful}
        self.generator = np.random.default_rng(seed)
        self.pairs: list[tuple[str, str]] = []
        self.checked: list[str] = []

    def fastest(self, cases: Any, *, is_checked: bool) -> Contender:
        [number] = cases
        self.checked.append(number)
        right = self.times[int(number)] > 0
        known = outcome(status="measured") if right else outcome(status="wrong", reason="w")
        return Contender("", number, known)

    def compare(self, old: Any, new: Any, *, anew: bool = False) -> ComparisonRecord:
        self.pairs.append((old.case, new.case))
        assert anew or int(old.case) < int(new.case)  # to confirm
        if {old.case, new.case} & self.doubtful:
            bad = outcome(status="wrong", reason="in turns")
            sides = [bad if s.case in self.doubtful else outcome() for s in (old, new)]
            return in_turns(None, *sides)
        plan = ComparisonPlan(threshold=MARGIN)
        late = np.where(self.generator.random((2, plan.looks[-1])) < 0.1, 1.5, 1)
        old_ns, new_ns = self.generator.normal(1, 0.02, late.shape) * late
        old_ns *= self.times[int(old.case)]
        new_ns *= self.times[int(new.case)] * self.generator.normal(1, 0.01)
        decided = (plan.decide(old_ns[:many], new_ns[:many], 0.0) for many in plan.looks)
        return in_turns(next(filter(None, decided)))


def searched(bench: Simulated, *, bisect: bool) -> tuple[list[int], HistorySearch]:
    """The versions that are blamed, and the search."""
    many = len(bench.times)
    versions = [
        CommittedVersion(str(i), "2026-01-01", f"change {i}", replace(KERNEL, name=f"{i}"), f"{i}")
        for i in range(many)
    ]
    search = HistorySearch(versions, MARGIN)
    known: Any = bench
    search.run(known, lambda kernel: [kernel.name], lambda _: None, bisect=bisect)  # type: ignore[list-item]
    return [int(step.commit) for step in search.steps if search.is_blamed(step)], search


pytestmark = pytest.mark.usefixtures("plainly_compared")


@pytest.mark.parametrize("seed", range(12))
def test_three_slowdowns_among_forty_versions(seed: int) -> None:
    """All are found and no other, and a bisection takes at most 8 comparisons for each."""
    slow = sorted(random.Random(seed).sample(range(1, 40), 3))
    times = [1.3 ** sum(i >= at for at in slow) for i in range(40)]
    bench = Simulated(times, seed)
    blamed, _ = searched(bench, bisect=False)
    assert blamed == slow
    assert len(bench.pairs) == 39 + 3
    bench = Simulated(times, seed)
    blamed, search = searched(bench, bisect=True)
    assert blamed == slow
    assert len(bench.pairs) <= 24
    assert len(bench.checked) == len(set(bench.checked)) < 40
    assert search.remarks == []


def test_versions_that_are_alike_are_never_blamed() -> None:
    for seed in range(30):
        for bisect in (False, True):
            bench = Simulated([1.0] * 20, seed)
            assert searched(bench, bisect=bisect)[0] == []
    assert len(bench.pairs) == 1  # the first and the last
    assert len(bench.checked) == 2


def test_a_slowdown_within_the_margin_is_nobodys() -> None:
    """But what many of them add up to is told by a bisection."""
    times = [1.05**i for i in range(6)]
    assert searched(Simulated(times), bisect=False)[0] == []
    blamed, search = searched(Simulated(times), bisect=True)
    assert blamed == []
    assert answer(search)[0] == "No commit is shown to have made it slower by more than 10%"
    assert search.remarks
    for remark in search.remarks:
        assert remark.endswith(": slower, but no single commit is shown to be to blame")


@pytest.mark.parametrize("bisect", [False, True])
def test_wrong_versions_are_passed_over(bisect: bool) -> None:
    """Those between two right ones may be to blame as well, and are named."""
    bench = Simulated([0, 1.0, 1.0, 0, 0, 1.5, 1.5, 1.5, 0])
    blamed, search = searched(bench, bisect=bisect)
    assert blamed == [5]
    assert ("2", "5") in bench.pairs
    line = answer(search)[1]
    assert line.startswith("5 (or 3, 4, not timed): 1.")
    assert line.endswith(" × slower · change 5")
    assert len(bench.checked) == len(set(bench.checked))
    everything_wrong = Simulated([0, 0, 0])
    assert searched(everything_wrong, bisect=bisect)[0] == []
    assert everything_wrong.pairs == []
    one_right = Simulated([0, 1, 0])
    assert searched(one_right, bisect=bisect)[0] == []
    assert one_right.pairs == []


@pytest.mark.parametrize("bisect", [False, True])
@pytest.mark.parametrize("doubtful", range(8))
def test_what_is_wrong_only_in_turns_ends_nothing(doubtful: int, bisect: bool) -> None:
    """It is wrong then, and the others go on; `bisect` may not find what it hides."""
    times = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    blamed, search = searched(Simulated(times, doubtful=[doubtful]), bisect=bisect)
    assert set(blamed) <= {4, 5}
    if not bisect:
        assert blamed == ([5] if doubtful == 4 else [] if doubtful == 3 else [4]) or doubtful == 3
        if doubtful:
            step = search.steps[doubtful]
            assert present(step.outcome).status == "wrong"


def test_neighbours_are_measured_twice_if_one_is_slower() -> None:
    for bisect in (False, True):
        bench = Simulated([1.0, 2.0])
        assert searched(bench, bisect=bisect)[0] == [1]
        assert bench.pairs == [("0", "1"), ("1", "0")]


def test_neighbours_of_the_same_code_are_one() -> None:
    versions = [
        CommittedVersion(str(i), "2026-01-01", "", KERNEL, code) for i, code in enumerate("aabba")
    ]
    assert [step.commit for step in HistorySearch(versions, MARGIN).steps] == ["0", "2", "4"]


def test_a_speedup_hides_nothing_from_a_bisection_that_comes_after_it() -> None:
    """Where the last version is slower all the same."""
    times = [1.0, 1.0, 0.8, 0.8, 0.8, 0.8, 1.6, 1.6]
    assert searched(Simulated(times), bisect=True)[0] == [6]
    assert searched(Simulated([*times[:6], 0.95, 0.95]), bisect=True)[0] == []
    assert searched(Simulated([*times[:6], 0.95, 0.95]), bisect=False)[0] == [6]


class Recorded:
    """A pool that measures nothing: every launch takes a nanosecond."""

    def __init__(self, info: DeviceInfo) -> None:
        self.options, self.device = Options(), info
        self.measured: list[str] = []
        self.processes = 1

    def renew(self) -> None:
        self.processes += 1

    def worker(self, info: DeviceInfo, kernel: Kernel) -> Recorded:
        return self

    def measure(self, case: Case) -> Outcome:
        self.measured.append(case.kernel.name)
        status: Status = "failed" if case.kernel.never else "measured"
        return Outcome(case=CaseRecord.from_case(case, self.device), status=status, hot=timing())

    def compare(self, old: Case, new: Case, plan: ComparisonPlan, seed: int) -> ComparisonRecord:
        sides = self.measure(old), self.measure(new)
        self.measured[-2:] = [f"{old.kernel.name} {new.kernel.name} {self.processes}"]
        return in_turns(compare_samples([1.0] * 60, [1.0] * 60, MARGIN), *sides)


def step(name: str, code: str, refused: str = "") -> CommittedVersion:
    rules = LaunchRules(block=(8, 8), grid=(1, 1))
    never = Skip("refused", refused) if refused else None
    kernel = Kernel(name, rules, source="x", sha256=code, never=never)
    return CommittedVersion(name, "2026-01-01", "", kernel, code)


def measured(
    path: Path, info: DeviceInfo, *steps: CommittedVersion, swap: bool = False
) -> list[str]:
    """What a bench measures to check all and compare the first two."""
    pool: Any = Recorded(info)
    plan = ComparisonPlan(threshold=MARGIN)
    with RecordWriter(path, environment(), "resume") as writer:
        bench = RecordedBench(pool, info, plan, 0, writer)
        for one in steps:
            cases = sweep.cases([one.kernel], [Problem(8, 8, 8)], {}, info)
            one.contender = bench.fastest(cases, is_checked=True)
        first, second = (one.contender for one in steps[:2] if one.contender)
        bench.compare(first, second)
        if swap:
            bench.compare(second, first)
            bench.compare(second, first, anew=True)
    return list(pool.measured)


def test_what_a_file_has_is_not_measured_again(device: DeviceInfo, tmp_path: Path) -> None:
    """Also of other files with the same code; but what failed is, and other launches are."""
    path = tmp_path / "kept.jsonl"
    a, b, bad = step("a", "1"), step("b", "2"), step("bad", "3", refused="not TOML")
    assert measured(path, device, a, b, bad) == ["a", "b", "bad", "a b 1"]
    assert measured(path, device, a, b, bad) == ["bad"]
    assert '"failed"' not in path.read_text()
    assert measured(path, device, step("a", "1"), a, b, step("c", "4")) == ["c", "a a 1"]
    assert measured(path, device, step("a", "5"), b) == ["a", "a b 1"]
    assert measured(tmp_path / "new.jsonl", device, a, b, step("a", "1")) == ["a", "b", "a b 1"]
    cold = tmp_path / "cold.jsonl"
    cold.write_text(path.read_text().replace('"cold":', '"other":').replace('"hot":', '"cold":'))
    assert measured(cold, device, a, b) == ["a b 1"]


def test_the_first_look_at_a_version_counts(device: DeviceInfo, tmp_path: Path) -> None:
    """Its parameters do not change from call to call, because comparisons find other times."""
    path = tmp_path / "kept.jsonl"
    a, b = step("a", "1"), step("b", "2")
    measured(path, device, a, b)
    path.write_text(
        path.read_text() + path.read_text().replace('"median_ns":1100', '"median_ns":9')
    )
    measured(path, device, a, b)
    assert present(a.outcome).median_ns == pytest.approx(1100)


def test_a_confirmation_comes_from_another_process(device: DeviceInfo, tmp_path: Path) -> None:
    """Also if the sides were compared that way round before, in the process that there is."""
    path = tmp_path / "kept.jsonl"
    a, b = step("a", "1"), step("b", "2")
    assert measured(path, device, a, b, swap=True) == ["a", "b", "a b 1", "b a 1", "b a 2"]
    assert measured(path, device, a, b, swap=True) == []


# How it is shown


def test_pages(file_regression: Any) -> None:
    searches = {
        "what was compared with what": ((1.0, 0, 0.5, 1.0), False),
        "a bisection": ((*[1.0] * 6, 2.0, 2.0), True),
        "5% is the same by a margin of 10%": ((1.0, 1.05), False),
        "long subjects": ((1.0, 1.5), False),
    }
    found = {}
    for name, (times, bisect) in searches.items():
        _, search = searched(Simulated(list(times)), bisect=bisect)
        if name == "long subjects":
            search.steps[0].subject, search.steps[1].subject = "y" * 32, "x" * 33
        found[name] = shown(view.report(search, [environment()], len(search.steps)))
    file_regression.check(paged(found), encoding="utf-8")


# Ratios of the times of two versions


def test_widths_are_combined_by_their_squares() -> None:
    root = math.sqrt(2)
    assert Ratio(2, 4, 8).over(Ratio(1, 2, 4)) == pytest.approx((2 * 2**-root, 2, 2 * 2**root))
    assert Ratio(2, 4, 8).over(Ratio(3, 3, 3)) == pytest.approx((2 / 3, 4 / 3, 8 / 3))
    assert Ratio(4, 4, 4).over(Ratio(1, 2, 8)) == pytest.approx((0.5, 2, 4))
    assert Ratio(0.5, 1, 4).inverse() == (0.25, 1, 2)


def test_it_holds_as_often_as_its_parts() -> None:
    """Of 400 quotients of measured ratios, 99.5% or more hold the true one."""
    generator = np.random.default_rng(1)

    def measured(ratio: float) -> Ratio:
        a, b = generator.normal(1, 0.03, (2, 48))
        return present(Ratio.of(in_turns(ComparisonPlan(looks=(48,)).decide(a, b * ratio, 0))))

    quotients = [measured(1.56).over(measured(1.2)) for _ in range(400)]
    assert sum(q.low <= 1.3 <= q.high for q in quotients) >= 398
    assert np.median([q.high / q.low for q in quotients]) < 1.1


def test_without_an_interval_there_is_none() -> None:
    assert Ratio.of(in_turns(None)) is None
    assert Ratio.of(in_turns(compare_samples([1.0], [2.0]))) is None
