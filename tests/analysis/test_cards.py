"""Devices of one name: when they are told apart."""

from __future__ import annotations

import msgspec
from support.devices import GPU
from support.records import environment, outcome

from matbench.analysis import gathering, ranking
from matbench.model import Problem
from matbench.records.outcome import Outcome

TWO = tuple(
    msgspec.structs.replace(GPU, index=index, properties={"UUID": f"GPU-{index}"})
    for index in range(2)
)
ABOUT = [environment(devices=TWO)]


def on(index: int, kernel: str = "tiled", ms: float = 1.0, n: int = 64, T: int = 16) -> Outcome:
    return outcome(
        kernel, ms, problem=Problem(n, n, n), params={"TILE": T}, backend="cuda", device=GPU.name,
        device_kind="gpu", device_id=f"GPU-{index}",
    )  # fmt: skip


def test_devices_that_measured_different_problems_share_a_table() -> None:
    given = [on(0, n=64), on(1, n=128), on(1, n=256)]
    assert gathering.told_apart(given, ABOUT) == (given, ABOUT)
    [table] = ranking.tables(given)
    assert len(table.problems) == 3


def test_devices_that_measured_the_same_problem_are_never_ranked_together() -> None:
    given = [on(1, ms=1.0), on(0, ms=2.0), on(0, "other", ms=3.0)]
    found, about = gathering.told_apart(given, ABOUT)
    assert [o.case.device for o in found] == [
        "A GPU (cuda:0)", "A GPU (cuda:0)", "A GPU (cuda:1)"
    ]  # fmt: skip
    assert [info.name for info in about[0].devices] == ["A GPU (cuda:0)", "A GPU (cuda:1)"]
    rivals = [[row.rivals for row in table.rows] for table in ranking.tables(found)]
    assert rivals == [[2, 2], [1]]


def test_places_that_two_devices_had_are_not_used() -> None:
    elsewhere = msgspec.structs.replace(TWO[0], properties={"UUID": "GPU-7"})
    about = [*ABOUT, environment(devices=(elsewhere,))]
    assert gathering.places(about) == {"GPU-0": "GPU-0", "GPU-1": "cuda:1", "GPU-7": "GPU-7"}
