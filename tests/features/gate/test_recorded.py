"""Comparing two record files, and every condition of the CI gate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import records
from support.golden import TableRegression, paged
from support.optional import present

from matbench.features.gate import recorded
from matbench.features.gate.runs import ENOUGH, VARIATIONS, Variation, _shift_rank, compare_runs
from matbench.model import Conditions, DeviceInfo, Problem
from matbench.records.comparison import Comparison
from matbench.records.outcome import BlockTimes, Outcome

DEVICE = DeviceInfo(
    backend="cuda", index=0, name="Some GPU", kind="gpu", driver="1", toolkit="2", limits={}
)
CASE: dict[str, Any] = {
    "sha256": "a" * 64, "problem": Problem(64, 64, 64), "backend": "cuda", "device": "Some GPU",
    "device_kind": "gpu",
}  # fmt: skip


def outcome(kernel: str = "tiled", size: int = 64, factor: float = 1.0, **other: Any) -> Outcome:
    known = CASE | {
        "problem": Problem(size, size, size),
        "blocks": BlockTimes(median_ns=None, sm_mhz=1980.0),
    }
    if not {"cold", "hot"} & other.keys():
        known["cold"] = records.steady(factor)
    return records.outcome(kernel, **(known | other))


def joined(old: list[Outcome], new: list[Outcome]) -> recorded.JoinedRuns:
    about = [records.environment(devices=(DEVICE,))]
    return recorded.compare_records((about, old), (about, new), ("old", "new"), 0.01)


# Joining: of cases, and of runs of several processes


def five(factor: float = 1.0, **other: Any) -> list[Outcome]:
    return records.repeated(outcome(factor=factor, **other))


def only(found: recorded.JoinedRuns) -> Comparison:
    [record] = found.records
    return present(record.comparison)


def tiles(**other: Any) -> list[Outcome]:
    return [outcome(params={"TILE": tile}, **other) for tile in (8, 16)]


WRONG = records.outcome(**{**CASE, "status": "wrong", "reason": "3 of 9", "repetition": 5})
#: What two files hold.
JOINED: dict[str, tuple[list[Outcome], ...]] = {
    "by kernel, parameters and problem": (
        [outcome(), outcome(problem=Problem(128, 128, 128, "signed")), outcome("kahan")],
        [outcome(factor=1.1), outcome("kahan", factor=0.8), outcome("naive-2d")],
    ),
    "a changed kernel, which is what one compares, said once": (tiles(), tiles(sha256="b" * 64)),
    "all processes of a case": (five(), five(1.1)),
    "of a file with several runs the last": ([*five(3.0), *five()], [*five(), *five(1.1)]),
    "a case of which one process is wrong": (five(), [*five()[:4], WRONG]),
    **{
        f"{old} and {new} processes": tuple(records.repeated(outcome(), n) for n in (old, new))
        for old, new in ((5, 1), (1, 5), (4, 5), (1, 1))
    },
    "2% on a GPU": (five(), five(1.02)),
    "2% on a CPU, which varies more": tuple(five(f, device_kind="cpu") for f in (1, 1.02)),
}  # fmt: skip


def told(found: recorded.JoinedRuns) -> Iterator[str]:
    for record in found.records:
        old, new = (f"{side.case.label}: {side.median_ns} ns"
                    for side in (record.baseline, record.candidate))  # fmt: skip
        yield f"{record.baseline_name} {old}, {record.candidate_name} {new}"
        if (one := record.comparison) is not None:
            sure = f"{one.verdict}, {one.ratio:.3f}, allowed {one.allowance:g}"
            yield f"    {sure}; {one.processes} processes, {one.samples} samples"
        yield from (f"    {note}" for note in record.notes)
    for name in ("only_old", "only_new", "differences", "incomparable", "broken"):
        yield from (f"{name}: {line}" for line in getattr(found, name))


def test_what_is_joined(file_regression: Any) -> None:
    found = {name: "\n".join(told(joined(*both))) for name, both in JOINED.items()}
    file_regression.check(paged(found), encoding="utf-8")


def test_only_what_worked_before_can_break() -> None:
    def of(status: Any) -> Outcome:
        return outcome() if status == "measured" else outcome(status=status, cold=None)

    pairs = itertools.product(("measured", "wrong", "failed", "skipped"), repeat=2)
    broken = [pair for pair in pairs if joined(*([of(status)] for status in pair)).broken]
    assert broken == [("measured", "wrong"), ("measured", "failed")]


# The gate


def test_only_what_is_surely_slower_than_is_allowed_is_too_slow(
    table_regression: TableRegression,
) -> None:
    def gated(question: str) -> str:
        ratio, verdict, _, allowed = question.replace(",", "").split()
        known = [None if word == "None" else float(word) for word in (ratio, allowed)]
        found: Any = None if verdict == "None" else verdict
        made = found and Comparison(known[0], None, found, 1, (20, 20), "")
        is_slow = recorded.is_too_slow(records.in_turns(made), known[1])
        return "too slow" if is_slow else "passes"

    table_regression("too-slow.txt", gated)


# Every doubt, and that it alone prevents a verdict


def busy(*shares: float | None, kind: str = "cpu") -> Any:
    """A case during which other programs took these shares; the first is from before."""
    moments = tuple(Conditions(others_share=share) for share in shares)

    def of(factor: float) -> list[Outcome]:
        cold = records.steady(factor, conditions=moments)
        return records.repeated(outcome(cold=cold, device_kind=kind))

    return of


def clocked(mhz: float | None) -> Any:
    return lambda factor: five(factor, blocks=BlockTimes(median_ns=None, sm_mhz=mhz))


def hot(factor: float) -> list[Outcome]:
    return records.repeated(outcome(hot=records.steady(factor)))


def on(**device: str) -> Any:
    return lambda factor: five(factor, **device)


def other(**changes: str) -> DeviceInfo:
    return msgspec.structs.replace(DEVICE, **changes)


#: The side after, where the one before is `five`, or both sides; and the device after.
DOUBTS: dict[str, tuple[Any, ...]] = {
    "equal": (five,),
    "device": (on(device="B", device_id="GPU-2"),),
    "card": (on(device_id="GPU-1"), on(device_id="GPU-2")),
    "driver": (five, five, other(driver="9")),
    "toolkit": (five, five, other(toolkit="9")),
    "kind of samples": (hot,),
    **{f"clock of {mhz} MHz": (clocked(mhz),) for mhz in (1700, 1940, 1941, 2019, 2020, None)},
    "no blocks": (lambda factor: five(factor, blocks=None),),
    "load": (busy(0.9, 0.1, 0.1), busy(0.1, 0.5, 0.7)),
    "load gone": (busy(0.0, 0.5), busy(0.0, 0.2)),
    "load a little different": (busy(0.0, 0.1), busy(0.9, 0.2)),
    "load not known": (busy(0.0, None), busy(0.0, 0.9)),
    "load beside a GPU": (busy(0, 0.1, kind="gpu"), busy(0, 0.9, kind="gpu")),
}


def test_a_doubt_alone_prevents_a_verdict(file_regression: Any) -> None:
    """Without it the side after is surely slower; the ratio is still shown."""
    lines = []
    for name, sides in DOUBTS.items():
        before, after, *device = sides if len(sides) > 1 else (five, *sides)
        old = [records.environment(devices=(DEVICE,))], before(1.0)
        new = [records.environment(devices=(device or [DEVICE])[:1])], after(1.3)
        found = recorded.compare_records(old, new, ("a", "b"), 0.01)
        assert found.differences == found.incomparable
        compared = only(found)
        lines.append(f"{name}: {compared.verdict}, {compared.ratio:.3f}; {compared.reason}")
    file_regression.check("\n".join(lines) + "\n", encoding="utf-8")


# What is compared of runs of one or more processes


NONE = Variation(0.0, 0.0)
TURNED = {"FASTER": "SLOWER", "SLOWER": "FASTER", "SAME": "SAME", "UNDECIDED": "UNDECIDED"}
Runs = Sequence[Sequence[float]]


def run(median: float, count: int = 20, spread: float = 0.01) -> list[float]:
    """Samples spread evenly around a median."""
    return [median * (1 + spread * (2 * i / (count - 1) - 1)) for i in range(count)]


# The rank


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 4), (5, 5), (5, 9), (9, 5), (8, 20)])
def test_the_rank_is_that_of_the_exact_mann_whitney_test(m: int, n: int, confidence: float) -> None:
    """By scipy: U below the rank has at most half of the error's probability, and no more fits."""
    from scipy.stats import mannwhitneyu  # which takes a second to import

    def at_most(u: int) -> float:
        """P(U ≤ u), from samples that have this U."""
        ranks = list(range(1, m + 1))
        for i in reversed(range(m)):
            moved = min(u - sum(r - k - 1 for k, r in enumerate(ranks)), n)
            ranks[i] += moved
        others = [r for r in range(1, m + n + 1) if r not in ranks]
        found = mannwhitneyu(ranks, others, alternative="less", method="exact")
        assert found.statistic == u
        return float(found.pvalue)

    rank = _shift_rank(m, n, confidence)
    allowed = (1 - confidence) / 2
    assert rank == 0 or at_most(rank - 1) <= allowed * (1 + 1e-9)
    assert at_most(rank) > allowed


