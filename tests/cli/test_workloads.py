"""The other workloads on the command line: sizes, inputs, tables, records."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from support.cli import QUICK, Matbench, records_in
from support.workloads import problem


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
