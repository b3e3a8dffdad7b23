"""The other workloads on the command line: sizes, inputs, tables, records."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from support.cli import QUICK, Matbench, records_in
from support.workloads import problem


@pytest.mark.parametrize("sizes", ["8x8x8", "2^1000"])
def test_a_size_is_one_number(sizes: str, matbench: Matbench) -> None:
    said = matbench("run", "--workload", "dot", "--sizes", sizes, code=2).stderr
    told = "write a number such as 1000, 4M or 2^28, or a range, as in 1k..1M"
    assert said == f"matbench: size {sizes!r}: {told}\n"


@pytest.mark.parametrize(
    ("workload", "inputs", "known"),
    [
        ("cubes", "uniform", "digits"),
        ("reverse", "signed", "ramp, uniform"),
        ("dot", "digits", "ramp, uniform, signed, normal"),
        ("matmul", "ramp", "uniform, signed, normal"),
    ],
)
def test_inputs_that_a_workload_does_not_know(
    workload: str, inputs: str, known: str, matbench: Matbench
) -> None:
    said = matbench("run", "--workload", workload, "--inputs", inputs, code=2).stderr
    assert said == f"matbench: --inputs {inputs!r}: not for {workload}, which takes {known}\n"


def test_kernels_of_two_workloads_are_not_compared(matbench: Matbench) -> None:
    said = matbench("compare", "dot-tree", "cubes-tree", code=2).stderr
    assert said == (
        "matbench: only kernels of one workload can be compared: "
        "dot-tree computes dot, cubes-tree computes cubes\n"
    )
    said = matbench("run", "dot-tree", "--workload", "cubes", code=2).stderr
    assert said == "matbench: --workload cubes: dot-tree computes dot\n"


def test_records_of_a_workload_are_read_again(matbench: Matbench, tmp_path: Path) -> None:
    path = tmp_path / "dot.jsonl"
    names = ["dot-tree", "dot-one-warp"]
    run = matbench(
        *("run", *names, "--sizes", "2^10", "--inputs", "signed", *QUICK),
        *("--output", path, "--format", "plain"),
    )
    outcomes = records_in(path)
    assert sorted(o.case.kernel for o in outcomes) == sorted(names)
    assert {o.case.problem for o in outcomes} == {problem("dot", 1024, "signed")}
    for text in (run.stdout, matbench("report", path, "--format", "plain").stdout):
        assert text.startswith("dot: dot product c = Σ aᵢ·bᵢ; B/s counts each input once")
        assert "errors are relative to Σ|aᵢ·bᵢ|" in text
        assert "GB/s" in text
        assert "FLOP/s" not in text
        assert "1024, signed inputs" in text
    table = matbench("report", path, "--format", "csv").stdout
    shown = list(csv.DictReader(table.splitlines()))
    for outcome in outcomes:
        assert outcome.median_ns is not None
        [row] = [row for row in shown if row["kernel"] == outcome.case.kernel]
        assert float(row["gbytes_per_s"]) == pytest.approx(
            (8 * 1024 + 4) / outcome.median_ns, rel=1e-3
        )
