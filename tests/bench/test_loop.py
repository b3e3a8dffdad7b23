"""Sampling and clocks: calm samples count, others are taken again or marked."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from matbench.analysis.statistics import ComparisonPlan
from matbench.bench import loop
from matbench.bench.loop import sample_in_turns, sample_until_known
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


@pytest.mark.parametrize(("launching_ns", "count"), [(80_000, 25), (10_000, 40)])
@pytest.mark.parametrize("in_turns", [False, True])
def test_half_of_what_passes_counts_however_long_verifying_takes(
    in_turns: bool, launching_ns: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100 µs for a sample, until 2 ms are over."""
    passed_ns, launched_ns = 1000, 700  # what was spent before does not count
    told = SimpleNamespace(perf_counter_ns=lambda: passed_ns)
    monkeypatch.setattr(loop, "time", told)

    def sample() -> float:
        nonlocal passed_ns, launched_ns
        passed_ns += 100_000
        launched_ns += launching_ns
        return 1e3 + passed_ns % 700_000

    if in_turns:
        plan = ComparisonPlan(looks=(12, 1000), maximum_time_ns=2e6)
        samplers = [sample, sample]
        found, _ = sample_in_turns(samplers, plan, 0, lambda: launched_ns, is_warm=True)
        assert sum(map(len, found)) == pytest.approx(count, abs=1), "a look follows a pair"
    else:
        options = msgspec.structs.replace(QUICK, uncertainty=1e-9, max_time_s=2e-3).on("cpu")
        timing = sample_until_known(
            sample, 0, options, Conditions, launching_ns=lambda: launched_ns
        )
        assert len(timing.samples_ns) == count
