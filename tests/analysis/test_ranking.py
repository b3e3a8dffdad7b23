"""What is ranked together, and shares of cuBLAS's speed and the device's limits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support import toml
from support.golden import TableRegression, paged
from support.tables import CPU, GPU, H200, declared, hot, outcome, timing

from matbench.analysis import ranking
from matbench.analysis.ranking import Ranked
from matbench.model import DeviceInfo, Problem
from matbench.records.outcome import Claims, Outcome


def ranked(*found: Outcome, device: DeviceInfo = H200) -> dict[str, Ranked]:
    """Each kernel's place in any of the rankings."""
    tables = ranking.tables(found, [device])
    return {row.outcome.case.kernel: row for table in tables for row in table.rows}


# Rankings


@pytest.mark.parametrize("median", [0.0, -1.0, None])
def test_a_time_that_is_none_does_not_rank(median: float | None) -> None:
    found = outcome("x", 1, cold=timing(1, median_ns=median))
    assert ranking.rank([found]) == (Ranked(found),)


def test_problems_are_in_the_order_of_their_work_the_usual_inputs_first() -> None:
    problems = [
        Problem(100, 100, 100, "signed"), Problem(100, 100, 100), Problem(9, 9, 9),
        Problem(100, 100, 100, seed=7),
    ]  # fmt: skip
    (table,) = ranking.tables([outcome(f"k{n}", 1, problem=p) for n, p in enumerate(problems)])
    assert [(p.size, p.inputs, len(rows)) for p, rows in table.problems.items()] == [
        ("9", "uniform", 1), ("100", "uniform", 2), ("100", "signed", 1),
    ]  # fmt: skip


def test_the_fastest_parameters_of_each_kernel() -> None:
    def tiled(tile: int, ms: float | None = None, **changes: Any) -> Outcome:
        return outcome("tiled", ms, params={"TILE": tile}, **changes)

    def kept(*found: Outcome) -> list[dict[str, int]]:
        return [one.case.params for one in ranking.fastest(found)]

    small = Problem(64, 64, 64)
    assert kept(tiled(8, 3), tiled(16, 1), tiled(32, 2)) == [{"TILE": 16}]
    assert kept(tiled(8, 3), tiled(16, 1, problem=small)) == [{"TILE": 8}, {"TILE": 16}]
    assert kept(tiled(8, 3), tiled(16, 1, device=GPU)) == [{"TILE": 8}, {"TILE": 16}]
    assert len(ranking.fastest([outcome("x", 3), hot("x", 1)])) == 2
    skipped = tiled(4, status="skipped")
    wrong = tiled(2, status="wrong", reason="no")
    assert kept(skipped, tiled(8, 3), wrong) == [{"TILE": 8}]
    assert kept(skipped, wrong, skipped) == [{"TILE": 2}]
    assert kept(tiled(2, 5, status="wrong"), tiled(8, 30)) == [{"TILE": 8}]


# Against cuBLAS and the device's limits


def test_numpy_beside_kernels_on_its_cpu() -> None:
    host = msgspec.structs.replace(CPU, backend="host", index=0)
    numpy = outcome("numpy", 2, host, group="baseline")
    rough = outcome("rough", 4, precision="tf32")
    shares = {name: row.of_numpy for name, row in ranked(numpy, outcome("mine", 4), rough).items()}
    assert shares == {"numpy": 1, "mine": 0.5, "rough": None}
    # The controls: a kernel on a GPU, and one on another CPU.
    for other in (GPU, msgspec.structs.replace(CPU, name="Another")):
        far = outcome("far", 4, other)
        assert ranked(numpy, far)["far"].of_numpy is None
        assert [table.baselines for table in ranking.tables([numpy, far])] == [False, True]


def test_shares(file_regression: FileRegressionFixture) -> None:
    """In turn the share of cuBLAS's speed, and of what the device's clock and memory allow."""
    pages = {}
    for name, row in toml.table(Path(__file__).with_name("shares.toml")).items():
        found = ranked(*map(declared, row["outcomes"]))
        shares = {kernel: (row.of_cublas, row.of_limit) for kernel, row in found.items()}
        pages[name] = "\n".join(
            f"{kernel}: {' '.join('none' if one is None else f'{one:.5f}' for one in both)}"
            for kernel, both in shares.items()
        )
    file_regression.check(paged(pages), encoding="utf-8")


def test_what_the_cache_holds_is_not_compared_with_the_copy() -> None:
    """A copy larger than the cache is slower, so a share of it would exceed 100%."""
    cached = msgspec.structs.replace(CPU, properties={"last-level cache (bytes)": 2**28})

    def share(N: int, *, is_hot: bool = True) -> float:
        at = Problem(1, N, 1, inputs="ramp", workload="dot")
        make = hot if is_hot else outcome
        found = ranked(make("dot", 0.1, problem=at, copy_bytes_per_s=4e10), device=cached)["dot"]
        return math.nan if found.of_limit is None else found.of_limit

    assert math.isnan(share(2**20))
    assert share(2**20, is_hot=False) == pytest.approx((2**23 + 4) / 1e-4 / 4e10)
    assert share(2**26) == pytest.approx((2**29 + 4) / 1e-4 / 4e10)


# Claims that weaken a check


def weakened(question: str) -> str:
    """How claims, in TOML, weaken the checks."""
    return "; ".join(ranking.weakening(msgspec.convert(toml.read(question), Claims))) or "not"


def test_claims_in_words(table_regression: TableRegression) -> None:
    table_regression("claims.txt", weakened)


def test_all_claims_of_a_kernel_in_the_order_of_front_matter() -> None:
    given = Claims("tf32", 2.0, (-14, 15), False, ("TILE <= 32", "K <= 64", "M == N"))
    assert ranking.weakening(given) == (
        "inputs rounded to tf32",
        "each product may be off by 2·2⁻²⁴",
        "exponents from -14 to 15 only",
        "not deterministic",
    )  # fmt: skip
