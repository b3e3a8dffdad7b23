"""Sampling and clocks: calm samples count, others are taken again or marked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from matbench.bench import loop
from matbench.bench.loop import sample_until_known
from matbench.bench.options import Options
from matbench.model import Conditions

QUICK = Options(uncertainty=1e9, max_time_s=0.01, minimum_samples=3)


def at(*clocks: int) -> list[Conditions]:
    """Readings of a clock in MHz: a try reads it before its warm-up, after it, and at the end."""
    return [Conditions(sm_mhz=mhz) for mhz in clocks]


HINT = "(`matbench doctor` says how to hold it)"
MOVED = f"SM clock varied from 1,900 to 1,980 MHz during sampling {HINT}"


@pytest.mark.parametrize(
    ("moments", "attempts", "note"),
    [
        (at(345, 1980, 1980), 1, None),  # a GPU is idle before the first launch: it does not count
        (at(1980, 1980, 1945), 1, None),
        ([Conditions(load=7.5, governor="performance")], 1, None),
        (at(1980, 1980, 1900, 1980), 2, None),
        (at(1980, 1980, 1900, *(1980, 1980, 1800) * 2), 3, MOVED),
        ([Conditions(sm_mhz=1980, throttled=("SwPowerCap",))], 3,
         "clocks throttled during sampling: SwPowerCap"),
    ],
    ids=["calm", "within two percent", "a processor", "moved once", "moved most in later tries",
         "throttled"],
)  # fmt: skip
def test_samples_are_taken_again_unless_clocks_are_calm(
    moments: list[Conditions], attempts: int, note: str | None
) -> None:
    """Three times at most; then the first of equal tries is kept and marked."""
    told = iter(moments)
    found = sample_until_known(lambda: 1e3, 0, QUICK.on("gpu"), lambda: next(told, moments[-1]))
    assert found.attempts == attempts
    assert found.samples_ns
    assert found.notes == (() if note is None else (note,))
    assert found.rounds == (), "there is only one"
    assert attempts > 1 or {*found.conditions} == {*moments}


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
