"""cuBLASLt's products on an NVIDIA GPU: of 8-bit operands, and by its fastest algorithm."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from support import cublas
from support.cli import Matbench
from support.optional import present
from support.products import problem

from matbench.bench.session import Session
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo
from matbench.records.outcome import Outcome

pytestmark = pytest.mark.gpu

BASELINES = {name: kernel for name, kernel in cublas.BASELINES.items() if "stream" in kernel.args}
OF_8_BITS = {name: kernel for name, kernel in BASELINES.items() if kernel.launch.where}
BEST = [name for name in BASELINES if name.startswith("cublaslt-best")]
NOTE = re.compile(r"algorithm (\d+) of the (\d+) that cuBLASLt suggests")


def case_of(name: str, size: str, info: DeviceInfo, **factors: Any) -> Case:
    at = msgspec.structs.replace(problem(size), **factors)
    case = sweep.case(BASELINES[name], at, {}, info)
    if case.skip is not None and case.skip.kind == "requirement":
        pytest.skip(f"needs {case.skip.needs}")
    assert case.skip is None, case.skip
    return case


@pytest.mark.parametrize(
    "size",
    [
        "16",
        "1x16x16",
        "33x48x80",
        "1x512x1024",
        "257x144x1040",
        "64x64x8192",
        "512",
        "1000x2000x496",
    ],
)
@pytest.mark.parametrize("name", OF_8_BITS)
def test_8_bits_at_ragged_sizes(name: str, size: str, checks: Session, info: DeviceInfo) -> None:
    outcome = checks.measure(case_of(name, size, info))
    assert outcome.status == "measured", outcome.reason
    claimed = outcome.case.claims
    assert (claimed.precision, claimed.result, claimed.accumulator) == (
        ("int8", "int32", None) if "int8" in name else ("e4m3", "bfloat16", "float22")
    )


@pytest.mark.parametrize("size", ["4", "33x20x36", "255x132x1028"])
@pytest.mark.parametrize("name", ["cublaslt-int8", "cublaslt-best-int8"])
def test_int8_at_multiples_of_four(name: str, size: str, checks: Session, info: DeviceInfo) -> None:
    outcome = checks.measure(case_of(name, size, info))
    assert outcome.status == "measured", outcome.reason
    assert outcome.max_rel_err == 0


def test_other_sizes_are_skipped_with_the_reason(matbench: Matbench, info: DeviceInfo) -> None:
    printed = matbench(
        *("run", "tiled", "--set", "TILE=16", "--baseline", "cublaslt-fp8*,cublaslt-*int8"),
        *("--sizes", "70", "--backend", "cuda", "--format", "json"),
    ).stdout
    _, *rows = json.loads(printed)
    outcomes = [msgspec.convert(row, Outcome) for row in rows]
    skipped = {o.case.kernel: present(o.skip) for o in outcomes if o.status == "skipped"}
    assert skipped.keys() == {n for n in OF_8_BITS if n != "cublaslt-best-fp8"}
    if info.compute_capability == (9, 0):
        for name, skip in skipped.items():
            multiple = 4 if "int8" in name else 16
            assert (skip.needs, skip.given) == (f"N % {multiple} == 0", {"N": 70}), name


@pytest.mark.parametrize("name", BEST)
def test_the_fastest_algorithm_is_said(name: str, checks: Session, info: DeviceInfo) -> None:
    for size in ("256", "1024"):
        outcome = checks.measure(case_of(name, size, info))
        assert outcome.status == "measured", outcome.reason
        [note] = outcome.notes
        number, count = map(int, present(NOTE.fullmatch(note)).groups())
        assert 1 <= number <= count <= 16


@pytest.mark.parametrize("factors", [{"alpha": -1.5, "beta": 0.75}, {"batch": 3, "beta": 2.0}])
@pytest.mark.parametrize("name", [name for name in BEST if name not in OF_8_BITS])
def test_factors(name: str, factors: dict[str, Any], checks: Session, info: DeviceInfo) -> None:
    for size in ("33x47x65", "257x130x300"):
        outcome = checks.measure(case_of(name, size, info, **factors))
        assert outcome.status == "measured", outcome.reason


@pytest.mark.alone
@pytest.mark.parametrize(
    ("first", "best", "size"),
    [("cublas", "cublaslt-best", "512"), ("cublas-bf16", "cublaslt-best-bf16", "1024"),
     ("cublas-tf32", "cublaslt-best-tf32", "1024"), ("cublas-f16", "cublaslt-best-f16", "2048"),
     ("cublas-f64", "cublaslt-best-f64", "1000"), ("cublaslt-fp8", "cublaslt-best-fp8", "1024"),
     ("cublaslt-int8", "cublaslt-best-int8", "1024")],
)  # fmt: skip
@pytest.mark.parametrize("mode", [[], pytest.param(["--hot", "--graph"], marks=pytest.mark.long)])
def test_the_best_is_compared_with_what_the_library_takes(
    first: str, best: str, size: str, mode: list[str], matbench: Matbench, info: DeviceInfo
) -> None:
    case_of(best, size, info)
    printed = matbench(
        *("compare", first, best, "--sizes", size, "--backend", "cuda", "--format", "json", *mode)
    ).stdout
    [_, row] = json.loads(printed)
    assert row["comparison"]["ratio"]
    assert any(NOTE.fullmatch(note) for note in row["candidate"]["notes"])
