"""Comparing two record files, and every condition of the CI gate."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support import records

from matbench.analysis import comparison
from matbench.model import DeviceInfo, Problem
from matbench.records.comparison import Comparison, ComparisonRecord, Verdict
from matbench.records.outcome import BlockTimes, Outcome, Timing

DEVICE = DeviceInfo(
    backend="cuda", index=0, name="Some GPU", kind="gpu", driver="1", toolkit="2", limits={}
)
STEADY = tuple(100_000.0 + 10 * (i % 5) for i in range(20))


def samples(factor: float = 1.0) -> Timing:
    return records.timing(samples_ns=tuple(factor * sample for sample in STEADY))


def outcome(kernel: str = "tiled", size: int = 64, factor: float = 1.0, **other: Any) -> Outcome:
    known: dict[str, Any] = {
        "sha256": "a" * 64, "problem": Problem(size, size, size), "backend": "cuda",
        "device": "Some GPU", "device_kind": "gpu",
        "blocks": BlockTimes(median_ns=None, sm_mhz=1980.0),
    }  # fmt: skip
    if not {"cold", "hot"} & other.keys():
        known["cold"] = samples(factor)
    return records.outcome(kernel, **(known | other))


def joined(
    old: list[Outcome], new: list[Outcome], device: DeviceInfo = DEVICE
) -> comparison.Joined:
    before, after = (records.environment(devices=(one,)) for one in (DEVICE, device))
    return comparison.compare_records(([before], old), ([after], new), ("old", "new"), 0.01)


# Joining


def test_cases_are_joined_by_kernel_parameters_and_problem() -> None:
    found = joined(
        [outcome(), outcome(size=128), outcome("kahan")],
        [outcome(factor=1.1), outcome("kahan", factor=0.8), outcome("naive-2d")],
    )
    assert [(one.candidate.case.kernel, one.verdict) for one in found.records] == [
        ("tiled", "SLOWER"),
        ("kahan", "FASTER"),
    ]
    assert {(one.baseline_name, one.candidate_name) for one in found.records} == {("old", "new")}
    assert found.records[0].baseline == outcome()
    assert found.only_old == ["tiled TILE=16 at 128"]
    assert found.only_new == ["naive-2d TILE=16 at 64"]
    assert found.differences == []
    assert comparison.comparable(found)


@pytest.mark.parametrize(
    "change",
    [{"params": {"TILE": 32}}, {"problem": Problem(64, 64, 64, "signed")}, {"kernel": "other"}],
)
def test_what_differs_in_its_key_is_another_case(change: dict[str, Any]) -> None:
    found = joined([outcome()], [outcome(**change)])
    assert not found.records
    assert len(found.only_old) == len(found.only_new) == 1


def test_the_order_of_parameters_makes_no_other_case() -> None:
    first, second = ({"A": 1, "B": 2}, {"B": 2, "A": 1})
    assert joined([outcome(params=first)], [outcome(params=second)]).records


def test_unusual_inputs_are_named() -> None:
    found = joined([outcome(problem=Problem(64, 64, 64, "signed"))], [])
    assert found.only_old == ["tiled TILE=16 at 64, signed inputs"]


def test_the_same_twice_is_the_same() -> None:
    five = records.repeated(outcome())
    (record,) = joined(five, five).records
    assert record.verdict == "SAME"
    assert record.ratio == 1


def test_a_case_that_broke_is_named_and_has_no_verdict() -> None:
    wrong = outcome(status="wrong", reason="integers: 3 of 9 wrong", cold=None)
    found = joined([outcome()], [wrong])
    assert found.records[0].verdict is None
    assert found.records[0].reason == "tiled: wrong: integers: 3 of 9 wrong"
    assert found.broken == ["tiled TILE=16 at 64 is now wrong: integers: 3 of 9 wrong"]


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [
        ("measured", "failed", True),
        ("measured", "wrong", True),
        ("measured", "skipped", False),
        ("wrong", "wrong", False),
        ("failed", "wrong", False),
    ],
)
def test_only_what_worked_before_can_break(before: Any, after: Any, broken: bool) -> None:
    def with_status(status: Any) -> Outcome:
        return outcome() if status == "measured" else outcome(status=status, cold=None)

    assert bool(joined([with_status(before)], [with_status(after)]).broken) == broken


# Whether times may be compared


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"blocks": BlockTimes(median_ns=None, sm_mhz=1700.0)}, "SM clock of tiled TILE=16 at 64"),
        ({"cold": None, "hot": samples()}, "timing differs: was cold, now hot"),
        ({"device": "Another GPU"}, "device differs: was Some GPU, now Another GPU"),
    ],
)
def test_what_makes_times_incomparable_is_said(change: dict[str, Any], words: str) -> None:
    found = joined([outcome()], [outcome(**change)])
    assert any(words in text for text in found.differences)
    assert found.incomparable == found.differences
    assert not comparison.comparable(found)


@pytest.mark.parametrize("field", ["name", "driver", "toolkit"])
def test_another_device_or_its_software_makes_times_incomparable(field: str) -> None:
    found = joined([outcome()], [outcome()], msgspec.structs.replace(DEVICE, **{field: "99"}))
    shown = "device" if field == "name" else field
    assert found.differences == [f"{shown} differs: was {getattr(DEVICE, field)}, now 99"]
    assert not comparison.comparable(found)


@pytest.mark.parametrize(("mhz", "comparable"), [(1980, True), (1941, True), (2019, True),
                                                 (1940, False), (2020, False)])  # fmt: skip
def test_clocks_may_differ_by_two_percent(mhz: float, comparable: bool) -> None:
    after = outcome(blocks=BlockTimes(median_ns=None, sm_mhz=float(mhz)))
    assert comparison.comparable(joined([outcome()], [after])) == comparable


@pytest.mark.parametrize("blocks", [None, BlockTimes(median_ns=None)])
def test_a_clock_that_is_not_known_does_not_differ(blocks: BlockTimes | None) -> None:
    assert comparison.comparable(joined([outcome()], [outcome(blocks=blocks)]))


def test_a_case_that_was_not_timed_has_no_other_timing() -> None:
    skipped = outcome(status="skipped", reason="no", cold=None)
    assert joined([outcome()], [skipped]).differences == []


def test_a_changed_kernel_is_what_one_compares() -> None:
    found = joined([outcome()], [outcome(sha256="b" * 64)])
    assert found.differences == ["the source of tiled differs"]
    assert found.incomparable == []
    assert comparison.comparable(found)


def test_a_changed_kernel_hides_no_other_difference() -> None:
    found = joined([outcome()], [outcome(sha256="b" * 64, device="Another GPU")])
    assert len(found.differences) == 2
    assert not comparison.comparable(found)


def test_each_difference_is_said_once() -> None:
    old = [outcome(), outcome(params={"TILE": 8})]
    new = [outcome(sha256="b" * 64), outcome(params={"TILE": 8}, sha256="b" * 64)]
    assert joined(old, new).differences == ["the source of tiled differs"]


# The gate


def gated(
    ratio: float | None, verdict: Verdict | None = "SLOWER", allowed: float | None = 0.05
) -> bool:
    found = None
    if verdict is not None:
        interval = (ratio * 0.999, ratio * 1.001) if ratio is not None else None
        found = Comparison(ratio, interval, 1e-9, verdict, 1, (20, 20), "")
    record = ComparisonRecord(
        baseline_name="old",
        candidate_name="new",
        baseline=outcome(),
        candidate=outcome(),
        comparison=found,
    )
    return comparison.is_too_slow(record, allowed)


def test_slower_by_more_than_is_allowed_is_too_slow() -> None:
    assert gated(1.06)
    assert gated(1.0501)


@pytest.mark.parametrize("ratio", [1.05, 1.0499, 1.02, 1.0, 0.5])
def test_slower_by_no_more_than_is_allowed_passes(ratio: float) -> None:
    assert not gated(ratio)


@pytest.mark.parametrize("verdict", ["FASTER", "SAME", "UNDECIDED", None])
def test_only_what_is_surely_slower_is_too_slow(verdict: Verdict | None) -> None:
    assert not gated(1.5, verdict)


def test_nothing_is_too_slow_where_nothing_was_asked() -> None:
    assert not gated(9.0, allowed=None)


def test_none_allowed_is_a_limit_of_its_own() -> None:
    assert gated(1.001, allowed=0.0)
    assert not gated(1.0, allowed=0.0)


def test_a_ratio_that_is_not_known_is_not_too_slow_but_no_number_is() -> None:
    assert not gated(None)
    assert gated(float("nan")), "written so that a ratio without a value never passes"


@pytest.mark.parametrize(
    ("factor", "too_slow"), [(1.0, False), (0.5, False), (1.02, False), (1.2, True)]
)
def test_the_gate_on_samples(factor: float, too_slow: bool) -> None:
    (record,) = joined([outcome()], [outcome(factor=factor)]).records
    assert comparison.is_too_slow(record, 0.05) == too_slow


def test_times_taken_by_other_rules_are_not_comparable() -> None:
    """Verified launches, and unverified ones of an earlier version."""
    verified = records.outcome(cold=records.timing(2.0))
    before = records.outcome(cold=records.timing(2.0, seed=None))
    for first, second, which in ((before, verified, "old"), (verified, before, "new")):
        joined = comparison.compare_records(([], [first]), ([], [second]), ("a", "b"), 0.05)
        assert not comparison.comparable(joined)
        [said] = joined.differences
        assert said == f"verification differs: the {which} launches were not verified"
    same = comparison.compare_records(([], [before]), ([], [before]), ("a", "b"), 0.05)
    assert comparison.comparable(same)
