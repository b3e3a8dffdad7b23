"""What matbench is for: kernels over sizes and tile widths, times of launches and blocks, errors.

The same commands on a CPU and on a GPU. The tests say what a user gets, and nothing about how.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import Matbench, csv_rows

#: Runs a command on the backend of the test: its output in a format.
Run = Callable[..., str]

SIZES = {"cuda": (256, 1000), "opencl": (33, 64)}
TILE_WIDTHS: set[int | None] = {8, 16, 32}
TUTORIAL: dict[str, set[int | None]] = {
    **dict.fromkeys(("naive-2d", "tiled", "kahan", "tiled-dynamic"), TILE_WIDTHS),
    **{name: {None} for name in ("single-block", "thread-1d", "block-1d", "shared-row")},
}


@pytest.fixture(params=["opencl", pytest.param("cuda", marks=pytest.mark.gpu)])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def sizes(backend: str) -> tuple[int, ...]:
    """Of a sweep: two, on a CPU small ones."""
    return SIZES[backend]


@pytest.fixture
def run(backend: str, own_state: None, matbench: Matbench) -> Run:
    def invoke(*arguments: str | Path, code: int = 0) -> str:
        return matbench(*arguments, "--backend", backend, code=code).stdout

    return invoke


def outcomes(output: str) -> list[dict[str, Any]]:
    """The outcomes in the JSON of a run."""
    return [row for row in json.loads(output) if row["type"] == "outcome"]


def test_a_sweep_of_the_tutorial(run: Run, sizes: tuple[int, ...]) -> None:
    """`matbench run --sizes 256,1000`: all kernels, sizes and tile widths, checked and timed."""
    rows = outcomes(run("run", "--sizes", ",".join(map(str, sizes)), "--format", "json"))
    swept: dict[tuple[str, int], set[int | None]] = {}
    for row in rows:
        case = row["case"]
        size = case["problem"]["M"]
        swept.setdefault((case["kernel"], size), set()).add(case["params"].get("TILE"))
        if row["status"] == "skipped":  # all of C in one block
            assert case["kernel"] == "single-block"
            continue
        assert row["status"] == "measured", row["reason"]
        assert 0 < row["accuracy"]["avg_rel_err"] < row["accuracy"]["max_rel_err"] < 1e-4
        taken = row["cold"] or row["hot"]
        assert min(taken["samples_ns"]) <= taken["median_ns"] <= max(taken["samples_ns"])
    assert swept == {(name, size): TUTORIAL[name] for name in TUTORIAL for size in sizes}


def test_the_columns_of_the_table(run: Run) -> None:
    """Times of launches and of blocks, and both errors, for every tile width."""
    rows = csv_rows(run("run", "tiled", "--sizes", "64", "--format", "csv"))
    assert {row["params"] for row in rows} == {f"TILE={width}" for width in TILE_WIDTHS}
    fastest = min((row for row in rows if row["median_ns"]), key=lambda r: float(r["median_ns"]))
    assert fastest["best"] == "true"  # others may share it
    assert all(row["best"] == "false" for row in rows if row["status"] != "measured")
    for row in rows:
        median, low, high = (
            float(row[f"{name}_ns"]) for name in ("median", "interval_low", "interval_high")
        )
        assert 0 < low <= median <= high
        assert float(row["gflops"]) == pytest.approx(2 * 64**3 / median)
        assert float(row["block_median_ns"]) > 0
        assert 0 < float(row["avg_rel_err"]) < float(row["max_rel_err"]) < 1e-5


def test_both_errors(run: Run) -> None:
    """The sum of K products of 1 is exact; compensated sums are more exact than plain ones."""
    options = ("--set", "TILE=16", "--no-blocks", "--format", "json")
    errors = {
        (row["case"]["kernel"], row["case"]["problem"]["M"]): row["accuracy"]
        for row in outcomes(run("run", "tiled", "kahan", "--sizes", "1,512", *options))
    }
    assert errors["tiled", 1]["max_rel_err"] == errors["tiled", 1]["avg_rel_err"] < 2**-24
    tiled, kahan = errors["tiled", 512], errors["kahan", 512]
    assert kahan["max_rel_err"] <= 2**-23 < tiled["max_rel_err"]
    assert kahan["avg_rel_err"] <= 2**-24 < tiled["avg_rel_err"]


def test_a_comparison(run: Run) -> None:
    """`matbench compare tiled shared-row`: the ratio of medians taken in turns, and a verdict."""
    rows = json.loads(run("compare", "tiled", "shared-row", "--sizes", "64", "--format", "json"))
    [row] = [row for row in rows if row["type"] == "comparison"]
    result = row["comparison"]
    low, high = result["interval"]
    assert low <= result["ratio"] <= high
    assert result["verdict"] in ("FASTER", "SLOWER", "SAME", "UNDECIDED")
    assert min(result["samples"]) > 0
    assert "fastest of 3 in a quick look at TILE 8, 16, 32" in row["notes"][0]
