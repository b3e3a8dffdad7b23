"""The roofline in text: the limits, and the points below them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import records

from matbench.features.explain.record import Bottleneck, Explanation, Limits, Traffic
from matbench.features.explain.roofline import chart

positive = st.floats(1e-3, 1e15)


def explained(rate: float | None = 8e12, least: float = 100.0, **more: Any) -> Explanation:
    """A case at so many operations per second, on a device of 4 TB/s and 60 TFLOP/s."""
    limits = Limits(
        device="", driver="", copy_bytes_per_s=more.pop("copy", 4e12), read_bytes_per_s=4.5e12,
        fma_flop_per_s=more.pop("flops", 60e12), sm_mhz=None, when="",
    )  # fmt: skip
    traffic = Traffic(1000, 100, least, intensity=more.pop("intensity", 4.0))
    found = Explanation(
        case=records.outcome().case, outcome=records.outcome(), traffic=traffic,
        operations_per_s=rate, limits=limits, bound=Bottleneck(by="neither"),
    )  # fmt: skip
    return msgspec.structs.replace(found, **more)


def test_points_stand_where_they_are_below_the_roof() -> None:
    lines = chart(explained())
    marked = {mark: next(line for line in lines if mark in line) for mark in "◇○●"}
    assert marked["◇"].startswith("    60,000 ┤")  # on the flat roof
    assert marked["○"].startswith("    16,000 ┤")  # on the slope
    assert marked["●"].startswith("     8,000 ┤")
    assert marked["○"].index("○") == marked["●"].index("●") < marked["◇"].index("◇")
    assert lines.index(marked["◇"]) < lines.index(marked["○"]) < lines.index(marked["●"])
    assert "╱" in lines[lines.index(marked["○"]) - 1]
    numbers = next(line for line in lines if "4.00" in line)
    assert numbers.index("4.00") == marked["●"].index("●")
    assert lines[lines.index(numbers) - 1].count("┬") == 3
    assert numbers.index("15.0") < numbers.index("100")
    assert lines[-1] == "● measured rate at the intensity of the modelled traffic"


def test_without_a_model_it_stands_at_the_minimum_traffic() -> None:
    lines = chart(explained(least=10.0, intensity=None))
    assert not any("○" in line for line in lines)
    assert any(line.startswith("    60,000 ┤") for line in lines), "the flat roof"
    measured = next(line for line in lines if "●" in line)
    assert measured.index("●") == next(line for line in lines if "◇" in line).index("◇")
    assert lines[-1] == "● measured rate at the intensity of the minimum traffic"


@pytest.mark.parametrize(
    "changes", [{"whole_numbers": True}, {"limits": None}, {"rate": None}, {"rate": 0.0}]
)
def test_without_a_floating_point_rate_there_is_none(changes: dict[str, Any]) -> None:
    assert chart(explained(**changes)) == []


@given(positive, positive, positive, positive, st.none() | positive, st.integers(20, 100))
def test_any_limits_and_points_make_a_chart(
    copy: float, flops: float, rate: float, least: float, intensity: float | None, width: int
) -> None:
    lines = chart(explained(rate, least, copy=copy, flops=flops, intensity=intensity), width)
    assert max(map(len, lines[:-3])) <= max(width, 30, len(lines[0])) + 3
    assert any("●" in line for line in lines[:-1])
