"""FP8 and INT8 operands on a real GPU: CUDA's own types, 16-bit results, and all mistakes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import Matbench
from support.eight_bits import MISTAKES, VARIANTS
from support.optional import half, some
from support.products import problem

from matbench import backends
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.model import Problem
from matbench.records.outcome import Outcome

pytestmark = pytest.mark.gpu

TYPED = """\
// /// matbench
// args = ["A", "B", "C", "scale_a", "scale_b", "M", "N", "K", "alpha", "beta"]
// scales = "rows"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__global__ void product(const OPERAND *A, const OPERAND *B, RESULT *C, const float *scale_a,
                        const float *scale_b, int M, int N, int K, float alpha, float beta)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= M || j >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += (float)A[(size_t)i * K + k] * (float)B[(size_t)k * N + j];
    sum *= alpha * scale_a[i] * scale_b[j];
    if (beta != 0.0f) sum += beta * (float)C[(size_t)i * N + j];
    C[(size_t)i * N + j] = (RESULT)sum;
}
"""
OPERANDS = ["__nv_fp8_e4m3", "__nv_fp8_e5m2", "signed char"]
RESULTS = ["float", "__half", "__nv_bfloat16"]


@pytest.fixture(scope="module")
def checks(own_folders: None) -> Iterator[Session]:
    opened = backends.open_backend(backends.devices("cuda")[0], Cache())
    yield Session(opened, Cache(), Options(timed=False))
    opened.close()


def measured(session: Session, source: str, at: Problem, folder: Path) -> Outcome:
    file = folder / "eight-bits.cu"
    file.write_text(source, encoding="utf-8")
    case = sweep.case(catalogue.load(file), at, {}, session.backend.info)
    assert case.skip is None, case.skip
    return session.measure(case)


@pytest.mark.parametrize(("operand", "result"), half(itertools.product(OPERANDS, RESULTS)))
def test_types_of_cuda(operand: str, result: str, checks: Session, tmp_path: Path) -> None:
    source = TYPED.replace("OPERAND", operand).replace("RESULT", result)
    for factors in ((1.0, 0.0), (-0.5, 1.25)):
        at = Problem(65, 190, 333, inputs="signed", alpha=factors[0], beta=factors[1])
        if result == "__half" and operand == "__nv_fp8_e5m2":
            continue  # its largest numbers, scaled, are beyond float16
        outcome = measured(checks, source, at, tmp_path)
        assert outcome.status == "measured", outcome.reason
        wrong = source.replace("scale_b[j]", "scale_b[0]")
        assert measured(checks, wrong, at, tmp_path).status == "wrong"


@pytest.mark.parametrize("name", VARIANTS)
def test_a_right_kernel_is_accepted(name: str, checks: Session, tmp_path: Path) -> None:
    for size in ("1", "40x300x400", "1000"):
        outcome = measured(checks, VARIANTS[name].source, problem(size), tmp_path)
        assert outcome.status == "measured", outcome.reason


@pytest.mark.parametrize("name", some(MISTAKES, *[*MISTAKES][::3]))
def test_each_mistake_is_refused(name: str, checks: Session, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    M, N, K = map(int, mistake.size.split("x"))
    alpha = -2.0 if name == "no alpha" else 1.0
    at = Problem(M, N, K, inputs=mistake.inputs, alpha=alpha)
    twin = measured(checks, mistake.variant.source, at, tmp_path)
    assert twin.status == "measured", twin.reason
    assert measured(checks, mistake.source, at, tmp_path).status == "wrong"


def test_it_is_timed_like_any_other(matbench: Matbench, tmp_path: Path) -> None:
    file = tmp_path / "rows.cu"
    file.write_text(VARIANTS["scales of rows"].source, encoding="utf-8")
    printed = matbench("run", file, "--sizes", "200x130x400", "--hot", "--format", "json").stdout
    row = json.loads(printed)[-1]
    assert row["status"] == "measured", row["reason"]
    assert row["hot"]["samples_ns"]