# Simulated runs: each process has its own offset


def compared(old: Any, new: Any, variation: Variation, threshold: float = 0.01) -> Comparison:
    return compare_runs(old, new, variation, threshold, confidence=0.99)


def simulated(
    seed: int, pairs: int, *, slower: float = 0.0, processes: int = 5, offset: float = 0.02
) -> list[Comparison]:
    """Comparisons of two sets of processes whose offsets are drawn alike, with heavy tails."""
    random = np.random.default_rng(seed)

    def side(factor: float) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
        offsets = random.standard_t(3, processes) * offset
        noise = random.gamma(2.0, 0.005, (processes, 30))
        return list(1e5 * factor * np.exp(offsets[:, None] + noise))

    return [compared(side(1.0), side(1.0 + slower), NONE) for _ in range(pairs)]


@pytest.mark.parametrize("processes", [5, 8])
def test_equal_code_is_rarely_slower_or_faster(processes: int) -> None:
    """At 99% confidence and without any allowance, on processes that differ by several percent."""
    found = simulated(1, 250, processes=processes)
    assert sum(one.verdict in ("SLOWER", "FASTER") for one in found) <= 5
    covered = sum(one.interval is not None and one.interval[0] <= 1 <= one.interval[1]
                  for one in found)  # fmt: skip
    assert covered >= 245


