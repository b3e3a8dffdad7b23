"""Tables: what ranks, what each format says, and what stays when a terminal is narrow."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from test_results import ENVIRONMENT, any_numbers, outcomes

from matbench.model import Conditions, DeviceInfo, Environment, Outcome, Problem
from matbench.records import results
from matbench.show import report
from matbench.show.report import ComparisonRow, Report

CPU = DeviceInfo(
    backend="opencl",
    index=0,
    name="A Processor",
    kind="cpu",
    driver="2026.1",
    toolkit="OpenCL C 3.0",
    limits={},
)
GPU = DeviceInfo(
    backend="cuda",
    index=0,
    name="A GPU",
    kind="gpu",
    driver="580.1",
    toolkit="CUDA 13.0",
    limits={},
)


def environment(**changes: Any) -> Environment:
    return Environment(
        **{name: getattr(ENVIRONMENT, name) for name in Environment.__struct_fields__}
        | {"devices": (CPU, GPU)}
        | changes
    )


def outcome(kernel: str, ms: float | None = None, device: DeviceInfo = CPU, **changes: Any) -> Any:
    values: dict[str, Any] = {
        "kernel": kernel,
        "sha256": "0" * 64,
        "group": "tutorial",
        "params": {"TILE": 16},
        "problem": Problem(1000, 1000, 1000),
        "backend": device.backend,
        "device": device.name,
        "device_kind": device.kind,
        "status": "measured",
    }
    if ms is not None:
        values |= {
            "samples_ns": (ms * 0.9e6, ms * 1e6, ms * 1.1e6),
            "median_ns": ms * 1e6,
            "interval_ns": (ms * 0.99e6, ms * 1.01e6),
            "timing_mode": "cold",
            "settled": True,
            "max_rel_err": 2.2e-6,
            "avg_rel_err": 3.4e-7,
            "bound_ratio": 0.31,
            "block_median_ns": ms * 1e5,
            "block_perturbation": 0.001,
        }
    return Outcome(**(values | changes))


def made(*found: Outcome) -> Report:
    return report.outcome_report(found, [environment()])


def rows(table: Report) -> list[dict[str, str]]:
    """The rows of the CSV."""
    return list(csv.DictReader(io.StringIO(report.text(table, "csv"))))


def shown(table: Report, width: int | None = None) -> str:
    """What a terminal shows, in lines that end where their text does."""
    console = Console(width=width or 10_000, file=io.StringIO(), highlight=False)
    with console.capture() as capture:
        for part in report.renderables(table, width):
            console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def line_of(text: str, *words: str) -> str:
    found = [line for line in text.splitlines() if all(word in line for word in words)]
    assert len(found) == 1, (words, found)
    return found[0]


MIXED = (
    outcome("slow", 40),
    outcome("wrong-one", 1, status="wrong", reason="last column: expected 1, found 2"),
    outcome("fast", 10),
    outcome("missing", status="skipped", reason="needs TILE * TILE <= 64 (TILE = 16)"),
    outcome("broken", status="failed", reason="broken.cu:3: error: no || here\n    x = y\n    ^"),
    outcome("small", 0.25, problem=Problem(256, 256, 256)),
    outcome("odd", 2, problem=Problem(65, 31, 129)),
    outcome("tiled", 0.5, GPU),
    outcome("naive", 0.4, GPU),
    outcome("numpy", 9, group="baseline", backend="host"),
)


H200 = msgspec.structs.replace(
    GPU, name="An H200", compute_capability=(9, 0), limits={"multiprocessors": 132}
)


def on_h200(kernel: str, ms: float, mhz: int = 1980, **changes: Any) -> Any:
    conditions = tuple(Conditions(sm_mhz=clock) for clock in (345, mhz, mhz))
    return outcome(kernel, ms, H200, **({"conditions": conditions} | changes))


def shares(*found: Outcome) -> dict[str, tuple[float | None, float | None]]:
    """Each kernel's share of cuBLAS's speed and of the limit."""
    table = report.outcome_report(found, [environment(devices=(H200,))])
    return {
        row["kernel"]: (float(row["of_cublas"] or "nan"), float(row["of_limit"] or "nan"))
        for row in rows(table)
    }


# Against cuBLAS and the device's limits


def test_each_kernel_against_the_product_of_cublas_in_its_precision() -> None:
    found = shares(
        on_h200("mine", 0.5), on_h200("cublas", 0.4, group="baseline"),
        on_h200("mine-tf32", 0.3, precision="tf32"),
        on_h200("cublas-tf32", 0.15, group="baseline", precision="tf32"),
        on_h200("mine-bf16", 0.1, precision="bfloat16"),
        on_h200("mine-fp16", 0.1, precision="float16"),
        on_h200("elsewhere", 0.5, problem=Problem(1000, 1000, 8)),
        on_h200("hot", 0.5, timing_mode="hot"),
    )  # fmt: skip
    assert found["mine"][0] == pytest.approx(0.8)
    assert found["cublas"][0] == found["cublas-tf32"][0] == 1
    assert found["mine-tf32"][0] == pytest.approx(0.5)
    for name in ("mine-bf16", "mine-fp16", "elsewhere", "hot"):
        assert math.isnan(found[name][0])


def test_a_dot_product_against_that_of_cublas() -> None:
    dot = Problem(1, 2**20, 1, inputs="ramp", workload="dot")
    found = shares(
        on_h200("mine", 0.5, problem=dot, copy_bytes_per_s=2 * 8 * 2**20 / 0.5e-3),
        on_h200("cublas-dot", 0.4, problem=dot, group="baseline"),
        on_h200("cublas", 0.1, group="baseline"),
    )
    assert found["mine"] == pytest.approx((0.8, 0.5), rel=1e-5)


def test_a_wrong_or_failed_cublas_is_no_measure() -> None:
    wrong = on_h200("cublas", 0.4, status="wrong", reason="determinism: no")
    assert math.isnan(shares(wrong, on_h200("mine", 0.5))["mine"][0])
    assert "% of cuBLAS" not in shown(made(wrong, on_h200("mine", 0.5)))


def test_the_limit_is_that_of_the_unit_at_the_clock_that_was_held() -> None:
    found = shares(
        on_h200("plain", 1), on_h200("slowed", 1, 990), on_h200("tensor", 1, precision="bfloat16"),
        on_h200("stamped", 1, conditions=(), sm_mhz=1980.0), on_h200("untold", 1, conditions=()),
    )  # fmt: skip
    limit = 132 * 128 * 2 * 1.98e9
    assert found["plain"][1] == pytest.approx(2e9 / 1e-3 / limit)
    assert found["slowed"][1] == pytest.approx(2 * found["plain"][1])
    assert found["tensor"][1] == pytest.approx(found["plain"][1] / 16)
    assert found["stamped"] == pytest.approx(found["plain"], nan_ok=True)
    assert math.isnan(found["untold"][1])


def test_what_nobody_knows_is_no_column_and_the_first_to_go() -> None:
    plain = shown(made(*MIXED))
    assert "% of" not in plain
    told = report.outcome_report(
        [on_h200("mine", 0.5), on_h200("cublas", 0.4)], [environment(devices=(H200,))]
    )
    wide = shown(told)
    assert re.search(r"mine .* 80\.0% +6\.0%", wide)
    assert "% of cuBLAS" in wide and "% of limit" in wide
    narrow = shown(told, 100)
    assert "% of limit" not in narrow
    assert "max rel err" in narrow


def test_bytes_are_held_against_the_copy() -> None:
    dot = Problem(1, 2**28, 1, inputs="ramp", workload="dot")
    found = on_h200("dot", 1, problem=dot, copy_bytes_per_s=4.3e12)
    table = report.outcome_report([found], [environment(devices=(H200,))])
    assert "% of copy" in shown(table)
    assert float(rows(table)[0]["of_limit"]) == pytest.approx(2**31 / 1e-3 / 4.3e12, rel=1e-6)
    unknown = report.outcome_report([on_h200("dot", 1, problem=dot)], [environment()])
    assert "% of" not in shown(unknown)


def test_what_the_cache_holds_is_not_held_against_the_copy() -> None:
    """A copy of more than the cache is slower: a share of it would be above 100%."""
    cached = msgspec.structs.replace(CPU, properties={"last-level cache (bytes)": 2**28})

    def of_limit(N: int, mode: str = "hot") -> str:
        at = Problem(1, N, 1, inputs="ramp", workload="dot")
        found = outcome("dot", 0.1, problem=at, copy_bytes_per_s=4e10, timing_mode=mode)
        table = report.outcome_report([found], [environment(devices=(cached,))])
        return str(rows(table)[0]["of_limit"])

    assert of_limit(2**20) == ""
    assert float(of_limit(2**20, "cold")) == pytest.approx((2**23 + 4) / 1e-4 / 4e10)
    assert float(of_limit(2**26)) == pytest.approx((2**29 + 4) / 1e-4 / 4e10)


# What ranks


def test_only_what_was_measured_ranks() -> None:
    found = {row["kernel"]: row for row in rows(made(*MIXED))}
    assert found["fast"]["best"] == "true"
    assert found["fast"]["times_slowest"] == "4.0"
    assert found["slow"]["times_slowest"] == "1.0"
    for name in ("wrong-one", "missing", "broken"):
        assert found[name]["best"] == "false"
        assert found[name]["times_slowest"] == found[name]["gflops"] == ""
    text = shown(made(*MIXED))
    assert "★" not in line_of(text, "wrong-one")
    assert " ms" not in line_of(text, "wrong-one")  # however fast it was


@settings(max_examples=100, deadline=None)
@given(found=st.lists(outcomes(any_numbers), max_size=6))
def test_whatever_the_outcomes_the_best_was_measured_on_that_device(found: list[Outcome]) -> None:
    table = report.outcome_report(found, [])
    for ranked in table.rows:
        assert isinstance(ranked, report._Ranked)
        if ranked.best or ranked.times_slowest is not None:
            assert ranked.outcome.status == "measured"
            assert ranked.outcome.median_ns is not None
            assert ranked.outcome.median_ns > 0
    for section in table.sections:
        assert len({row.status for row in section.rows if row.best}) <= 1
    assert table.footer.startswith("no" if not found else str(len(_ranks(found))))
    for fmt in report.FORMATS:
        if fmt != "rich":
            report.text(table, fmt)
    for width in (None, 120, 40, 10):
        shown(table, width)


def _ranks(found: list[Outcome]) -> list[Outcome]:
    return [one for one in results.without_retried(found) if one.status == "measured"]


def test_cpu_and_gpu_never_share_a_ranking() -> None:
    twin = DeviceInfo("opencl", 1, "A Processor", "gpu", "1", "1", {})
    table = made(*MIXED, outcome("same-name", 0.001, twin), outcome("loop", 90, group="baseline"))
    assert [{row.cells[0].split()[0] for row in section.rows} for section in table.sections] == [
        {"naive", "tiled"},
        {"same-name"},
        {"slow", "wrong-one", "fast", "missing", "broken", "small", "odd"},
        {"numpy", "loop"},
    ]
    found = {row["kernel"]: row for row in rows(table)}
    assert [name for name in found if found[name]["best"] == "true"] == [
        "naive", "same-name", "odd", "small", "fast", "numpy",
    ]  # fmt: skip
    assert found["naive"]["times_slowest"] == "1.25"


def test_cold_and_hot_samples_rank_apart() -> None:
    table = made(outcome("cold", 3), outcome("hot", 1, timing_mode="hot"), outcome("colder", 6))
    found = {row["kernel"]: row for row in rows(table)}
    assert [found[name]["times_slowest"] for name in ("cold", "hot", "colder")] == [
        "2.0", "1.0", "1.0",
    ]  # fmt: skip
    assert "cold and hot samples, ranked apart" in shown(table)
    assert "cold samples" in shown(made(outcome("one", 1)))


def test_rows_are_sorted_by_speed_within_each_size() -> None:
    text = shown(made(*MIXED))
    cpu = text[text.index("A Processor") : text.index("baselines")]
    order = [
        "size 65x31x129", "odd ★", "size 256", "small ★", "size 1000", "fast ★", "slow",
        "wrong-one", "broken", "missing",
    ]  # fmt: skip
    places = [re.search(rf"^{word}\b|^{word}", cpu, re.MULTILINE) for word in order]
    starts = [place.start() for place in places if place]
    assert len(starts) == len(order)
    assert starts == sorted(starts)


def test_a_failure_that_was_tried_anew_is_one_row() -> None:
    table = made(outcome("x", status="failed", reason="killed"), outcome("x", 2))
    assert table.footer == "1 measured, 0 wrong, 0 failed, 0 skipped"
    assert "an earlier try failed: killed" in report.text(table, "plain")
    assert len(json.loads(report.text(table, "json"))) == 3  # the records, as they are


# What a table says


def test_every_section_names_its_device_and_says_when_it_is_a_cpu() -> None:
    for text in (shown(made(*MIXED)), report.text(made(*MIXED), "plain")):
        gpu, cpu = text.index("cuda · A GPU"), text.index("opencl · A Processor")
        baselines = text.index("baselines on the CPU · host · A Processor")
        assert gpu < cpu < baselines
        assert "driver 580.1 · CUDA 13.0" in text[gpu:cpu]
        assert "CPU timings" not in text[gpu:cpu]
        assert "driver 2026.1 · OpenCL C 3.0" in text[cpu:baselines]
        assert text.count("CPU timings: measured on a processor, not on a GPU") == 2


def test_environments_that_differ_are_told() -> None:
    other = environment(
        host="elsewhere", devices=(DeviceInfo("cuda", 0, "A GPU", "gpu", "590.2", "CUDA 14.0", {}),)
    )
    text = shown(report.outcome_report([outcome("x", 1, GPU)], [environment(), other]))
    assert "driver 580.1 · CUDA 13.0 / driver 590.2 · CUDA 14.0" in text
    assert "from several hosts: host / elsewhere" in text


def test_the_footer_counts() -> None:
    for fmt in ("plain", "github", "grid", "rst"):
        assert report.text(made(*MIXED), fmt).endswith("7 measured, 1 wrong, 1 failed, 1 skipped")
    assert shown(made(*MIXED)).endswith("7 measured, 1 wrong, 1 failed, 1 skipped")
    assert report.text(made(), "plain") == shown(made()) == "no outcomes"


def test_reasons_are_whole_and_a_long_one_stands_below() -> None:
    for text in (shown(made(*MIXED)), report.text(made(*MIXED), "plain")):
        assert "skipped: needs TILE * TILE <= 64 (TILE = 16)" in line_of(text, "missing")
        assert line_of(text, "broken", "failed: ").endswith("broken.cu:3: error: no || here¹")
        below = text.index("\n¹ broken.cu:3: error: no || here\n")
        assert re.match(r"\n¹ .*\n +x = y\n +\^\n", text[below:])


def test_notes_are_footnotes_and_the_same_note_is_one() -> None:
    drift: dict[str, Any] = {"notes": ("samples drift",)}
    text = shown(
        made(
            outcome("a", 1, **drift),
            outcome("b", 2, settled=False, stopped="time is up", **drift),
            outcome("c", 3, block_perturbation=0.082),
            outcome("d", 4, block_perturbation=0.05),
        )
    )
    assert line_of(text, "a ★").endswith("measured¹")
    assert re.search(r"^b .*measured¹ ²$", text, re.MULTILINE)
    assert re.search(r"^c .*≈ 300.0 µs .*measured$", text, re.MULTILINE)
    assert re.search(r"^d .*measured$", text, re.MULTILINE)
    assert text.count("samples drift") == 1
    assert "² not settled: time is up" in text
    assert "≈ per block: its clock slowed the launch by more than 5%, 8.2% at worst" in text


def test_a_mark_is_explained_where_it_is_seen() -> None:
    rows = [outcome(f"k{n}", n, block_perturbation=0.05 + n / 100) for n in (1, 2, 3)]
    table = made(*rows)
    for text in (shown(table), report.text(table, "plain"), report.text(table, "github")):
        assert text.count("more than 5%, 8.0% at worst") == 1
    narrow = shown(table, 60)
    assert "per block" not in narrow, "neither the column nor what its mark means"
    assert "more than 5%" not in shown(made(outcome("x", 1)))


def test_notes_that_differ_in_numbers_alone_are_one() -> None:
    texts = ["4 of 1,110 samples (up to 3.5)", "10 of 40 samples (up to 1.25)", "drift: -4.4%"]
    found = [outcome(f"k{n}", 1 + n, notes=(text,)) for n, text in enumerate(texts)]
    again = outcome("again", 9, notes=(*texts, "drift: -0.5%", "v1.2.3", "C#"))
    for text in (shown(made(*found, again)), report.text(made(*found, again), "plain")):
        assert "¹ 4…10 of 40…1,110 samples (up to 1.25…3.5)\n" in text
        assert "² drift: -4.4…-0.5%" in text
        assert line_of(text, "k1 ").rstrip().endswith("measured¹")
        assert line_of(text, "again").rstrip().endswith("measured¹ ² ³ ⁴")
    failed = [outcome("x", status="failed", reason=f"line {n}\nmore") for n in (1, 2)]
    for other in (outcome("y", status="failed", reason="#\nmore"), *failed):
        assert other.reason in report.text(made(*failed[1:], other), "plain")


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        ([0.0000005], ["0.000500 µs"]),
        ([0.00001241], ["0.0124 µs"]),
        ([0.000802, 0.0010315], ["0.802 µs", "1.032 µs"]),
        ([0.0125, 0.025], ["12.50 µs", "25.00 µs"]),
        ([0.2561, 0.4989], ["256.1 µs", "498.9 µs"]),
        ([9.612, 90], ["9.612 ms", "90.000 ms"]),
        ([9.612, 1523], ["9.61 ms", "1523.00 ms"]),
        ([1234.5], ["1.234 s"]),
    ],
)
def test_times_have_one_unit_in_a_size(ms: list[float], expected: list[str]) -> None:
    table = made(*(outcome(f"k{index}", time) for index, time in enumerate(ms)))
    assert [row.cells[2] for row in table.sections[0].rows] == expected


def test_speed_has_one_unit_in_a_section() -> None:
    slow = made(outcome("a", 27.03), outcome("b", 15000))
    fast = made(outcome("a", 0.256, GPU), outcome("b", 0.382, GPU))
    assert "GFLOP/s" in shown(slow)
    assert [row.cells[5] for row in slow.sections[0].rows] == ["73.992", "0.133"]
    assert "TFLOP/s" in shown(fast)
    assert [row.cells[5] for row in fast.sections[0].rows] == ["7.81", "5.24"]


def test_numbers_in_their_forms() -> None:
    cells = dict(
        zip(
            ("kernel", "params", "time", "±", "block", "speed", "×", "max", "avg", "bound"),
            made(outcome("a", 10), outcome("b", 20)).sections[0].rows[0].cells,
            strict=True,
        )
    )
    assert cells["±"] == "1.0%"
    assert (cells["×"], cells["max"], cells["avg"]) == ("2.00×", "2.2e-6", "3.4e-7")
    assert cells["bound"] == "31%"
    exact = outcome("x", 1, max_rel_err=0.0, bound_ratio=12.0, interval_ns=(1e6, 1e6))
    (row,) = made(exact).sections[0].rows
    assert (row.cells[3], row.cells[7], row.cells[9]) == ("0.0%", "0", "12.00×")
    without = made(outcome("x", 1, interval_ns=None)).sections[0].rows[0]
    assert without.cells[3] == "5.0%"  # half the middle half of 0.9, 1.0, 1.1


def test_what_nothing_is_known_of_has_no_column() -> None:
    unchecked = outcome("x", max_rel_err=1e-6, avg_rel_err=1e-7)
    table = made(unchecked, outcome("y", status="skipped", reason="no"))
    assert [column.title for column in table.sections[0].columns] == [
        "kernel", "parameters", "max rel err", "avg rel err",
    ]  # fmt: skip
    assert "★" not in shown(table)
    assert "per block" not in shown(made(outcome("x", 1, block_median_ns=None)))


def test_other_inputs_are_another_group() -> None:
    signed = Problem(1000, 1000, 1000, "signed")
    table = made(outcome("a", 1), outcome("b", 2, problem=signed))
    assert [group.title for group in table.sections[0].groups] == ["1000", "1000, signed inputs"]
    assert [row["best"] for row in rows(table)] == ["true", "true"]


# Formats


def test_csv_holds_the_numbers_as_they_are() -> None:
    precise = outcome("x", 1, median_ns=1234567.891, notes=("one", "two"), settled=False)
    (row,) = rows(made(precise))
    assert float(row["median_ns"]) == 1234567.891
    assert float(row["gflops"]) == 2e9 / 1234567.891
    assert (row["interval_low_ns"], row["interval_high_ns"]) == ("990000.0", "1010000.0")
    assert (row["size"], row["M"], row["N"], row["K"]) == ("1000", "1000", "1000", "1000")
    assert (row["backend"], row["device"], row["device_kind"]) == ("opencl", "A Processor", "cpu")
    assert (row["params"], row["samples"], row["settled"]) == ("TILE=16", "3", "false")
    assert row["notes"] == "one; two"
    broken = next(row for row in rows(made(*MIXED)) if row["kernel"] == "broken")
    assert broken["reason"] == MIXED[4].reason
    assert broken["median_ns"] == ""
    assert rows(made()) == []


def test_json_is_the_records() -> None:
    found = json.loads(report.text(made(*MIXED), "json"))
    assert found == json.loads(results.to_json([environment()], MIXED))
    assert [one["type"] for one in found] == ["environment"] + ["outcome"] * len(MIXED)


@pytest.mark.parametrize("fmt", [fmt for fmt in report.FORMATS if fmt not in ("rich", "json")])
def test_every_format_holds_every_row(fmt: str) -> None:
    text = report.text(made(*MIXED), fmt)
    for one in MIXED:
        assert one.kernel in text
    for size in ("1000", "256", "65x31x129"):
        assert size in text


def test_github_rows_have_the_cells_of_their_header() -> None:
    evil = outcome(
        "a|b", 1, params={"A|B": 1}, settled=False, stopped="[x](http://y) <b> __z__ `w` a*b*c"
    )
    text = report.text(made(*MIXED, evil), "github")
    cells = [
        len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")
    ]
    assert len(set(cells)) <= len(made(*MIXED, evil).sections)
    assert r"a\|b" in text
    assert r"\[x\](http://y) &lt;b> \_\_z\_\_ \`w\` a\*b\*c" in text
    assert "max_threads_per_block" in report.text(
        made(outcome("x", status="skipped", reason="needs max_threads_per_block")), "github"
    )


def test_markup_of_a_record_stays_text() -> None:
    evil = outcome("<script>", 1, reason="x", params={}, status="failed", device=CPU)
    page = report.text(made(evil), "html")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    named = outcome("[red]x[/red]", 1)
    assert "[red]x[/red]" in shown(made(named))
    hostile = DeviceInfo("cuda", 0, "<img src=x>", "gpu", "1", "1", {})
    assert "<img" not in report.text(made(outcome("x", 1, hostile)), "html")


HOSTILE = "a\x1b[31mb\x9b2Jc\rd\x07e\u202ef\u200bg\x00h\tq"


@pytest.mark.parametrize("fmt", [fmt for fmt in report.FORMATS if fmt != "rich"])
def test_no_text_of_a_record_commands_a_terminal(fmt: str) -> None:
    device = DeviceInfo("o" + HOSTILE, 0, HOSTILE, "cpu", HOSTILE, HOSTILE, {})
    evil = outcome(
        HOSTILE, 1, device, params={HOSTILE: 1}, reason=HOSTILE + "\nmore", status="failed",
        notes=(HOSTILE,),
    )  # fmt: skip
    table = report.outcome_report([evil], [environment(devices=(device,), host=HOSTILE)])
    for text in (report.text(table, fmt), shown(table), shown(table, 60)):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text.replace("\t", " "))


def test_formats_that_cannot_hold_any_text_are_not_offered() -> None:
    assert {"rich", "plain", "github", "csv", "json", "html", "latex"} <= set(report.FORMATS)
    assert not {"unsafehtml", "latex_raw", "jira"} & set(report.FORMATS)


# Widths


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60, 50, 40])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    sweep = [
        outcome(name, ms * n**3 / 1e9, params=params, problem=Problem(n, n, n))
        for n in (256, 1000)
        for name, params, ms in (
            ("tiled-dynamic", {"TILE": 32}, 26.1),
            ("thread-1d", {"THREADS": 256}, 88),
            ("naive-2d", {"TILE": 8}, 141),
        )
    ]
    table = made(*sweep, *MIXED)
    text = shown(table, width)
    assert max(map(cell_len, text.splitlines())) <= width
    for section in table.sections:
        for row in section.rows:
            assert row.cells[2] in text  # a time is never broken
            assert row.status in text
            for note in (row.reason, *row.notes):
                assert "".join(note.split()) in "".join(text.split())


def test_columns_go_the_least_important_first() -> None:
    table = made(*MIXED[:3])
    titles = [column.title for column in table.sections[0].columns]
    kept = []
    for width in range(130, 35, -1):
        header = next(line for line in shown(table, width).splitlines() if "kernel" in line)
        kept.append([title for title in titles if title in header])
    gone = [
        title for wide, narrow in itertools.pairwise(kept) for title in wide if title not in narrow
    ]
    assert kept[0] == titles
    assert gone == [
        "of bound", "avg rel err", "per block", "× slowest", "max rel err", "GFLOP/s", "±",
    ]  # fmt: skip
    assert kept[-1] == ["kernel", "parameters", "time"]


def test_without_a_width_nothing_is_cut() -> None:
    reason = "because " * 100
    text = shown(made(outcome("x", 1), outcome("y" * 200, status="skipped", reason=reason)))
    assert reason.strip() in text
    assert "y" * 200 in text


def test_one_enormous_text_does_not_make_every_row_as_wide() -> None:
    long = "x-" * 500_000
    evil = outcome(long, 1, params={long: 1}, status="failed", reason=long, notes=(long,))
    table = made(evil, *(outcome(f"k{n}", 1 + n) for n in range(100)))
    for text in (shown(table), shown(table, 40), report.text(table, "plain")):
        assert len(text) < 5e6
        assert long in "".join(text.split())  # its reason, once


def test_colour_only_repeats_the_words() -> None:
    console = Console(width=120, force_terminal=True, color_system="truecolor", file=io.StringIO())
    with console.capture() as capture:
        for part in report.renderables(made(*MIXED), 120):
            console.print(part)
    plain = re.sub(r"\x1b\[[\d;]*m", "", capture.get())
    assert "\n".join(line.rstrip() for line in plain.splitlines()) == shown(made(*MIXED), 120)
    coloured = re.findall(r"\x1b\[[\d;]*3[0-7]m([^\x1b]*)", capture.get())
    assert {text.split(":")[0].strip(" ¹²³⁴") for text in coloured if text.strip()} == {
        "measured", "wrong", "failed", "skipped",
    }  # fmt: skip


# Comparisons


def compared(**changes: Any) -> ComparisonRow:
    values: dict[str, Any] = {
        "size": "1000",
        "baseline": "tiled",
        "candidate": "shared-row",
        "baseline_params": {"TILE": 16},
        "candidate_params": {"THREADS": 256},
        "backend": "cuda",
        "device": "A GPU",
        "device_kind": "gpu",
        "baseline_median_ns": 250_000.0,
        "candidate_median_ns": 350_000.0,
        "baseline_max_rel_err": 2.2e-6,
        "candidate_max_rel_err": 6.2e-8,
        "ratio": 1.4,
        "ratio_interval": (1.39, 1.41),
        "p_value": 1e-9,
        "samples": (24, 24),
        "verdict": "SLOWER",
    }
    return ComparisonRow(**(values | changes))


COMPARED = [
    compared(),
    compared(size="256", ratio=0.5, candidate_median_ns=125_000.0, verdict="FASTER", p_value=0.02),
    compared(
        size="9000",
        candidate_median_ns=None,
        ratio=None,
        ratio_interval=None,
        p_value=math.nan,
        verdict=None,
        reason="shared-row: needs K * 4 <= 49152 (K = 9000)",
    ),
]


@pytest.mark.parametrize("width", [None, 100, 80, 60, 40])
def test_a_comparison_says_who_is_what_and_how_it_ended(width: int | None) -> None:
    text = shown(report.comparison_report(COMPARED, [environment()]), width)
    flat = " ".join(text.split())
    assert "candidate shared-row against baseline tiled" in flat
    assert "cuda · A GPU" in flat
    assert "driver 580.1 · CUDA 13.0" in flat
    assert "1.400" in line_of(text, "1000 ")
    assert "SLOWER" in line_of(text, "1000 ")
    assert "FASTER" in line_of(text, "256 ", "0.500")
    assert "no verdict" in line_of(text, "9000 ", "–")
    assert "needs K * 4 <= 49152 (K = 9000)" in flat
    assert flat.endswith("1 SLOWER, 1 FASTER, 1 without a verdict")
    if width:
        assert max(map(cell_len, text.splitlines())) <= width
    else:
        assert "TILE=16 / THREADS=256" in text
        assert "1.390 to 1.410" in text
        assert "250.0 µs" in text
        assert "24 + 24" in text


def test_a_comparison_in_other_formats() -> None:
    table = report.comparison_report(COMPARED)
    found = rows(table)
    assert [row["verdict"] for row in found] == ["SLOWER", "FASTER", ""]
    assert (found[0]["ratio_low"], found[0]["ratio_high"]) == ("1.39", "1.41")
    assert (found[0]["baseline_params"], found[0]["baseline_samples"]) == ("TILE=16", "24")
    assert found[2]["p_value"] == ""
    objects = json.loads(report.text(table, "json"))
    assert [one["verdict"] for one in objects] == ["SLOWER", "FASTER", None]
    assert objects[2]["p_value"] is None
    assert "| 256 " in report.text(table, "github")
    assert report.text(report.comparison_report([]), "plain") == "nothing to compare"


def test_files_compared_name_their_kernels() -> None:
    table = report.comparison_report(
        [
            compared(baseline="old.jsonl", candidate="new.jsonl", kernel=kernel, size=size)
            for kernel in ("tiled", "kahan")
            for size in ("256", "1000")
        ]
    )
    (section,) = table.sections
    assert section.columns[1].title == "kernel"
    assert [row.cells[:2] for row in section.rows] == [
        ("256", "tiled"), ("256", "kahan"), ("1000", "tiled"), ("1000", "kahan"),
    ]  # fmt: skip
