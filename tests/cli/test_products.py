"""Products as BLAS defines them, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import QUICK, Matbench
from support.gemm import Gemm


@pytest.fixture
def gemm(tmp_path: Path) -> Path:
    path = tmp_path / "gemm.cu"
    path.write_text(Gemm(transpose="NT", padding=3).source(), encoding="utf-8")
    return path


def test_alpha_beta_and_batches_are_swept(matbench: Matbench, gemm: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    said = matbench(
        "run", gemm, "--sizes", "17", "--alpha", "1,-0.5", "--beta", "0,1", "--batch", "1,3",
        "--output", records, *QUICK,
    ).output  # fmt: skip
    assert "size 17, alpha = -0.5, beta = 1, batch = 3" in said
    assert "0 wrong" in said
    lines = map(json.loads, records.read_text().splitlines())
    found = [line["case"] for line in lines if line["type"] == "outcome"]
    scaled = {
        (case["problem"]["alpha"], case["problem"]["beta"], case["problem"]["batch"])
        for case in found
    }
    assert len(scaled) == 8
    assert found[0]["placing"] == {"layout": "row-major", "transpose": "NT", "padding": 3}
    again = matbench("report", records).output
    assert "size 17, alpha = -0.5, beta = 1, batch = 3" in again


def test_what_a_kernel_does_not_compute_is_skipped_with_the_reason(matbench: Matbench) -> None:
    said = matbench("run", "tiled", "--sizes", "33", "--alpha", "2", code=1).output
    assert "skipped: needs alpha = 1 (alpha = 2)" in said
    assert "nothing was measured" in said


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--alpha", "x", "--alpha 'x': must be 0, or 2^-60 to 2^60 in magnitude, as in 1,-0.5"),
        ("--beta", "1e99", "--beta '1e99': must be 0, or 2^-60"),
        ("--batch", "0", "--batch '0': must be a whole number from 1 to 65,536, as in 1,64"),
        ("--batch", "٣", "--batch '٣': must be a whole number"),
        ("--batch", "1.5", "--batch '1.5': must be a whole number"),
    ],
)
def test_bad_numbers_get_one_line(matbench: Matbench, option: str, value: str, told: str) -> None:
    said = matbench("run", "tiled", option, value, code=2).output
    assert told in said
    assert len(said.strip().splitlines()) == 1


def test_numpy_computes_alpha_and_beta_too(matbench: Matbench) -> None:
    said = matbench("run", "--smoke", "numpy", "--alpha", "1.5", "--beta", "0,0.5", *QUICK).output
    assert "8 measured, 0 wrong" in said


def test_a_kernel_that_reads_C_is_told_in_its_row(matbench: Matbench, tmp_path: Path) -> None:
    path = tmp_path / "reads.cu"
    path.write_text(Gemm(store="*c = alpha * sum + beta * *c;").source("reads"), encoding="utf-8")
    assert "reads C at beta = 0" in matbench("run", path, "--sizes", "33", *QUICK).output


def test_show_says_how_matrices_lie(matbench: Matbench, gemm: Path) -> None:
    assert "row-major, B transposed, 3 elements between rows" in matbench("show", gemm).output
    scaled = gemm.with_name("scaled.cu")
    scaled.write_text(Gemm(alpha=2.0, beta=-1.0).source("scaled"), encoding="utf-8")
    said = matbench("show", scaled).output
    assert "C := alpha·op(A)·op(B) + beta·C; alpha = 2; beta = -1" in said
    assert "matrices" not in matbench("show", "tiled").output.split("extern")[0]
