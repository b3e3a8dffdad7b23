"""Which inputs make a case faster: only differences beyond both intervals and a margin."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.records import outcome, timing

from matbench.analysis.inputs import Faster, faster_inputs
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


def test_the_slower_inputs_name_the_fastest() -> None:
    slow, middle, fast = timed("normal", 1.2), timed("signed", 1.1), timed("uniform", 1.0)
    told = faster_inputs([slow, middle, fast])
    assert told[id(slow)] == [Faster("uniform", 1.2, is_sustained=False)]
    assert told[id(middle)] == [Faster("uniform", 1.1, is_sustained=False)]
    assert told[id(fast)] == []


@given(factor=st.floats(1, 1.3), half=st.floats(0, 0.2), other=st.floats(0, 0.2))
def test_a_difference_counts_beyond_both_intervals_and_two_percent(
    factor: float, half: float, other: float
) -> None:
    slow, fast = timed("normal", factor, half), timed("uniform", 1.0, other)
    is_told = bool(faster_inputs([slow, fast])[id(slow)])
    low, high = (factor - half) * 1e6, (1.0 + other) * 1e6
    assert is_told == (factor * 1e6 > 1.02 * 1e6 and high < low)


def test_speed_over_seconds_is_compared_by_its_blocks() -> None:
    slow = timed("normal", 1.0, sustained=lasting(1.2, 1.3))
    fast = timed("uniform", 1.0, sustained=lasting(1.0, 1.1))
    told = faster_inputs([slow, fast])
    [faster] = told[id(slow)]
    assert (faster.inputs, faster.is_sustained) == ("uniform", True)
    assert faster.factor == pytest.approx(1.25 / 1.05)
    near = timed("uniform", 1.0, sustained=lasting(1.0, 1.21))
    assert faster_inputs([slow, near])[id(slow)] == []
    assert faster_inputs([slow, timed("uniform", 1.0)])[id(slow)] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": "other"},
        {"sha256": "1" * 64},
        {"params": {"TILE": 8}},
        {"device_id": "opencl:1"},
        {"problem": Problem(32, 64, 64, inputs="uniform")},
    ],
)
def test_only_the_same_case_on_the_same_device_is_compared(changes: dict[str, Any]) -> None:
    slow = timed("normal", 2.0)
    fast = outcome(
        **{"problem": Problem(64, 64, 64, inputs="uniform")} | changes,
        cold=timing(1.0, interval_ns=(1e6, 1e6)),
    )
    assert not faster_inputs([slow, fast]).get(id(slow))
