"""Products as BLAS defines them on an NVIDIA GPU: CUDA-only types, and cuBLAS."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.gemm import Gemm
from support.kernels import saved
from support.optional import half

from matbench import backends
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.model import Problem
from matbench.records.outcome import Outcome

pytestmark = pytest.mark.gpu

KINDS = ("float", "double", "__half", "__nv_bfloat16")


@pytest.fixture(scope="module")
def on_gpu(own_folders: None) -> Iterator[Session]:
    device = backends.choose("cuda", None)
    options = Options(max_time_s=0.05, uncertainty=0.5)
    made = Session(backends.open_backend(device, Cache()), Cache(), options)
    yield made
    made.close()


def judged(session: Session, folder: Path, gemm: Gemm, size: tuple[int, int, int]) -> Outcome:
    path = saved(folder / "gemm.cu", gemm.source())
    problem = Problem(*size, alpha=gemm.alpha, beta=gemm.beta, batch=gemm.batch)
    case = sweep.case(catalogue.load(path), problem, {}, session.backend.info)
    return session.measure(case)


@pytest.mark.parametrize(("operand", "result"), half(itertools.product(KINDS, KINDS)))
def test_every_pair_of_types(operand: str, result: str, on_gpu: Session, tmp_path: Path) -> None:
    total = "double" if result == "double" else "float"
    gemm = Gemm(operand=operand, result=result, sum=total)
    for size in ((1, 1, 1), (33, 47, 65), (128, 256, 300)):
        outcome = judged(on_gpu, tmp_path, gemm, size)
        assert (outcome.status, outcome.reason) == ("measured", None), size


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("layout", "transpose"),
    half(
        (one, other) for one in ("row-major", "column-major") for other in ("NT", "NN", "TN", "TT")
    ),
)
def test_every_layout_with_all_of_blas(
    layout: str, transpose: str, kind: str, on_gpu: Session, tmp_path: Path
) -> None:
    total = "double" if kind == "double" else "float"
    gemm = Gemm(
        layout, transpose, padding=3, alpha=-1.5, beta=0.75, batch=3,
        operand=kind, result=kind, sum=total,
    )  # fmt: skip
    outcome = judged(on_gpu, tmp_path, gemm, (33, 47, 65))
    assert (outcome.status, outcome.reason) == ("measured", None)


@pytest.mark.parametrize("kind", ["__half", "__nv_bfloat16"])
def test_sums_of_16_bits_have_to_be_declared(kind: str, on_gpu: Session, tmp_path: Path) -> None:
    narrow = Gemm(operand=kind, result=kind, sum=kind, store="*c = sum;")
    narrow = narrow._replace(
        mistakes=(("sum += ", "sum = sum + "), (f"{kind} sum = 0", f"{kind} sum = 0.0f"))
    )
    size = (33, 47, 600)
    outcome = judged(on_gpu, tmp_path, narrow, size)
    assert outcome.status == "wrong"
    name = "float16" if kind == "__half" else "bfloat16"
    declared = narrow._replace(more=f'accumulator = "{name}"')
    outcome = judged(on_gpu, tmp_path, declared, size)
    assert (outcome.status, outcome.reason) == ("measured", None)
    assert outcome.case.claims.accumulator == name


@pytest.mark.parametrize(
    ("kind", "mistake"),
    [
        ("__half", ("if (i >= M", "if ((i == 5 && j == 7) || i >= M")),
        ("__half", ("*c = beta", "if (i == 0 && j == 0) c[-1] = 0; *c = beta")),
        ("double", ("*c = beta", "if (i == 0 && j == 0) c[-1] = 0; *c = beta")),
        ("__nv_bfloat16", ("alpha * sum + ", "1.01f * alpha * sum + ")),
    ],
)
def test_a_mistake(kind: str, mistake: tuple[str, str], on_gpu: Session, tmp_path: Path) -> None:
    total = "double" if kind == "double" else "float"
    gemm = Gemm(beta=0.5, operand=kind, result=kind, sum=total, mistakes=(mistake,))
    assert judged(on_gpu, tmp_path, gemm, (33, 47, 65)).status == "wrong"
    assert judged(on_gpu, tmp_path, gemm._replace(mistakes=()), (33, 47, 65)).status == "measured"


@pytest.mark.parametrize("kind", ["", "-tf32", "-bf16", "-f16", "-f64"])
@pytest.mark.parametrize(
    ("alpha", "beta", "batch"), [(1.0, 0.0, 1), (-1.5, 0.75, 1), (1.0, 0.0, 5), (2.0, 1.0, 3)]
)
def test_cublas_does_all(kind: str, alpha: float, beta: float, batch: int, on_gpu: Session) -> None:
    kernel = catalogue.Catalogue(catalogue.builtin()).get(f"cublas{kind}")
    for size in ((1, 1, 1), (33, 47, 65), (256, 256, 256)):
        problem = Problem(*size, alpha=alpha, beta=beta, batch=batch)
        outcome = on_gpu.measure(sweep.case(kernel, problem, {}, on_gpu.backend.info))
        assert (outcome.status, outcome.reason) == ("measured", None), size
