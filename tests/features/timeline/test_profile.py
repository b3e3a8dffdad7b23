"""Block times computed from stamps, beyond what the pages of known launches show."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import Matbench, csv_rows
from support.kernels import KernelWriter
from support.launches import COUNTERS, LAUNCHES, UNEVEN, Block, analysed, gpu_or_cpu, sampled
from support.optional import present

from matbench.analysis import block_times
from matbench.errors import CaseError
from matbench.model import DeviceInfo


def test_an_offset_that_the_timer_cannot_see_is_none() -> None:
    ran = [Block(unit, start + 7, end + 7) for unit, start, end in UNEVEN]
    ran += [Block(0, 200_100, 203_100)]
    fine = analysed(sampled([*ran, Block(0, 203_100, 203_101)], bases={1: 5000}, step_ns=1))
    assert fine.counters == "not aligned"
    # Counters that are 3.5 µs apart are as good as aligned to a timer with steps of 3 µs.
    coarse = analysed(sampled(ran, bases={1: 7000}, step_ns=3000))
    assert coarse.counters == "aligned"


def test_few_stamps_do_not_pass_for_a_coarse_timer() -> None:
    found = analysed(sampled([Block(0, 0, 100_000), Block(1, 0, 100_000)], bases={1: 50_000}))
    assert found.counters == "not aligned"


def test_counters_near_the_end_of_64_bits() -> None:
    found = analysed(sampled(UNEVEN, bases={0: 2**64 - 10_000_000, 1: 0}))
    assert found.counter_offset_ticks == pytest.approx(10_000_000, abs=2)
    assert found.multiprocessor_span_ticks == 400_000
    assert found.naive_span_ticks == 2**64 - 10_000_000 + 400_000


def test_without_any_end_stamp_there_is_nothing_to_tell() -> None:
    sample = sampled(UNEVEN)
    sample.stamps[:, 1] = 0
    with pytest.raises(CaseError, match="none of the 3 blocks"):
        analysed(sample)


def test_stragglers_leave_the_histogram_readable() -> None:
    ran = [Block(0, 0, 1000 + i) for i in range(100)]
    ran += [Block(1, 0, 1_000_000), Block(1, 0, 3)]
    bins = analysed(sampled(ran)).histogram
    assert bins[0].blocks == bins[-1].blocks == 1
    assert bins[0].low_us == pytest.approx(0.003)
    assert bins[-1].high_us == pytest.approx(1000, rel=1e-3)
    assert sum(b.blocks > 0 for b in bins[1:-1]) >= 4


def test_times_on_one_clock_are_as_fine_as_ticks() -> None:
    ran = [Block(u, 10_000 * i + 37 * u, 10_000 * (i + 1)) for u in range(4) for i in range(50)]
    sample = sampled(ran, bases={1: 9**9, 2: 12_345, 3: 2**40}, step_ns=32)
    found = present(analysed(sample).timeline)
    bars = sorted(found.bars, key=lambda bar: bar.block)
    np.testing.assert_allclose([b.start_ns for b in bars], [b.start for b in ran], atol=33)
    took = [bar.end_ns - bar.start_ns for bar in bars]
    np.testing.assert_allclose(took, [b.end - b.start for b in ran], atol=1)
    assert min(bar.start_ns for bar in bars) == 0


def busy(ran: Sequence[Block]) -> int:
    """How long at least one of them ran."""
    total, reached = 0, 0
    for _, start, end in sorted(ran, key=lambda block: block.start):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def together(ran: Sequence[Block]) -> int:
    return max(sum(b.start <= a.start < b.end for b in ran) for a in ran)


@given(LAUNCHES, COUNTERS)
def test_every_figure_against_its_definition(ran: list[Block], bases: dict[int, int]) -> None:
    found = analysed(sampled(ran, bases=bases, event_ns=1e6), gpu_or_cpu(multiprocessors=6))
    units = [[b for b in ran if b.unit == unit] for unit in {b.unit for b in ran}]
    span = max(b.end for b in ran) - min(b.start for b in ran)
    most = [together(unit) for unit in units]
    times = [busy(unit) for unit in units]
    last = [max(b.end for b in unit) for unit in units]
    assert found.multiprocessors_used == len(units)
    assert found.span_ns == span
    assert found.resident_most == max(most)
    assert found.resident_median == np.median(most)
    assert found.waves == len(ran) / sum(most)
    assert found.imbalance == pytest.approx(max(times) * 6 / sum(times) - 1)
    assert found.tail_share == pytest.approx((max(last) - min(last)) / span, abs=1e-6)
    assert found.multiprocessor_span_ticks == 2 * max(
        max(b.end for b in unit) - min(b.start for b in unit) for unit in units
    )
    assert found.naive_span_ticks >= (found.multiprocessor_span_ticks or 0)
    assert sum(b.blocks for b in found.histogram) == len(ran)
    assert found.duration_us.median == pytest.approx(
        np.median([b.end - b.start for b in ran]) / 1e3
    )
    for low, high in zip(found.histogram, found.histogram[1:], strict=False):
        assert low.high_us == high.low_us


@given(LAUNCHES, COUNTERS, st.randoms())
def test_neither_counters_nor_order_matter_but_to_the_naive_span(
    ran: list[Block], bases: dict[int, int], random: Random
) -> None:
    shuffled = list(ran)
    random.shuffle(shuffled)
    by_counter = {
        "counters": "one",
        "counter_offset_ticks": None,
        "naive_span_ticks": 0,
        "timeline": None,
    }
    one, other = (
        msgspec.structs.replace(analysed(sample, gpu_or_cpu(multiprocessors=6)), **by_counter)
        for sample in (sampled(ran), sampled(shuffled, bases=bases))
    )
    assert one == other


@given(LAUNCHES)
def test_a_cpus_figures_against_their_definition(ran: list[Block]) -> None:
    found = analysed(sampled(ran, told=False), gpu_or_cpu("cpu", 6))
    begin, end = min(b.start for b in ran), max(b.end for b in ran)
    most = together(ran)
    assert found.running_most == most
    assert found.waves == len(ran) / most
    assert found.span_ns == end - begin
    full_until = max(
        min(b.end for b in ran if b.start <= a.start < b.end)
        for a in ran
        if sum(b.start <= a.start < b.end for b in ran) == most
    )
    assert found.tail_share == pytest.approx((end - full_until) / (end - begin))


def test_the_brief_figures_are_those_of_the_whole_analysis() -> None:
    instant = sampled([Block(7, 500, 500)], event_ns=900.0)
    assert (
        block_times.brief(instant, gpu_or_cpu("cpu")).median_ns is None
    )  # a record holds no time of 0
    for told, kind in ((True, "gpu"), (False, "cpu")):
        sample, on = sampled(UNEVEN, told=told), gpu_or_cpu(kind)
        whole = analysed(sample, on)
        found = block_times.brief(sample, on)
        assert found.median_ns == pytest.approx(whole.duration_us.median * 1e3)
        assert (found.imbalance, found.perturbation) == (whole.imbalance, whole.perturbation)
        assert found.sm_mhz is None
        assert block_times.brief(sample, on, clock_is_sm=True).sm_mhz == 2000


# The command, on this machine's device


TWO_DIMENSIONS = ("blocks", "tiled", "--sizes", "100x64x32", "--set", "TILE=8")


def test_csv_is_the_stamps_of_each_block(matbench: Matbench, device: DeviceInfo) -> None:
    rows = csv_rows(matbench(*TWO_DIMENSIONS, "--format", "csv").stdout)
    places = [(int(row["block_x"]), int(row["block_y"]), int(row["block_z"])) for row in rows]
    assert places == [(x, y, 0) for y in range(13) for x in range(8)]
    assert all(int(row["end_ticks"]) >= int(row["start_ticks"]) > 0 for row in rows)
    if device.kind == "cpu":
        assert {(row["multiprocessor"], row["start_ns"], row["end_ns"]) for row in rows} == {
            ("", "", "")
        }


def test_without_a_tile_the_fastest_is_taken(matbench: Matbench) -> None:
    said = matbench("blocks", "tiled", "--sizes", "40").stdout
    assert re.match(r"tiled TILE=(8|16|32) at 40\n", said)


def test_a_block_that_returns_is_stamped(matbench: Matbench, write_kernel: KernelWriter) -> None:
    path = write_kernel("wide", launch='block = ["TILE", "TILE"]\ngrid = ["9", "9"]')
    found = json.loads(matbench("blocks", path, "--sizes", "17", "--format", "json").stdout)[-1]
    assert (found["blocks"], found["unstamped_blocks"]) == (81, 0)


def test_what_the_device_cannot_run_is_skipped(matbench: Matbench) -> None:
    said = matbench("blocks", "tiled", "--sizes", "20", "--set", "TILE=4096").stdout
    assert "skipped: needs" in said
