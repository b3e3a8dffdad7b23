"""The report on the blocks of a launch, for launches with known answers."""

from __future__ import annotations

import csv
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_regressions.file_regression import FileRegressionFixture
from support import records, tables
from support.golden import paged
from support.launches import COUNTERS, LAUNCHES, UNEVEN, Block, analysed, gpu_or_cpu, sampled
from support.optional import present

from matbench.analysis.block_times import BlockSample
from matbench.features.timeline import profile
from matbench.features.timeline import view as blocks
from matbench.features.timeline.record import Bar, Timeline
from matbench.model import DeviceInfo, Problem
from matbench.records.outcome import BlockTimes
from matbench.show import formats, outcomes
from matbench.show.table import Report


def reported(sample: BlockSample, on: DeviceInfo | None = None) -> Report:
    outcome = records.outcome("tiled", problem=Problem(8, 8, 8))
    return blocks.recorded([(analysed(sample, on), [outcome])], [records.environment()], sample)


def pages() -> dict[str, Report]:
    untold, cpu = sampled(UNEVEN, told=False, event_ns=200_000), gpu_or_cpu("cpu", 2)
    unstamped = sampled([*UNEVEN, Block(1, 10, 20), Block(0, 5, 6)])
    unstamped.stamps[3, 1] = 0
    unstamped.stamps[4, 1] = unstamped.stamps[4, 0] - 1
    in_turn, together = (
        [Block(0, 0, 100_000), Block(0, start, 300_000)] for start in (200_000, 50_000)
    )
    unended = sampled(UNEVEN, told=False)
    unended.stamps[2, 1] = 0
    costs = {"a clock that costs 5%": 0.05, "one that costs more": 0.051, "unknown": float("nan")}
    return {
        "figures for people": reported(sampled(UNEVEN, event_ns=212_000, empty_ns=12_000)),
        "counters start apart": reported(
            sampled(UNEVEN, bases={1: 5_000_000}, event_ns=212_000, empty_ns=12_000)
        ),
        "one counter": reported(sampled([Block(7, 500, 1500)], event_ns=900.0, empty_ns=1000.0)),
        "idle multiprocessors": reported(sampled(UNEVEN), gpu_or_cpu(multiprocessors=4)),
        "a CPU": reported(untold, cpu),
        "a CPU, an end without a stamp": reported(unended, gpu_or_cpu("cpu")),
        "a CPU, one block at a time": reported(sampled(in_turn, told=False), gpu_or_cpu("cpu")),
        "a CPU, two together": reported(sampled(together, told=False), gpu_or_cpu("cpu")),
        "blocks without stamps": reported(unstamped),
        "no clock is shared": reported(sampled(UNEVEN, told=False, bases={1: 5_000_000})),
        **{n: reported(sampled(UNEVEN)._replace(perturbation=cost)) for n, cost in costs.items()},
        "the most blocks have the longest bar": reported(
            sampled([Block(0, 0, 1000)] * 8 + [Block(1, 0, 2000)] * 4)
        ),
    }


def test_pages(file_regression: FileRegressionFixture) -> None:
    found = pages()
    texts = {name: tables.shown(page) for name, page in found.items()}
    for fmt in ("plain", "github", "html", "csv"):
        for name in ("figures for people", "a CPU, an end without a stamp"):
            texts[f"{name}: {fmt}"] = formats.text(found[name], fmt)
    file_regression.check(paged(texts), encoding="utf-8")


def test_a_histogram_without_blocks_has_no_bars() -> None:
    found = analysed(sampled(UNEVEN))
    empty = tuple(msgspec.structs.replace(bar, blocks=0) for bar in found.histogram)
    found = msgspec.structs.replace(found, histogram=empty)
    *_, histogram = blocks.recorded([(found, [])], []).sections
    assert {row.cells[1:] for row in histogram.rows} == {("0", "0.0%", "")}


def test_a_sweep_keeps_the_imbalance_beside_the_median_block() -> None:
    shown = records.outcome(blocks=BlockTimes(median_ns=1e4, imbalance=0.123))
    [row] = csv.DictReader(formats.text(outcomes.report([shown], []), "csv").splitlines())
    assert row["block_imbalance"] == "0.123"
    assert "imbalance" in formats.text(outcomes.report([shown], []), "plain")
    unknown = records.outcome(blocks=BlockTimes(median_ns=1e4))
    assert "imbalance" not in formats.text(outcomes.report([unknown], []), "plain")


@given(LAUNCHES, COUNTERS, st.booleans())
def test_any_launch_can_be_described(ran: list[Block], bases: dict[int, int], told: bool) -> None:
    sample = sampled(ran, bases=bases, told=told, event_ns=1e6)
    found = reported(sample, gpu_or_cpu("gpu" if told else "cpu", multiprocessors=6))
    assert all(section.rows for section in found.sections)
    assert len(list(found.rows())) == len(ran)
    assert found.footer


# Lanes


def timeline(ran: list[Block], *, told: bool = True) -> Timeline | None:
    kind = gpu_or_cpu("gpu" if told else "cpu")
    return analysed(sampled(ran, told=told), kind).timeline


def test_slots_of_one_unit_never_overlap() -> None:
    start, end = np.array([0, 1, 2, 10, 11]), np.array([5, 3, 4, 12, 13])
    slots = profile.apart(start, end, np.array([0, 0, 0, 0, 1]))
    assert slots.tolist() == [0, 1, 2, 0, 0]


def test_few_blocks_are_all_there() -> None:
    ran = [Block(7, 0, 10), Block(3, 0, 30), Block(7, 5, 20), Block(7, 10, 12)]
    assert timeline(ran) == Timeline(
        lanes=2,
        slots=2,
        multiprocessors=(3, 7),
        bars=(Bar(0, 0, 30, 0, 1), Bar(1, 0, 10, 0, 0), Bar(1, 5, 20, 1, 2), Bar(1, 10, 12, 0, 3)),
    )


def test_without_multiprocessors_lanes_only_keep_blocks_apart() -> None:
    found = present(timeline([Block(0, 0, 10), Block(0, 5, 20), Block(0, 10, 30)], told=False))
    assert (found.multiprocessors, found.lanes, found.slots) == (None, 2, 1)
    assert [bar.lane for bar in found.bars] == [0, 0, 1]
    assert analysed(sampled(UNEVEN, told=False)).timeline is None  # a GPU without a shared clock


def test_too_many_blocks_have_no_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = [Block(unit, 100 * wave, 100 * wave + 90) for unit in range(3) for wave in range(20)]
    monkeypatch.setattr("matbench.features.timeline.record.MOST_BARS", 60)
    assert timeline(ran) is not None
    assert timeline([*ran, Block(1, 3000, 3001)]) is None


@given(LAUNCHES, st.booleans())
def test_bars_of_a_slot_never_overlap(ran: list[Block], told: bool) -> None:
    found = present(timeline(ran, told=told))
    assert sorted(bar.block for bar in found.bars) == list(range(len(ran)))
    for slot in {(bar.lane, bar.slot) for bar in found.bars}:
        here = [bar for bar in found.bars if (bar.lane, bar.slot) == slot]
        assert all(a.end_ns <= b.start_ns for a, b in pairwise(here))
