"""Tables of outcomes: sections, rows and notes, and what they omit."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import any_record
from support.tables import (
    GPU,
    H200,
    MIXED,
    environment,
    hot,
    line_of,
    made,
    on_h200,
    outcome,
    perturbed,
    rows,
    shown,
    timing,
)

from matbench.analysis import repetitions
from matbench.analysis.ranking import Ranked
from matbench.model import Conditions, DeviceInfo, Inputs, Problem, Skip
from matbench.records import resuming
from matbench.records.outcome import Accuracy, Claims, Outcome, Sustained
from matbench.show import outcomes
from matbench.show.formats import text
from matbench.show.table import Section

NO = Skip("unavailable", "no")


def titles(section: Section) -> list[str]:
    return [column.title for column in section.columns]


@given(
    found=st.lists(any_record.outcomes(), max_size=4), width=st.sampled_from((None, 120, 40, 10))
)
def test_whatever_the_outcomes_the_best_was_measured_on_that_device(
    found: list[Outcome], width: int | None
) -> None:
    table = outcomes.report(found, [])
    for ranked in table.rows():
        assert isinstance(ranked, Ranked)
        if ranked.best or ranked.times_slowest is not None:
            assert ranked.outcome.status == "measured"
            assert ranked.outcome.median_ns is not None
            assert ranked.outcome.median_ns > 0
    kept = repetitions.merged(resuming.without_retried(found))
    measured = sum(one.status == "measured" for one in kept)
    assert table.footer.startswith("no" if not found else str(measured))
    shown(table, width)
    shown(outcomes.report(found, [], fastest=True), 40)


# Sections


def test_every_section_names_its_device_and_says_when_it_is_a_cpu() -> None:
    for page in (shown(made(*MIXED)), text(made(*MIXED), "plain")):
        gpu, cpu = page.index("cuda · A GPU"), page.index("opencl · A Processor")
        baselines = page.index("baselines on the CPU · host · A Processor")
        assert gpu < cpu < baselines
        assert "driver 580.1 · CUDA 13.0" in page[gpu:cpu]
        assert "CPU timings" not in page[gpu:cpu]
        assert "driver 2026.1 · OpenCL C 3.0" in page[cpu:baselines]
        assert page.count("CPU timings: measured on a processor, not on a GPU") == 2


def test_environments_that_differ_are_told() -> None:
    other = environment(
        host="elsewhere", devices=(DeviceInfo("cuda", 0, "A GPU", "gpu", "590.2", "CUDA 14.0", {}),)
    )
    page = shown(outcomes.report([outcome("x", 1, GPU)], [environment(), other]))
    assert "driver 580.1 · CUDA 13.0 / driver 590.2 · CUDA 14.0" in page
    assert "from several hosts: host / elsewhere" in page


def test_rows_are_sorted_by_speed_within_each_size() -> None:
    page = shown(made(*MIXED))
    cpu = page[page.index("A Processor") : page.index("baselines")]
    order = [
        "size 65x31x129", "odd", "size 256", "small", "size 1000", "fast ★", "slow",
        "wrong-one", "broken", "missing",
    ]  # fmt: skip
    places = [re.search(rf"^{re.escape(word)}", cpu, re.MULTILINE) for word in order]
    starts = [place.start() for place in places if place]
    assert len(starts) == len(order)
    assert starts == sorted(starts)


def test_other_inputs_are_another_group() -> None:
    signed = Problem(1000, 1000, 1000, "signed")
    table = made(outcome("a", 1), outcome("b", 2, problem=signed))
    titles = [group.title for group in table.sections[0].groups]
    assert titles == ["size 1000", "size 1000, signed inputs"]
    assert [row["best"] for row in rows(table)] == ["true", "true"]


def test_the_footer_counts() -> None:
    for fmt in ("plain", "github", "grid", "rst"):
        assert text(made(*MIXED), fmt).endswith("7 measured, 1 wrong, 1 failed, 1 skipped")
    assert shown(made(*MIXED)).endswith("7 measured, 1 wrong, 1 failed, 1 skipped")
    assert text(made(), "plain") == shown(made()) == "no outcomes"


def test_a_failure_that_was_tried_anew_is_one_row() -> None:
    table = made(outcome("x", status="failed", reason="killed"), outcome("x", 2))
    assert table.footer == "1 measured, 0 wrong, 0 failed, 0 skipped"
    assert "an earlier attempt failed: killed" in text(table, "plain")
    assert len(json.loads(text(table, "json"))) == 3  # the records, as they are


def test_the_fastest_parameters_of_each_kernel() -> None:
    found = [
        *(outcome("tiled", ms, params={"TILE": tile}) for tile, ms in ((8, 3), (16, 1), (32, 2))),
        outcome("tiled", status="skipped", skip=NO, params={"TILE": 64}),
        outcome("other", 4),
        outcome("never", status="skipped", skip=NO),
    ]
    table = outcomes.report(found, [environment()], fastest=True)
    assert [(row["kernel"], row["params"]) for row in rows(table)] == [
        ("tiled", "TILE=16"), ("other", "TILE=16"), ("never", "TILE=16"),
    ]  # fmt: skip
    assert len(json.loads(text(table, "json"))) == 4
    assert table.footer == (
        "4 measured, 0 wrong, 0 failed, 2 skipped; 3 shown: each kernel at its fastest parameters"
    )


# Rows


def test_only_what_was_measured_has_a_time_and_ranks() -> None:
    page = shown(made(*MIXED))
    assert "★" not in line_of(page, "wrong-one")
    assert " ms" not in line_of(page, "wrong-one")  # no matter how fast it was
    assert "wrong: last column: expected 1, found 2" in line_of(page, "wrong-one")


def test_a_time_says_that_a_case_was_measured() -> None:
    page = shown(made(outcome("a", 1), outcome("b", 2)))
    assert "status" not in page
    assert line_of(page, "a ★").endswith("2.00×")
    untimed = shown(made(outcome("untimed", accuracy=Accuracy(1e-6, 1e-7, 0.1))))
    assert line_of(untimed, "untimed").endswith("measured")


def test_rows_with_claims_are_a_group_of_their_own() -> None:
    split = (Claims(error_constant=8.0), Claims(error_constant=16.0))
    never = Skip("condition", "N <= 8")
    table = made(
        outcome("a", 4), outcome("b", 8), outcome("narrow", 1, precision="tf32"),
        *(outcome(f"split-{n}", n, claims=one) for n, one in enumerate(split, 2)),
        outcome("never", status="skipped", skip=never, claims=Claims(where=("N <= 8",))),
        outcome("bad", status="wrong", reason="no", precision="tf32"),
    )  # fmt: skip
    groups = {
        group.title: [row.cells[0] for row in group.rows] for group in table.sections[0].groups
    }
    assert groups == {
        "size 1000": ["a ★", "b", "bad", "never"],
        "size 1000, with claims": ["narrow ☆", "split-2", "split-3"],
    }
    page = shown(table)
    assert line_of(page, "narrow").endswith("¹")
    assert line_of(page, "bad", "wrong: no").endswith("¹")
    assert line_of(page, "never").endswith("needs N <= 8")
    assert "¹ claims: inputs rounded to tf32" in page
    assert "² claims: each product may be off by 8·2⁻²⁴" in page
    assert "³ claims: each product may be off by 16·2⁻²⁴" in page, (
        "what one claims is not another's"
    )
    plain = text(table, "plain")
    assert line_of(plain, "a ★").startswith("1000 ")
    assert line_of(plain, "narrow").startswith("1000, with claims ")
    found = {row["kernel"]: row for row in rows(table)}
    assert [name for name, row in found.items() if row["best"] == "true"] == ["a"]
    assert found["a"]["claims"] == ""
    assert found["split-2"]["claims"] == "each product may be off by 8·2⁻²⁴"
    assert [found[name]["times_slowest"] for name in ("a", "narrow")] == ["2.0", "3.0"]


def test_float64_results_are_a_group_of_their_own() -> None:
    wide = Claims(precision="float64", result="float64")
    odd = Claims(precision="float64", result="float64", accumulator="float32")
    table = made(
        outcome("a", 4), outcome("a-64", 5, claims=wide), outcome("b-64", 9, claims=wide),
        outcome("b", 8), outcome("odd-64", 1, claims=odd), outcome("narrow", 1, precision="tf32"),
        outcome("bad-64", status="wrong", reason="no", claims=wide),
    )  # fmt: skip
    groups = {
        group.title: [row.cells[0] for row in group.rows] for group in table.sections[0].groups
    }
    assert groups == {
        "size 1000": ["a ★", "b", "bad-64"],
        "size 1000, float64": ["a-64 ★", "b-64"],
        "size 1000, with claims": ["narrow"],
        "size 1000, float64, with claims": ["odd-64"],
    }


def test_what_cannot_be_told_apart_shares_the_star() -> None:
    """On a CPU, a single round of samples tells no difference below a quarter."""
    table = made(outcome("a", 4), outcome("b", 4.5), outcome("c", 8))
    assert "4.500 ms" in line_of(shown(table), "b ★")
    assert [row["best"] for row in rows(table)] == ["true", "true", "false"]
    apart = made(outcome("a", 4, GPU), outcome("b", 4.5, GPU))
    assert [row["best"] for row in rows(apart)] == ["true", "false"]


def test_a_star_needs_rivals() -> None:
    alone = made(outcome("a", 1), outcome("b", 2, problem=Problem(64, 64, 64)))
    assert "★" not in shown(alone)
    assert "× slowest" not in shown(alone)
    assert [row["best"] for row in rows(alone)] == ["true", "true"]


def test_reasons_are_whole_and_a_long_one_stands_below() -> None:
    for page in (shown(made(*MIXED)), text(made(*MIXED), "plain")):
        assert "skipped: needs TILE * TILE <= 64 (TILE = 16)" in line_of(page, "missing")
        assert line_of(page, "broken", "failed: ").endswith("broken.cu:3: error: no || here¹")
        below = page.index("\n¹ broken.cu:3: error: no || here\n")
        assert re.match(r"\n¹ .*\n +x = y\n +\^\n", page[below:])


def test_what_no_size_could_run_is_one_row() -> None:
    def skipped(size: int, name: str = "big", **changes: Any) -> Outcome:
        skip = Skip("condition", "N <= 64", {"N": size})
        at = Problem(size, size, size)
        said: dict[str, Any] = {"status": "skipped", "skip": skip, "problem": at}
        return outcome(name, **(said | changes))

    sizes = (100, 200, 300)
    ran = [
        outcome(name, ms, problem=Problem(n, n, n))
        for n in sizes
        for name, ms in (("a", 1), ("b", 2))
    ]
    never = [skipped(size) for size in sizes]
    twice = [skipped(size, "most") for size in sizes[1:]]
    once = skipped(300, "once")
    crashed = [
        skipped(n, "bad", status="failed", skip=None, reason=f"killed by {n}") for n in sizes[:2]
    ]
    table = made(*ran, *never, *twice, once, *crashed)
    groups = {
        group.title: [row.cells[0] for row in group.rows] for group in table.sections[0].groups
    }
    assert groups == {
        "size 100": ["a ★", "b", "bad"],
        "size 200": ["a ★", "b", "bad"],
        "size 300": ["a ★", "b", "once"],
        "no result at any size": ["big"],
        "no result at 200, 300": ["most"],
    }
    page = shown(table)
    assert "skipped: needs N <= 64 (N = 100…300)" in line_of(page, "big")
    plain = text(table, "plain")
    assert line_of(plain, "big").startswith("all ")
    assert line_of(plain, "most").startswith("200, 300 ")
    assert len(rows(table)) == 14
    told = [row["reason"] for row in rows(table) if row["kernel"] == "once"]
    assert told == ["needs N <= 64 (N = 300)"]
    assert table.footer == "6 measured, 0 wrong, 2 failed, 6 skipped"


def test_a_failure_that_is_the_same_at_all_sizes_is_one_row() -> None:
    error = "x.cu:1: error: no\n  x"
    found = [
        outcome("x", status="failed", reason=error, problem=Problem(n, n, n)) for n in (64, 128)
    ]
    page = shown(made(*found))
    assert page.count("failed: x.cu:1") == 1
    assert "no result at any size" in page


def test_numbers_in_their_forms() -> None:
    (row, _) = (
        made(outcome("a", 10), outcome("b", 20, params={}, accuracy=Accuracy(0.0, 0.0, 12.0)))
        .sections[0]
        .rows
    )
    assert row.cells == (
        "a ★", "TILE=16", "10.00 ms", "1.0%", "1.000 ms", "200", "2.00×", "2.2e-6", "3.4e-7", "31%",
    )  # fmt: skip
    exact = outcome("x", 1, accuracy=Accuracy(0.0, 0.0, 12.0), interval_ns=(1e6, 1e6))
    cells = made(exact).sections[0].rows[0].cells
    assert (cells[3], *cells[-3:]) == ("0.0%", "0", "0", "12.00×")
    without = made(outcome("x", 1, interval_ns=None)).sections[0].rows[0]
    assert without.cells[3] == "5.0%"  # half the middle half of 0.9, 1.0, 1.1


def test_what_nothing_is_known_of_has_no_column() -> None:
    unchecked = outcome("x", accuracy=Accuracy(1e-6, 1e-7, None))
    table = made(unchecked, outcome("y", status="skipped", skip=NO))
    assert titles(table.sections[0]) == ["kernel", "max rel err", "avg rel err"]
    assert "parameters: TILE=16" in table.sections[0].heading
    assert "★" not in shown(table)
    assert "per block" not in shown(made(outcome("x", 1, blocks=None)))


def test_what_nobody_knows_is_no_column_and_the_first_to_go() -> None:
    assert "% of" not in shown(made(*MIXED))
    table = outcomes.report(
        [on_h200("mine", 0.5), on_h200("cublas", 0.4, params={}, group="baseline")],
        [environment(devices=(H200,))],
    )
    wide = shown(table)
    assert re.search(r"mine .* 80\.0% +6\.0%", wide)
    assert "% of cuBLAS" in wide
    assert "% of limit" in wide
    narrow = shown(table, 80)
    assert "% of limit" not in narrow
    assert "TFLOP/s" in narrow


def test_bytes_are_compared_with_the_copy() -> None:
    dot = Problem(1, 2**28, 1, inputs="ramp", workload="dot")
    found = on_h200("dot", 1, problem=dot, copy_bytes_per_s=4.3e12)
    page = shown(outcomes.report([found], [environment(devices=(H200,))]))
    assert "% of copy" in page
    assert "dot: dot product c = Σ aᵢ·bᵢ; B/s counts each input once and the result" in page
    unknown = outcomes.report([on_h200("dot", 1, problem=dot)], [environment()])
    assert "% of" not in shown(unknown)


# Cold and hot


def test_cold_and_hot_samples_rank_apart() -> None:
    table = made(outcome("cold", 3), hot("hot", 1), outcome("colder", 6))
    found = {row["kernel"]: row for row in rows(table)}
    assert [found[name]["times_slowest"] for name in ("cold", "hot", "colder")] == [
        "2.0", "1.0", "1.0",
    ]  # fmt: skip
    assert "cold and hot samples, ranked separately" in shown(table)
    assert "cold samples: the cache is overwritten before each" in shown(made(outcome("one", 1)))
    assert "hot samples: the cache is not overwritten" in shown(made(hot("one", 1)))


def test_hot_samples_beside_cold_ones_say_what_is_wrong_with_them() -> None:
    """Their notes, conditions and settled mark, as for the cold ones."""
    beside = timing(
        0.5,
        settled=False,
        stopped="time is up",
        notes=("clocks throttled during sampling: SwPowerCap",),
        conditions=tuple(Conditions(sm_mhz=clock) for clock in (345, 1200, 1210)),
    )
    both = on_h200("both", 1, cold=timing(1), hot=beside)
    table = outcomes.report([both, on_h200("other", 2)], [environment(devices=(H200,))])
    page = shown(table)
    assert line_of(page, "both ★").endswith("¹ ²")
    assert "¹ hot samples: not settled: time is up" in page
    assert "² hot samples: clocks throttled during sampling: SwPowerCap" in page
    assert "SM clock held: 1,980 MHz, hot: 1,205 MHz" in page
    assert "before each; hot: the cache is not overwritten" in page
    assert re.search(r"both ★ .* 500\.0 µs +1\.0% ", page)
    row = next(row for row in rows(table) if row["kernel"] == "both")
    assert (row["timing_mode"], row["hot_median_ns"], row["hot_samples"]) == (
        "cold", "500000.0", "3",
    )  # fmt: skip
    assert (row["hot_settled"], row["hot_stopped"]) == ("false", "time is up")
    assert row["hot_notes"] == "clocks throttled during sampling: SwPowerCap"
    assert row["notes"] == ""


def test_load_of_the_host_is_that_of_cold_and_hot_samples() -> None:
    """At the start: later, the kernel itself is a load."""
    busy, calm = (
        timing(1, conditions=tuple(Conditions(load=load, governor="powersave") for load in loads))
        for loads in ((3.2, 9.9), (0.4, 9.9))
    )
    page = shown(made(outcome("x", 1, cold=calm, hot=busy)))
    assert "load average 0.4 to 3.2 · frequency governor powersave" in page


# Notes


def test_on_a_cpu_a_doubt_is_marked_where_it_leaves_open_which_is_fastest() -> None:
    """What is usual there is said once, above the table; programs get every doubt."""
    drift = tuple(5e6 * (0.8 + n / 100) for n in range(40))
    wide: dict[str, Any] = {"settled": False, "stopped": "time is up"}
    doubtful = [
        outcome("alone", 1, problem=Problem(8, 8, 8), **wide),
        outcome("first", 1, interval_ns=(0.9e6, 1.1e6), **wide),
        outcome("near", 1.15, interval_ns=(1.0e6, 1.3e6), **wide),
        outcome("clear", 4, interval_ns=(3.9e6, 4.1e6), **wide),
        outcome("drifts", 5, cold=timing(5, samples_ns=drift, interval_ns=(4.9e6, 5.1e6))),
        outcome("steady", 6),
    ]
    page = shown(made(*doubtful))
    assert page.count("5 of 6 times are unsteady or did not settle") == 1
    marked = re.findall(r"^(\w+) .* ¹$", page.replace("★", " "), re.MULTILINE)
    assert marked == ["first", "near"]
    assert "drifting" not in page
    assert [row["notes"][:8] for row in rows(made(*doubtful)) if row["kernel"] == "drifts"] == [
        "drifting"
    ]
    fast = outcome("fast", 3.9, interval_ns=(3.8e6, 4.0e6))  # the drift of 31% reaches it
    alone = msgspec.structs.replace(doubtful[4].case, problem=Problem(9, 9, 9))
    page = shown(made(fast, doubtful[4], msgspec.structs.replace(doubtful[4], case=alone)))
    assert len(re.findall(r"^drifts .* ¹$", page.replace("★", " "), re.MULTILINE)) == 2
    lead = outcome("fast", 1, interval_ns=(0.9e6, 1.1e6), **wide), outcome("slow", 4, **wide)
    assert "¹" not in shown(made(*lead))
    on_gpu = shown(made(*(outcome(f"k{n}", 1 + 3 * n, GPU, **wide) for n in range(3))))
    assert "usual on a CPU" not in on_gpu
    assert len(re.findall(r"^k\d .* ¹$", on_gpu.replace("★", " "), re.MULTILINE)) == 3
    assert "usual on a CPU" not in shown(made(outcome("a", 1), outcome("b", 2)))


def test_notes_are_footnotes_and_the_same_note_is_one() -> None:
    page = shown(
        made(
            outcome("a", 1, GPU, notes=("samples drift",)),
            outcome("b", 2, GPU, settled=False, stopped="time is up", notes=("samples drift",)),
            perturbed("c", 3, 0.082, GPU),
            perturbed("d", 4, 0.05, GPU),
        )
    )
    assert line_of(page, "a ★").endswith("¹")
    assert re.search(r"^b .*¹ ²$", page, re.MULTILINE)
    assert re.search(r"^c .*≈ 300.0 µs .*×$", page, re.MULTILINE)
    assert re.search(r"^d .* 400.0 µs .*×$", page, re.MULTILINE)
    assert page.count("samples drift") == 1
    assert "² not settled: time is up" in page
    slowed = "≈ per block: reading the clock slowed the launch by more than 5% (8.2% at worst)"
    assert slowed in page


def test_patterns_in_samples_are_notes_of_tables_but_not_of_records() -> None:
    """They follow from the samples; a drift of 4% matters, one of 0.6% does not."""
    drifting, steady = (
        timing(
            1,
            samples_ns=tuple(1e6 * (1 + slope * i) for i in range(30)),
            interval_ns=(1e6, 1.002e6),
            notes=("mine",),
        )
        for slope in (0.002, 0.0003)
    )
    said = "drifting: +4.0% from the first to the last third of the samples"
    table = made(outcome("a", 1, cold=steady, hot=drifting), outcome("b", 2, cold=drifting))
    below = shown(table)
    assert said in below
    assert f"hot samples: {said}" in below
    a, b = sorted(rows(table), key=lambda row: row["kernel"])
    both = f"{said}; mine"
    assert (a["notes"], a["hot_notes"], b["notes"]) == ("mine", both, both)
    assert "drifting" not in text(table, "json")


LASTING = Sustained(
    blocks_ns=(2e6, 2.2e6), mean_ns=2.1e6, launches=100, duration_s=10.04, warm_up_s=4, steady=True,
    sm_mhz=1332.4, temperature_c=61, power_w=697.6, idle_w=124.2,
)  # fmt: skip


def test_sustained_speed_has_columns_beside_the_cold_time() -> None:
    large = Problem(4096, 4096, 4096)
    fields = {"steady": False, "throttled": ("SwPowerCap",), "power_w": None, "idle_w": None}
    unsteady = msgspec.structs.replace(LASTING, **fields)
    table = made(
        on_h200("bf16-wgmma", 1.0, sustained=LASTING, problem=large),
        on_h200("mine", 1.5, sustained=unsteady, problem=large),
        on_h200("other", 1.7, problem=large),
    )
    printed = shown(table)
    assert "back to back, 10 s in all; the idle device takes 124 W, which is not" in printed
    first, second = (line_of(printed, name).split() for name in ("bf16", "mine"))
    rate = f"{2 * 4096**3 / 2.1e6 / 1e3:.1f}"
    joules = f"{697.6 * 2.1e-3:.2f}"
    per_joule = f"{2 * 4096**3 / (697.6 * 2.1e-3) / 1e9:.1f}"
    at = first.index(rate)
    assert first[at : at + 5] == [rate, "1,332", "698", joules, per_joule]
    at = second.index(rate)
    assert second[at : at + 5] == [rate, "1,332", "–", "–", "–"]
    assert "sustained: the device was not steady" in printed
    assert "sustained: clocks throttled: SwPowerCap" in printed
    assert "GFLOP/J" in printed
    row, *_ = csv.DictReader(io.StringIO(text(table, "csv")))
    assert float(row["sustained_ns"]) == 2.1e6
    assert float(row["sustained_energy_j"]) == pytest.approx(697.6 * 2.1e-3)
    assert (row["sustained_power_w"], row["sustained_idle_w"], row["sustained_steady"]) == (
        "697.6",
        "124.2",
        "true",
    )
    assert float(row["sustained_work_per_j"]) == pytest.approx(2 * 4096**3 / (697.6 * 2.1e-3))


def test_a_note_says_when_speed_depends_on_inputs() -> None:
    def at(inputs: Inputs, ms: float) -> Outcome:
        return on_h200("mine", ms, problem=Problem(64, 64, 64, inputs=inputs))

    printed = shown(made(at("uniform", 1.0), at("normal", 1.5)))
    assert "with uniform inputs: 1.50 × faster" in printed
    assert "uniform inputs" not in shown(made(at("uniform", 1.0), at("normal", 1.01)))
