"""Devices of one name: when they are told apart, and by how much they differ."""

from __future__ import annotations

import msgspec
import pytest
from support.devices import GPU
from support.records import environment, outcome

from matbench.analysis import cards, ranking
from matbench.model import DeviceInfo, Problem
from matbench.records.outcome import Outcome

TWO = tuple(
    msgspec.structs.replace(GPU, index=index, properties={"UUID": f"GPU-{index}"})
    for index in range(2)
)
ABOUT = [environment(devices=TWO)]


def on(index: int, kernel: str = "tiled", ms: float = 1.0, n: int = 64, T: int = 16) -> Outcome:
    return outcome(
        kernel,
        ms,
        problem=Problem(n, n, n),
        params={"TILE": T},
        backend="cuda",
        device=GPU.name,
        device_kind="gpu",
        device_id=f"GPU-{index}" if index >= 0 else "",
    )


def test_devices_that_measured_different_problems_share_a_table() -> None:
    given = [on(0, n=64), on(1, n=128), on(-1, n=256)]
    assert cards.told_apart(given, ABOUT) == (given, ABOUT)
    [table] = ranking.tables(given)
    assert len(table.problems) == 3


def test_devices_that_measured_the_same_problem_are_never_ranked_together() -> None:
    given = [on(1, ms=1.0), on(0, ms=2.0), on(0, "other", ms=3.0)]
    found, about = cards.told_apart(given, ABOUT)
    assert [o.case.device for o in found] == [
        "A GPU (cuda:0)", "A GPU (cuda:0)", "A GPU (cuda:1)"
    ]  # fmt: skip
    assert [info.name for info in about[0].devices] == ["A GPU (cuda:0)", "A GPU (cuda:1)"]
    rivals = [[row.rivals for row in table.rows] for table in ranking.tables(found)]
    assert rivals == [[2, 2], [1]]
    # Which of two is not known: they stay as they are.
    assert cards.told_apart([on(-1), on(0)], ABOUT)[0] == [on(-1), on(0)]


def test_places_that_two_devices_had_are_not_used() -> None:
    elsewhere = msgspec.structs.replace(TWO[0], properties={"UUID": "GPU-7"})
    about = [*ABOUT, environment(devices=(elsewhere,))]
    assert cards.places(about) == {"GPU-0": "GPU-0", "GPU-1": "cuda:1", "GPU-7": "GPU-7"}


def test_the_spread_of_a_case_is_that_of_its_medians() -> None:
    given = [
        on(0, n=128, ms=2.0), on(1, n=128, ms=2.5),
        on(0, ms=1.0), on(1, ms=1.1),
        on(0, T=32, ms=0.9), on(1, T=32, ms=0.9),
        on(0, "alone"), outcome("tiled", device_id="GPU-0", status="wrong"),
    ]  # fmt: skip
    found = cards.spreads(given)
    assert [(s.case.problem.N, s.case.params["TILE"]) for s in found] == [
        (64, 32), (64, 16), (128, 16)
    ]  # fmt: skip
    assert [s.spread for s in found] == pytest.approx([0.0, 0.1, 0.25])
    assert found[1].medians_ns == {"GPU-0": 1e6, "GPU-1": 1.1e6}
    fastest = cards.spreads(given, fastest=True)
    assert [(s.case.problem.N, s.case.params["TILE"]) for s in fastest] == [(64, 32), (128, 16)]


def test_the_same_kernel_on_another_model_is_no_spread() -> None:
    other: DeviceInfo = msgspec.structs.replace(GPU, name="Another")
    case = msgspec.structs.replace(on(1).case, device=other.name)
    assert cards.spreads([on(0), msgspec.structs.replace(on(1), case=case)]) == []
