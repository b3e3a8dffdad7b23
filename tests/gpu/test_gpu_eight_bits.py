"""FP8 and INT8 operands on a real GPU: CUDA's own types, 16-bit results, and all mistakes."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from support.cli import Matbench
from support.eight_bits import MISTAKES, VARIANTS, measured
from support.kernels import saved, text_of
from support.optional import half, some
from support.products import problem

from matbench.bench.session import Session
from matbench.model import Problem

pytestmark = pytest.mark.gpu

TYPED = text_of("typed.cu")
OPERANDS = ["__nv_fp8_e4m3", "__nv_fp8_e5m2", "signed char"]
RESULTS = ["float", "__half", "__nv_bfloat16"]


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
    file = saved(tmp_path / "rows.cu", VARIANTS["scales of rows"].source)
    printed = matbench("run", file, "--sizes", "200x130x400", "--hot", "--format", "json").stdout
    row = json.loads(printed)[-1]
    assert row["status"] == "measured", row["reason"]
    assert row["hot"]["samples_ns"]
