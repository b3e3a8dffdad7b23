"""The load of the CPU that kernels run on."""

from __future__ import annotations

import os
from itertools import chain, repeat
from pathlib import Path

import msgspec
import pytest
from support.devices import GPU

from matbench.backends import host

CPUS = 4


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> host._Others:
    """Readings of this process, all programs and all processors, in seconds per processor."""
    readings = [
        (1.0, 2.0, 8.0), (1.1, 2.2, 8.1), (2.0, 3.5, 18.0), (3.0, 7.5, 28.0), (8.0, 7.5, 38.0),
    ]  # fmt: skip
    given = chain(([CPUS * s for s in each] for each in readings), repeat(None))
    monkeypatch.setattr(host._Others, "_readings", staticmethod(lambda: next(given)))
    monkeypatch.setattr(os, "cpu_count", lambda: CPUS)
    others = host._Others()
    assert others.share() is None, "there is nothing to compare the first reading with"
    return others


def test_the_share_of_others_is_without_ones_own(others: host._Others) -> None:
    """Of the first ten seconds, all programs used 1.5, this one 1; of the next ten, 4 and 1."""
    assert others.share() is None, "a tenth of a second is too short to tell"
    assert others.share() == pytest.approx(0.05)
    assert others.share() == pytest.approx(0.3), "since the last reading, not since the start"
    assert others.share() == 0, "clocks of processes and of the system are not the same"


def test_the_load_of_this_machine_is_known_after_a_while() -> None:
    before, after = host.conditions(), host.conditions()
    assert after.load is None or after.load >= 0
    for moment in (before, after):
        assert moment.others_share is None or 0 <= moment.others_share <= 1


@pytest.mark.parametrize(
    ("listed", "bound"),
    [("0-1,3\n", {1, 3}), ("2", None), ("\n", None), ("all", None), (None, None)],
)
def test_a_process_is_bound_to_the_processors_next_to_its_gpu(
    listed: str | None, bound: set[int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those that it may use at all: 1, 3 and 5."""
    found: list[set[int]] = []
    monkeypatch.setattr(host, "_PCI", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3, 5}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, to: found.append(to), raising=False)
    if listed is not None:
        (tmp_path / "0000:1b:00.0").mkdir()
        (tmp_path / "0000:1b:00.0" / "local_cpulist").write_text(listed)
    host.bind_to(msgspec.structs.replace(GPU, properties={"PCI address": "0000:1B:00.0"}))
    host.bind_to(GPU)  # whose address is not known
    assert found == ([] if bound is None else [bound])
