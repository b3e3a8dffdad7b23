"""One case from source to outcome, where something in the middle goes wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.kernels import GOOD_BODY, KernelWriter

from matbench.analysis import statistics
from matbench.backends import Backend
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.measure.options import Options
from matbench.measure.session import Found, Session
from matbench.model import Case, Problem

QUICK = Options(uncertainty=1e9, max_time_s=0.01, minimum_samples=3)
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
    outcome = timed.measure(case_of(write_kernel(body=taken), timed)).outcome
    assert outcome.status == "measured"
    assert outcome.median_ns is not None
    assert outcome.blocks is None
    assert any(note.startswith("not clocked: ") for note in outcome.notes)


def test_no_verdict_on_a_kernel_that_is_wrong_afterwards(
    write_kernel: KernelWriter, timed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(write_kernel(), timed)
    check, seen = Session._measure, []

    def wrong_from_the_third_on(session: Session, case: Case, *, timed: bool) -> Found:
        seen.append(case)
        found = check(session, case, timed=timed)
        if len(seen) < 3:
            return found
        reason = "repeat: no longer right"
        return Found(msgspec.structs.replace(found.outcome, status="wrong", reason=reason))

    monkeypatch.setattr(Session, "_measure", wrong_from_the_third_on)
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
    changes = {"cold": False, "hot": True, "back_to_back": True}
    timed.options = msgspec.structs.replace(timed.options, **changes)
    take, counts = timed.backend.time_hot_ns, []

    def counted(*arguments: Any, count: int, graph: bool) -> float:
        counts.append(count)
        return take(*arguments, count=count, graph=graph)

    monkeypatch.setattr(timed.backend, "time_hot_ns", counted)
    case = case_of(write_kernel(), timed)
    duel = timed.compare(case, case, PLAN, seed=0)
    assert duel.comparison is not None
    assert duel.candidate.mode == "hot"
    assert counts[:2] == [3, 3]  # how long a launch takes, for each of both
    assert len(counts) == 2 + 2 * 2 + 2 * 12  # then the warm-up, then the pairs
    assert min(counts[2:]) > 3  # so short a launch is repeated


def test_the_times_of_a_wrong_kernel_are_none(write_kernel: KernelWriter, timed: Session) -> None:
    off = GOOD_BODY.replace("= sum;", "= sum + 1.0f;")
    outcome = timed.measure(case_of(write_kernel(body=off), timed)).outcome
    assert outcome.status == "wrong"
    assert outcome.reason is not None
    assert "every one off by +1" in outcome.reason
    assert outcome.median_ns is None
    assert outcome.samples_ns == ()


def test_cold_and_hot_samples_are_recorded_alike(
    write_kernel: KernelWriter, timed: Session
) -> None:
    """With both kinds, each keeps its samples, interval, conditions and whether it settled."""
    changes = {"cold": True, "hot": True, "uncertainty": 1e-9}
    timed.options = msgspec.structs.replace(timed.options, **changes)
    outcome = timed.measure(case_of(write_kernel(), timed)).outcome
    for timing in (outcome.cold, outcome.hot):
        assert timing is not None
        assert len(timing.samples_ns) >= 3
        assert timing.median_ns == pytest.approx(statistics.np.median(timing.samples_ns))
        assert timing.interval_ns is not None
        assert (timing.settled, timing.stopped) == (False, statistics.TIME_IS_UP)
        assert len(timing.conditions) >= 2
        assert timing.warmups is not None
    assert outcome.mode == "cold"
    assert outcome.median_ns == outcome.cold.median_ns