def test_one_process_on_each_side_is_often_wrong_without_an_allowance() -> None:
    """The control: what several processes, or the allowance, are for."""
    found = simulated(2, 100, processes=1)
    assert sum(one.verdict in ("SLOWER", "FASTER") for one in found) > 50
    random = np.random.default_rng(2)
    one, other = (1e5 * np.exp(shift + random.gamma(2.0, 0.005, 30)) for shift in (0.0, 0.06))
    assert compared([one], [other], NONE).verdict == "SLOWER"
    assert compared([one], [other], VARIATIONS["cpu"]).verdict == "UNDECIDED"


def test_a_difference_larger_than_the_noise_is_found() -> None:
    found = simulated(3, 100, slower=0.2)
    assert sum(one.verdict == "SLOWER" for one in found) >= 95
    assert all(one.verdict != "FASTER" for one in found)
    ratios = [one.ratio for one in found if one.ratio is not None]
    assert np.median(ratios) == pytest.approx(1.2, rel=0.02)


# What is compared, and the allowance


def test_from_five_processes_on_medians_alone_count() -> None:
    """The samples of one process may differ from each other by any amount."""
    five = [run(100.0 + i, spread=0.5) for i in range(ENOUGH)]
    slower = [run(120.0 + i, spread=0.5) for i in range(ENOUGH)]
    found = compared(five, slower, Variation(0.25, 0.01))
    assert found.processes == (5, 5)
    assert found.samples == (100, 100)
    assert found.allowance == 0.01
    assert found.verdict == "SLOWER"
    assert found.ratio == pytest.approx(122 / 102)
    assert found.interval == pytest.approx((120 / 104 / 1.01, 124 / 100 * 1.01))


@pytest.mark.parametrize("counts", [(1, 1), (5, 4), (4, 40)])
def test_fewer_processes_on_a_side_are_not_enough(counts: tuple[int, int]) -> None:
    old, new = ([run(100.0, spread=1e-4) for _ in range(count)] for count in counts)
    found = compared(old, new, Variation(0.25, 0.01))
    assert (found.allowance, found.verdict) == (0.25, "UNDECIDED")
    assert found.interval == pytest.approx((1 / 1.25, 1.25), rel=1e-3)


def test_too_few_samples_have_no_interval() -> None:
    few = compared([[1.0, 2.0]], [[1.0, 2.0]], NONE)
    assert few.verdict == "UNDECIDED"
    assert few.interval is None
    assert few.processes == (1, 1)
    assert "too few" in few.reason


levels = st.floats(1.0, 1e9)
sides = st.integers(1, 7).flatmap(
    lambda count: st.lists(
        st.lists(levels, min_size=8, max_size=12), min_size=count, max_size=count
    )
)
variations = st.builds(Variation, st.floats(0, 1), st.floats(0, 1))


@given(sides, sides, variations, st.floats(0, 0.5))
def test_swapped_sides(one: Runs, other: Runs, variation: Variation, threshold: float) -> None:
    forth, back = (compared(*pair, variation, threshold) for pair in ((one, other), (other, one)))
    assert forth.processes == (back.processes or ())[::-1]
    assert forth.ratio is not None
    assert forth.ratio * present(back.ratio) == pytest.approx(1)
    if forth.interval is None:
        assert back.interval is None
        return
    assert back.interval is not None
    low, high = forth.interval
    assert low <= forth.ratio * (1 + 1e-9)
    assert forth.ratio <= high * (1 + 1e-9)
    assert back.interval == pytest.approx((1 / high, 1 / low))
    near = any(math.isclose(end, edge, rel_tol=1e-9) for end in (low, high)
               for edge in (1, 1 + threshold, 1 / (1 + threshold)))  # fmt: skip
    assert near or back.verdict == TURNED[forth.verdict]
