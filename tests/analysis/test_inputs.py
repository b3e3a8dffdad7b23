"""Which inputs make a case faster: only differences beyond both intervals and a margin."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.records import outcome, timing

from matbench.analysis.gathering import with_faster_inputs
from matbench.model import Problem
from matbench.records.outcome import Outcome, Sustained


def timed(inputs: Any, ms: float, half_ms: float = 0.0, **changes: Any) -> Outcome:
    cold = timing(ms, interval_ns=((ms - half_ms) * 1e6, (ms + half_ms) * 1e6))
    return outcome(problem=Problem(64, 64, 64, inputs=inputs), cold=cold, **changes)


def lasting(*ms: float) -> Sustained:
    return Sustained(
        blocks_ns=tuple(1e6 * one for one in ms), mean_ns=1e6 * sum(ms) / len(ms), launches=10,
        duration_s=1, warm_up_s=1, steady=True,
    )  # fmt: skip


def told(*outcomes: Outcome) -> list[tuple[str, ...]]:
    return [outcome.notes for outcome in with_faster_inputs(outcomes)]


def test_the_slower_inputs_name_the_fastest() -> None:
    """After their own notes, and not those of a faster run with the same inputs."""
    slow = timed("normal", 1.2, notes=("own",))
    middle, fast = timed("signed", 1.1), timed("uniform", 1.0)
    [*found, best] = told(slow, middle, fast)
    faster = "with uniform inputs: 1.{}0 × faster"
    assert [*found, best] == [("own", faster.format(2)), (faster.format(1),), ()]
    assert told(timed("normal", 1.0), timed("normal", 2.0), timed("signed", 1.5)) == [
        (), ("with signed inputs: 1.33 × faster",), ("with normal inputs: 1.50 × faster",)
    ]  # fmt: skip


@example(factor=1.25, half=0.125, other=0.125)  # intervals that touch
@example(factor=1.02, half=0.0, other=0.0)
@given(factor=st.floats(1, 1.3), half=st.floats(0, 0.2), other=st.floats(0, 0.2))
def test_a_difference_counts_beyond_both_intervals_and_two_percent(
    factor: float, half: float, other: float
) -> None:
    slow, fast = timed("normal", factor, half), timed("uniform", 1.0, other)
    low, high = (factor - half) * 1e6, (1.0 + other) * 1e6
    assert bool(told(slow, fast)[0]) == (factor * 1e6 > 1.02 * 1e6 and high < low)


def test_speed_over_seconds_is_compared_by_its_blocks() -> None:
    slow = timed("normal", 1.0, sustained=lasting(1.2, 1.3))
    fast = timed("uniform", 1.0, sustained=lasting(1.0, 1.1))
    factor = 1.25 / 1.05
    assert told(slow, fast) == [(f"sustained, with uniform inputs: {factor:.2f} × faster",), ()]
    near = timed("uniform", 1.0, sustained=lasting(1.0, 1.21))
    assert told(slow, near) == told(slow, timed("uniform", 1.0)) == [(), ()]


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": "other"},
        {"sha256": "1" * 64},
        {"params": {"TILE": 8}},
        {"device_id": "opencl:1"},
        {"device": "another"},
        {"backend": "cuda"},
        {"problem": Problem(32, 64, 64, inputs="uniform")},
    ],
)
def test_only_the_same_case_on_the_same_device_is_compared(changes: dict[str, Any]) -> None:
    slow = timed("normal", 2.0)
    fast = outcome(
        **{"problem": Problem(64, 64, 64, inputs="uniform")} | changes,
        cold=timing(1.0, interval_ns=(1e6, 1e6)),
    )
    assert told(slow, fast) == [(), ()]
