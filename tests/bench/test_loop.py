"""Sampling and clocks: calm samples count, others are taken again or marked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from matbench.bench import loop
from matbench.bench.loop import sample_until_known
from matbench.bench.options import Options
from matbench.model import Conditions
from matbench.records.outcome import Timing

QUICK = Options(uncertainty=1e9, max_time_s=0.01, minimum_samples=3)


def sampled(moments: list[Conditions]) -> Timing:
    """The result of sampling with these clocks, one reading after the other."""
    told = iter(moments)
    last = moments[-1]
    return sample_until_known(lambda: 1000.0, 0, QUICK.on("gpu"), lambda: next(told, last))


CALM = Conditions(sm_mhz=1980)


def test_calm_clocks_need_one_try() -> None:
    idle = Conditions(sm_mhz=345)  # before the first launch a GPU is idle: this does not count
    found = sampled([idle, CALM, CALM])
    assert found.attempts == 1
    assert found.notes == ()
    assert found.rounds == (), "there is only one"
    assert [moment.sm_mhz for moment in found.conditions] == [345, 1980, 1980]


def test_a_clock_that_moved_is_sampled_again_and_the_calm_try_counts() -> None:
    moved = [CALM, CALM, Conditions(sm_mhz=1900)]
    found = sampled([*moved, CALM])
    assert found.attempts == 2
    assert found.notes == ()


def test_after_three_tries_the_row_is_marked_and_kept() -> None:
    # A try reads the clocks before warm-up, after it, and at the end.
    first, later = ([CALM, CALM, Conditions(sm_mhz=mhz)] for mhz in (1900, 1800))
    found = sampled([*first, *later, *later])
    assert found.attempts == 3
    assert found.samples_ns
    [note] = found.notes
    assert "SM clock varied from 1,900 to 1,980 MHz" in note, "that of the first of equal tries"


def test_what_held_the_clocks_down_is_named() -> None:
    throttled = Conditions(sm_mhz=1980, throttled=("SwPowerCap",))
    found = sampled([throttled])
    assert found.attempts == 3
    assert "clocks throttled during sampling: SwPowerCap" in found.notes


def test_a_move_within_two_percent_is_calm() -> None:
    found = sampled([CALM, CALM, Conditions(sm_mhz=1945)])
    assert found.attempts == 1


def test_a_processor_is_never_sampled_again_for_its_clocks() -> None:
    busy = Conditions(load=7.5, governor="performance")
    found = sampled([busy])
    assert found.attempts == 1
    assert found.conditions[0] == busy


def test_half_of_what_passes_counts_however_long_verifying_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns, verifying_ns = 1000, 700
    told = SimpleNamespace(perf_counter_ns=lambda: now_ns)
    monkeypatch.setattr(loop, "time", told)
    counted = loop.clock(lambda: verifying_ns)
    assert counted() == 0
    now_ns = 1100
    assert counted() == 100, "what was spent before does not count"
    verifying_ns += 30
    assert counted() == 70
    verifying_ns += 50
    assert counted() == 50
