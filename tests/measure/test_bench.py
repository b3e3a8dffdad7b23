"""One case from source to outcome, where something in the middle goes wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from conftest import GOOD_BODY, KernelWriter

from matbench.analysis import statistics
from matbench.backends import Backend
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.measure.bench import Options, Session, sample_until_known
from matbench.model import Case, Conditions, Outcome, Problem

QUICK = Options(precision=1e9, max_time_s=0.01, minimum_samples=3)
PLAN = statistics.ComparisonPlan(looks=(12,), maximum_time_ns=1e7)


@pytest.fixture
def timed(backend: Backend) -> Session:
    """A session that times, on the device that is open already."""
    return Session(backend, Cache(), QUICK)


def case_of(path: Any, session: Session, size: int = 24) -> Case:
    case = sweep.case(
        catalogue.load(path), Problem(size, size, size), {"TILE": 8}, session.backend.info
    )
    assert case.skip is None
    return case


def test_a_kernel_that_cannot_be_clocked_is_measured_all_the_same(
    write_kernel: KernelWriter, timed: Session
) -> None:
    taken = "static __device__ int matbench_entry(int a) { return a; }\n" + GOOD_BODY
    outcome = timed.measure(case_of(write_kernel(body=taken), timed))
    assert outcome.status == "measured"
    assert outcome.median_ns is not None
    assert outcome.block_median_ns is None
    assert any(note.startswith("not clocked: ") for note in outcome.notes)


def test_no_verdict_on_a_kernel_that_is_wrong_afterwards(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(write_kernel(), timed)
    check, seen = Session._run, []

    def wrong_from_the_third_on(session: Session, case: Case, *, timed: bool) -> Outcome:
        seen.append(case)
        outcome = check(session, case, timed=timed)
        if len(seen) < 3:
            return outcome
        known = {name: getattr(outcome, name) for name in outcome.__struct_fields__}
        return Outcome(**known | {"status": "wrong", "reason": "repeat: no longer right"})

    monkeypatch.setattr(Session, "_run", wrong_from_the_third_on)
    duel = timed.compare(case, case, PLAN, seed=0)
    assert duel.comparison is None
    assert duel.baseline.status == duel.candidate.status == "wrong"
    assert duel.baseline.median_ns is None


def test_both_sides_of_a_comparison_carry_their_samples(
    write_kernel: KernelWriter, timed: Session
) -> None:
    case = case_of(write_kernel(), timed)
    duel = timed.compare(case, case, PLAN, seed=0)
    assert duel.comparison is not None
    assert duel.comparison.samples == (12, 12)
    assert len(duel.baseline.samples_ns) == len(duel.candidate.samples_ns) == 12


def test_a_comparison_of_hot_launches_takes_means_of_many(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed.options = msgspec.structs.replace(timed.options, cold=False, hot=True)
    take, counts = timed.backend.time_hot_ns, []

    def counted(*arguments: Any, count: int, graph: bool) -> float:
        counts.append(count)
        return take(*arguments, count=count, graph=graph)

    monkeypatch.setattr(timed.backend, "time_hot_ns", counted)
    case = case_of(write_kernel(), timed)
    duel = timed.compare(case, case, PLAN, seed=0)
    assert duel.comparison is not None
    assert duel.candidate.timing_mode == "hot"
    assert counts[:2] == [3, 3]  # how long a launch takes, for each of both
    assert len(counts) == 2 + 2 * 2 + 2 * 12  # then the warm-up, then the pairs
    assert min(counts[2:]) > 3  # so short a launch is repeated


def test_the_times_of_a_wrong_kernel_are_none(write_kernel: KernelWriter, timed: Session) -> None:
    off = GOOD_BODY.replace("= sum;", "= sum + 1.0f;")
    outcome = timed.measure(case_of(write_kernel(body=off), timed))
    assert outcome.status == "wrong"
    assert outcome.reason is not None
    assert "every one off by +1" in outcome.reason
    assert outcome.median_ns is None
    assert outcome.samples_ns == ()


def sampled(moments: list[Conditions]) -> dict[str, Any]:
    """What sampling tells when the clocks were like this, one moment after the other."""
    told = iter(moments)
    last = moments[-1]
    return sample_until_known(lambda: 1000.0, QUICK.on("gpu"), lambda: next(told, last))


CALM = Conditions(sm_mhz=1980)
#: A try looks at the clocks before it warms up, after that, and when it is over.
LOOKS_A_TRY = 3


def test_calm_clocks_need_one_try() -> None:
    idle = Conditions(sm_mhz=345)  # before the first launch a GPU sleeps: no unrest
    found = sampled([idle, CALM, CALM])
    assert found["attempts"] == 1
    assert found["notes"] == ()
    assert [moment.sm_mhz for moment in found["conditions"]] == [345, 1980, 1980]


def test_a_clock_that_moved_is_sampled_again_and_the_calm_try_counts() -> None:
    moved = [CALM, CALM, Conditions(sm_mhz=1900)]
    found = sampled([*moved, CALM])
    assert found["attempts"] == 2
    assert found["notes"] == ()


def test_after_three_tries_the_row_is_marked_and_kept() -> None:
    found = sampled([CALM, CALM, Conditions(sm_mhz=1900)] * LOOKS_A_TRY)
    assert found["attempts"] == 3
    assert found["samples_ns"]
    assert any("SM clock moved from 1,900 to 1,980 MHz" in note for note in found["notes"])


def test_what_held_the_clocks_down_is_named() -> None:
    throttled = Conditions(sm_mhz=1980, throttled=("SwPowerCap",))
    found = sampled([throttled])
    assert found["attempts"] == 3
    assert "clocks held down while sampled: SwPowerCap" in found["notes"]


def test_a_move_within_two_percent_is_calm() -> None:
    found = sampled([CALM, CALM, Conditions(sm_mhz=1945)])
    assert found["attempts"] == 1


def test_a_processor_is_never_sampled_again_for_its_clocks() -> None:
    busy = Conditions(load=7.5, governor="performance")
    found = sampled([busy])
    assert found["attempts"] == 1
    assert found["conditions"][0] == busy
