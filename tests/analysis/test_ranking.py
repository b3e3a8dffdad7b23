"""What is ranked together, and shares of cuBLAS's speed and the device's limits."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from support import toml
from support.golden import TableRegression
from support.tables import CPU, GPU, H200, hot, on_h200, outcome, timing

from matbench.analysis import ranking
from matbench.analysis.ranking import Ranked
from matbench.model import DeviceInfo, Problem
from matbench.records.outcome import BlockTimes, Claims, Outcome

DOUBLE = Claims(precision="float64", result="float64")


def ranked(*found: Outcome, device: DeviceInfo = H200) -> dict[str, Ranked]:
    """Each kernel's place in any of the rankings."""
    tables = ranking.tables(found, [device])
    return {row.outcome.case.kernel: row for table in tables for row in table.rows}


def of_cublas(*found: Outcome) -> dict[str, float | None]:
    return {name: row.of_cublas for name, row in ranked(*found).items()}


def of_limit(*found: Outcome) -> dict[str, float | None]:
    return {name: row.of_limit for name, row in ranked(*found).items()}


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


def test_each_kernel_against_the_product_of_cublas_in_its_precision() -> None:
    found = of_cublas(
        on_h200("mine", 0.5), on_h200("cublas", 0.4, group="baseline"),
        on_h200("mine-tf32", 0.3, precision="tf32"),
        on_h200("cublas-tf32", 0.15, group="baseline", precision="tf32"),
        on_h200("mine-bf16", 0.1, precision="bfloat16"),
        on_h200("mine-fp16", 0.1, precision="float16"),
        on_h200("cublas-f16", 0.05, group="baseline", precision="float16"),
        on_h200("mine-fp64", 1.0, claims=DOUBLE),
        on_h200("cublas-f64", 0.9, group="baseline", claims=DOUBLE),
        on_h200("elsewhere", 0.5, problem=Problem(1000, 1000, 8)),
        hot("hot", 0.5, H200),
    )  # fmt: skip
    assert found["mine"] == pytest.approx(0.8)
    assert found["cublas"] == found["cublas-tf32"] == 1
    assert found["mine-tf32"] == found["mine-fp16"] == pytest.approx(0.5)
    assert found["mine-fp64"] == pytest.approx(0.9)
    for name in ("mine-bf16", "elsewhere", "hot"):
        assert found[name] is None


def test_a_file_s_kernel_called_cublas_is_no_baseline() -> None:
    found = of_cublas(on_h200("mine", 0.5), on_h200("cublas", 0.4))
    assert found == {"mine": None, "cublas": None}


def test_8_bit_operands_against_cublaslt_with_factors_of_the_same_kind() -> None:
    rows = Claims(precision="e4m3", scales="rows")
    found = of_cublas(
        on_h200("mine", 0.4, precision="e4m3"),
        on_h200("by-matrix", 0.5, claims=Claims(precision="e4m3", scales="matrix")),
        on_h200("by-rows", 0.5, claims=rows),
        on_h200("mine-int8", 0.2, precision="int8"),
        on_h200("mine-e5m2", 0.2, precision="e5m2"),
        on_h200("cublaslt-fp8", 0.1, group="baseline", precision="e4m3"),
        on_h200("cublaslt-fp8-rowwise", 0.25, group="baseline", claims=rows),
        on_h200("cublaslt-int8", 0.3, group="baseline", precision="int8"),
        on_h200("cublaslt-best", 0.01, group="baseline"),
    )
    assert found == {
        "mine": pytest.approx(0.25), "by-matrix": pytest.approx(0.2),
        "by-rows": pytest.approx(0.5), "mine-int8": pytest.approx(1.5), "mine-e5m2": None,
        "cublaslt-fp8": 1, "cublaslt-fp8-rowwise": 1, "cublaslt-int8": 1, "cublaslt-best": None,
    }  # fmt: skip


def test_a_dot_product_against_that_of_cublas() -> None:
    dot = Problem(1, 2**20, 1, inputs="ramp", workload="dot")
    found = ranked(
        on_h200("mine", 0.5, problem=dot, copy_bytes_per_s=2 * 8 * 2**20 / 0.5e-3),
        on_h200("cublas-dot", 0.4, problem=dot, group="baseline"),
        on_h200("cublas", 0.1, group="baseline"),
    )["mine"]
    assert (found.of_cublas, found.of_limit) == pytest.approx((0.8, 0.5), rel=1e-5)


def test_a_wrong_or_failed_cublas_is_no_measure() -> None:
    wrong = on_h200("cublas", 0.4, status="wrong", reason="determinism: no")
    assert of_cublas(wrong, on_h200("mine", 0.5))["mine"] is None


def test_the_limit_is_that_of_the_unit_at_the_clock_that_was_held() -> None:
    stamps = BlockTimes(median_ns=1e5, sm_mhz=1980.0)
    found = of_limit(
        on_h200("plain", 1), on_h200("slowed", 1, 990), on_h200("tensor", 1, precision="bfloat16"),
        on_h200("stamped", 1, None, blocks=stamps), on_h200("untold", 1, None),
    )  # fmt: skip
    plain = found["plain"]
    assert plain == pytest.approx(2e9 / 1e-3 / (132 * 128 * 2 * 1.98e9))
    assert plain is not None
    assert found["slowed"] == pytest.approx(2 * plain)
    assert found["tensor"] == pytest.approx(plain / 16)
    assert found["stamped"] == pytest.approx(plain)
    assert found["untold"] is None


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
