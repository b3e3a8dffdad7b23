"""What the stamps of a launch tell, against launches whose answers are known."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from conftest import KernelWriter, Matbench
from hypothesis import given
from hypothesis import strategies as st
from support.paths import BAD_KERNELS

from matbench.analysis import blocks
from matbench.analysis.blocks import BlockProfile, BlockSample
from matbench.errors import CaseError
from matbench.model import DeviceInfo, Launch, Outcome, Problem
from matbench.show import report

RATE = 2.0  # ticks per ns
EPOCH_NS = 1_800_000_000_000_000_000
TOLD = (
    "multiprocessors_used", "blocks_per_multiprocessor", "resident_most", "resident_median",
    "imbalance", "counter_offset_ticks", "timer_step_ns", "multiprocessor_span_ticks",
    "multiprocessor_span_ns", "multiprocessor_span_ratio",
)  # fmt: skip


class Block(NamedTuple):
    """When a block truly ran, in ns, and where."""

    unit: int
    start: int
    end: int


def gpu_or_cpu(kind: str = "gpu", multiprocessors: int = 2) -> DeviceInfo:
    return DeviceInfo(
        backend="cuda" if kind == "gpu" else "opencl",
        index=0,
        name="test device",
        kind=kind,  # type: ignore[arg-type]
        driver="",
        toolkit="",
        limits={"multiprocessors": multiprocessors},
    )


def sampled(
    ran: Sequence[Block],
    *,
    bases: dict[int, int] | None = None,
    step_ns: int = 1,
    told: bool = True,
    event_ns: float = 0.0,
    empty_ns: float = 0.0,
) -> BlockSample:
    """The stamps that a device makes whose counters start at `bases` and whose timer has steps."""
    rows = []
    for unit, start, end in ran:
        base = 1000 + (bases or {}).get(unit, 0)
        ticks = [base + round(RATE * start), base + round(RATE * end)]
        times = [(EPOCH_NS + t) // step_ns * step_ns for t in (start, end)]
        rows.append([*ticks, *(times if told else [0, 0]), unit if told else 0])
    return BlockSample(np.array(rows, np.uint64), RATE, event_ns, empty_ns, 0.01)


def analysed(sample: BlockSample, on: DeviceInfo | None = None) -> BlockProfile:
    launch = Launch(grid=(len(sample.stamps), 1, 1), block=(64, 1, 1))
    return blocks.analyse(sample, launch, on or gpu_or_cpu())


#: Two multiprocessors: the second one is idle for the last quarter of 200 µs.
UNEVEN = [Block(0, 0, 100_000), Block(0, 100_000, 200_000), Block(1, 0, 150_000)]


def test_durations_waves_tail_and_imbalance() -> None:
    found = analysed(sampled(UNEVEN, event_ns=212_000, empty_ns=12_000))
    assert found.blocks == 3
    assert found.duration_ticks == blocks.Quartiles(200_000, 200_000, 200_000, 250_000, 300_000)
    assert found.duration_us == blocks.Quartiles(100, 100, 100, 125, 150)
    assert found.blocks_per_multiprocessor == blocks.Spread(1, 1.5, 2)
    assert (found.resident_most, found.resident_median, found.running_most) == (1, 1, 2)
    assert found.waves == 1.5
    assert found.tail_share == pytest.approx(0.25)
    assert found.imbalance == pytest.approx(200 / 175 - 1)
    assert found.span_ns == found.multiprocessor_span_ns == found.launch_ns == 200_000
    assert found.span_ratio == found.multiprocessor_span_ratio == 1


def test_aligned_counters_make_the_naive_span_right() -> None:
    found = analysed(sampled(UNEVEN, event_ns=200_000))
    assert found.counters == "aligned"
    assert found.naive_span_ticks == 400_000
    assert found.naive_span_ratio == 1
    assert "can be trusted here" in blocks.explanation(found)


def test_counters_that_start_apart_make_the_naive_span_wrong() -> None:
    found = analysed(sampled(UNEVEN, bases={1: 5_000_000}, event_ns=212_000, empty_ns=12_000))
    assert found.counters == "not aligned"
    assert found.counter_offset_ticks == pytest.approx(5_000_000)
    assert found.naive_span_ticks == 5_300_000
    assert found.naive_span_ratio == pytest.approx(5_300_000 / 400_000)
    assert found.multiprocessor_span_ticks == 400_000
    assert found.span_ns == 200_000
    said = blocks.explanation(found)
    for figure in ("5,300,000 ticks", "2,650 µs", "13.2 times", "5,000,000 ticks", "2,500 µs"):
        assert figure in said
    assert "is not the length of this launch" in said


def test_an_offset_that_the_timer_cannot_see_is_none() -> None:
    ran = [Block(unit, start + 7, end + 7) for unit, start, end in UNEVEN]
    ran += [Block(0, 200_100, 203_100)]
    fine = analysed(sampled([*ran, Block(0, 203_100, 203_101)], bases={1: 5000}, step_ns=1))
    assert fine.counters == "not aligned"
    # Counters that are 2.5 µs apart are as good as aligned to a timer with steps of 3 µs.
    coarse = analysed(sampled(ran, bases={1: 5000}, step_ns=3000))
    assert coarse.timer_step_ns == 3000
    assert coarse.counters == "aligned"


def test_few_stamps_do_not_pass_for_a_coarse_timer() -> None:
    found = analysed(sampled([Block(0, 0, 100_000), Block(1, 0, 100_000)], bases={1: 50_000}))
    assert found.timer_step_ns == 100_000
    assert found.counters == "not aligned"


def test_counters_near_the_end_of_64_bits() -> None:
    found = analysed(sampled(UNEVEN, bases={0: 2**64 - 10_000_000, 1: 0}))
    assert found.counter_offset_ticks == pytest.approx(10_000_000, abs=2)
    assert found.multiprocessor_span_ticks == 400_000
    assert found.naive_span_ticks == 2**64 - 10_000_000 + 400_000


def test_multiprocessors_that_ran_nothing_count_as_idle() -> None:
    found = analysed(sampled(UNEVEN), gpu_or_cpu(multiprocessors=4))
    assert found.multiprocessors_used == 2
    assert found.blocks_per_multiprocessor == blocks.Spread(0, 0.5, 2)
    assert found.imbalance == pytest.approx(200 / (350 / 4) - 1)
    assert "2 of 4 ran none" in str(blocks.facts(found))


def test_a_gap_between_blocks_is_no_busy_time() -> None:
    ran = [Block(0, 0, 100), Block(0, 900, 1000), Block(1, 0, 500), Block(1, 100, 400)]
    found = analysed(sampled(ran))
    assert found.imbalance == pytest.approx(500 / 350 - 1)
    assert (found.resident_most, found.resident_median) == (2, 1.5)


def test_blocks_that_touch_are_not_resident_together() -> None:
    assert analysed(sampled([Block(0, 0, 10), Block(0, 10, 20)])).resident_most == 1
    assert analysed(sampled([Block(0, 0, 11), Block(0, 10, 20)])).resident_most == 2


def test_a_single_block() -> None:
    found = analysed(sampled([Block(7, 500, 1500)], event_ns=900.0, empty_ns=1000.0))
    assert found.counters == "one"
    assert found.duration_us == blocks.Quartiles(1, 1, 1, 1, 1)
    assert [b.blocks for b in found.histogram] == [1]
    assert (found.waves, found.tail_share, found.naive_span_ticks) == (1, 0, 2000)
    assert found.imbalance == 1  # the other multiprocessor did nothing
    assert found.span_ratio is None, "an event time below the empty launch's compares with nothing"
    assert "one multiprocessor" in blocks.explanation(found)
    assert blocks.spans(found)[-1].ratio == ""


def test_blocks_without_an_end_stamp_count_nowhere() -> None:
    sample = sampled([*UNEVEN, Block(1, 10, 20), Block(0, 5, 6)], bases={1: 77})
    sample.stamps[3, 1] = 0
    sample.stamps[4, 1] = sample.stamps[4, 0] - 1
    found = analysed(sample)
    assert (found.blocks, found.unstamped_blocks) == (3, 2)
    alike = analysed(sampled(UNEVEN, bases={1: 77}))
    without = {"unstamped_blocks": 0, "launch": alike.launch}
    assert msgspec.structs.replace(found, **without) == alike
    assert "left out" in str(blocks.facts(found))


def test_without_any_end_stamp_there_is_nothing_to_tell() -> None:
    sample = sampled(UNEVEN)
    sample.stamps[:, 1] = 0
    with pytest.raises(CaseError, match="none of the 3 blocks"):
        analysed(sample)
    with pytest.raises(CaseError, match="none of the 3 blocks"):
        blocks.place(sample, "gpu")


def test_a_cpu_has_one_clock_and_tells_no_multiprocessor() -> None:
    found = analysed(sampled(UNEVEN, told=False, event_ns=200_000), gpu_or_cpu("cpu", 2))
    assert [name for name in TOLD if getattr(found, name) is not None] == []
    assert found.counters == "one"
    assert found.naive_span_ticks == 400_000
    assert found.span_ns == 200_000
    assert found.span_ratio == 1
    assert found.running_most == 2
    assert found.waves == 1.5
    assert found.tail_share == pytest.approx(0.25)
    said = str(blocks.facts(found))
    assert "not told" in said
    assert "without each block's multiprocessor" in said
    assert "read one clock" in blocks.explanation(found)
    assert [span.clock for span in blocks.spans(found)][1:] == ["events − an empty launch's"]


def test_a_gpu_that_tells_neither_multiprocessor_nor_shared_clock() -> None:
    sample = sampled(UNEVEN, told=False, bases={1: 5_000_000})
    found = analysed(sample)
    unknown = ("running_most", "waves", "tail_share", "span_ns", "span_ratio", *TOLD)
    assert [name for name in unknown if getattr(found, name) is not None] == []
    assert found.counters == "not known"
    assert found.duration_us.maximum == 150
    assert "is not known" in blocks.explanation(found)
    assert blocks.place(sample, "gpu") is None


def test_a_clock_that_costs_more_than_the_limit_is_marked() -> None:
    for cost, marked in ((0.05, False), (0.051, True), (-0.01, False), (float("nan"), True)):
        found = analysed(sampled(UNEVEN)._replace(perturbation=cost))
        assert found.perturbed is marked
        [fact] = [f for f in blocks.facts(found) if f.name == "cost of the clock"]
        assert fact.value == f"{cost:+.1%}"
        assert ("≈" in fact.meaning) is marked


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
    placed = blocks.place(sample, "gpu")
    assert placed is not None
    np.testing.assert_allclose(placed.start_ns, [b.start for b in ran], atol=33)
    np.testing.assert_allclose(placed.end_ns - placed.start_ns, [b.end - b.start for b in ran])
    assert placed.start_ns.min() == 0


launches = st.lists(
    st.builds(
        lambda unit, start, took: Block(unit, start, start + took),
        st.integers(0, 5),
        st.integers(0, 10**6),
        st.integers(1, 10**5),
    ),
    min_size=1,
    max_size=40,
)
counters = st.dictionaries(st.integers(0, 5), st.integers(0, 2**62), max_size=6)


def busy(ran: Sequence[Block]) -> int:
    """How long at least one of them ran."""
    total, reached = 0, 0
    for _, start, end in sorted(ran, key=lambda block: block.start):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def together(ran: Sequence[Block]) -> int:
    return max(sum(b.start <= a.start < b.end for b in ran) for a in ran)


@given(launches, counters)
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
    assert found.multiprocessor_span_ns == max(
        max(b.end for b in unit) - min(b.start for b in unit) for unit in units
    )
    assert found.naive_span_ticks >= (found.multiprocessor_span_ticks or 0)
    assert sum(b.blocks for b in found.histogram) == len(ran)
    assert found.duration_us.median == pytest.approx(
        np.median([b.end - b.start for b in ran]) / 1e3
    )
    for low, high in zip(found.histogram, found.histogram[1:], strict=False):
        assert low.high_us == high.low_us
    assert blocks.facts(found)
    assert blocks.explanation(found)


@given(launches, counters, st.randoms())
def test_neither_counters_nor_order_matter_but_to_the_naive_span(
    ran: list[Block], bases: dict[int, int], random: np.random.Generator
) -> None:
    shuffled = list(ran)
    random.shuffle(shuffled)  # type: ignore[arg-type]
    by_counter = {
        "counters": "one",
        "counter_offset_ticks": None,
        "naive_span_ticks": 0,
        "naive_span_ns": 0.0,
        "naive_span_ratio": None,
    }
    one, other = (
        msgspec.structs.replace(analysed(sample, gpu_or_cpu(multiprocessors=6)), **by_counter)
        for sample in (sampled(ran), sampled(shuffled, bases=bases))
    )
    assert one == other


@given(launches)
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


@given(launches, st.booleans())
def test_a_profile_is_plain_json(ran: list[Block], told: bool) -> None:
    kind = "gpu" if told else "cpu"
    found = analysed(sampled(ran, told=told), gpu_or_cpu(kind, 6))
    assert msgspec.json.decode(msgspec.json.encode(found), type=BlockProfile) == found


def test_the_brief_figures_are_those_of_the_whole_analysis() -> None:
    for told, kind in ((True, "gpu"), (False, "cpu")):
        sample, on = sampled(UNEVEN, told=told), gpu_or_cpu(kind)
        whole = analysed(sample, on)
        median_ns = whole.duration_us.median * 1e3
        assert blocks.brief(sample, on) == (pytest.approx(median_ns), whole.imbalance)


# On this machine's device


TWO_DIMENSIONS = ("blocks", "tiled", "--size", "100x64x32", "--tile", "8")


def test_blocks_of_a_real_launch(matbench: Matbench) -> None:
    said = matbench(*TWO_DIMENSIONS).stdout
    assert said.startswith("tiled TILE=8 at 100x64x32\n")
    assert re.search(r"^blocks +104 +8 × 8 threads each *$", said, re.MULTILINE)
    for part in ("duration, quartiles", "cost of the clock", "latest end − earliest start", "█"):
        assert part in said


def test_json_is_environment_outcome_and_blocks(matbench: Matbench, device: DeviceInfo) -> None:
    records = json.loads(matbench(*TWO_DIMENSIONS, "--format", "json").stdout)
    assert [record["type"] for record in records] == ["environment", "outcome", "blocks"]
    _, outcome, found = records
    assert outcome["status"] == "measured"
    assert found["blocks"] == 104
    assert found["unstamped_blocks"] == 0
    assert found["launch"] == outcome["launch"]
    assert 0 < found["duration_us"]["minimum"] <= found["duration_us"]["maximum"]
    assert sum(each["blocks"] for each in found["histogram"]) == 104
    assert 1 <= found["running_most"] <= 104
    # The clock that all compute units share, against the events of the same launch.
    assert found["span_ns"] <= 1.05 * found["event_ns"]
    if device.kind == "cpu":
        assert found["counters"] == "one"
        assert found["naive_span_ns"] == found["span_ns"]
        assert [name for name in TOLD if found[name] is not None] == []


def test_csv_is_the_stamps_of_each_block(matbench: Matbench, device: DeviceInfo) -> None:
    rows = list(csv.DictReader(matbench(*TWO_DIMENSIONS, "--format", "csv").stdout.splitlines()))
    places = [(int(row["block_x"]), int(row["block_y"]), int(row["block_z"])) for row in rows]
    assert places == [(x, y, 0) for y in range(13) for x in range(8)]
    assert all(int(row["end_ticks"]) >= int(row["start_ticks"]) > 0 for row in rows)
    if device.kind == "cpu":
        assert {(row["multiprocessor"], row["start_ns"], row["end_ns"]) for row in rows} == {
            ("", "", "")
        }


@pytest.mark.parametrize("fmt", ["plain", "github", "html"])
def test_other_formats(matbench: Matbench, fmt: str) -> None:
    said = matbench(*TWO_DIMENSIONS, "--format", fmt).stdout
    for part in ("tiled TILE=8 at 100x64x32", "earliest start", "duration (µs)", "104"):
        assert part in said


def test_without_a_tile_the_fastest_is_taken(matbench: Matbench) -> None:
    said = matbench("blocks", "tiled", "--size", "40").stdout
    assert re.match(r"tiled TILE=(8|16|32) at 40\n", said)
    assert matbench("blocks", "tiled", "--size", "40", "--set", "TILE=16").stdout.startswith(
        "tiled TILE=16 at 40\n"
    )


def test_a_file_is_a_kernel_too(matbench: Matbench, write_kernel: KernelWriter) -> None:
    assert matbench("blocks", write_kernel("mine"), "--size", "33").stdout.startswith("mine TILE=8")


def test_a_block_whose_threads_all_return_early_is_stamped(
    matbench: Matbench, write_kernel: KernelWriter
) -> None:
    path = write_kernel("wide", launch='block = ["TILE", "TILE"]\ngrid = ["9", "9"]')
    found = json.loads(matbench("blocks", path, "--size", "17", "--format", "json").stdout)[-1]
    assert (found["blocks"], found["unstamped_blocks"]) == (81, 0)


def test_a_wrong_kernel_is_not_clocked(matbench: Matbench) -> None:
    done = matbench("blocks", BAD_KERNELS / "bad-last-row-left-out.cu", "--size", "20", code=1)
    assert "wrong" in done.stdout
    assert "duration" not in done.stdout


def test_what_the_device_cannot_run_is_skipped(matbench: Matbench) -> None:
    said = matbench("blocks", "tiled", "--size", "20", "--tile", "4096").stdout
    assert "skipped: needs" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tile",), "did you mean"),
        (("numpy",), "it has no blocks"),
        (("tiled", "--size", "0"), "at least one row"),
        (("tiled", "--size", "64,128"), "one size at a time"),
        (("tiled", "--tile", "none"), "--tile 'none'"),
        (("thread-1d", "--tile", "8"), "thread-1d has no TILE"),
        (("tiled", "--set", "SIZE=8"), "no chosen kernel sweeps it"),
        (("tiled", "--timeline", "blocks.pdf"), "name ends in .svg, .png, .html"),
        (("tiled", "--timeline", "missing/blocks.svg"), "no folder missing"),
    ],
)
def test_bad_input_is_one_line(
    matbench: Matbench, arguments: tuple[str, ...], message: str
) -> None:
    done = matbench("blocks", *arguments, code=2)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("matbench")
    assert message in done.stderr


def test_a_sweep_keeps_the_imbalance_beside_the_median_block() -> None:
    shown = Outcome(
        kernel="k",
        sha256="",
        group="tutorial",
        params={"TILE": 8},
        problem=Problem(8, 8, 8),
        backend="cuda",
        device="d",
        device_kind="gpu",
        status="measured",
        median_ns=1e6,
        samples_ns=(1e6,) * 3,
        block_median_ns=1e4,
        block_imbalance=0.123,
    )
    table = report.text(report.outcome_report([shown], []), "csv")
    [row] = csv.DictReader(table.splitlines())
    assert row["block_imbalance"] == "0.123"
    assert "imbalance" in report.text(report.outcome_report([shown], []), "plain")
    unknown = msgspec.structs.replace(shown, block_imbalance=None)
    assert "imbalance" not in report.text(report.outcome_report([unknown], []), "plain")
