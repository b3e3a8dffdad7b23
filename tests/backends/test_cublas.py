"""cuBLAS's products as rows: right where they run, otherwise skipped with a reason."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import msgspec
import numpy as np
import pytest
from support.cli import QUICK, Matbench, last_run
from support.cublas import Fake, Ready, fake  # noqa: F401
from support.optional import present, some
from support.products import OF_ANY_SIZE, OF_LIBRARIES, problem

from matbench import programs
from matbench.backends import Backend
from matbench.backends.cuda import cublas, libcuda
from matbench.backends.functions import libraries
from matbench.bench import kernel_arguments
from matbench.bench.samples import Draw
from matbench.bench.session import Session
from matbench.errors import LackingError
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Kernel, Skip

# -- without a GPU -------------------------------------------------------------------------------


def test_skipped_with_the_reason_where_no_cuda_is(matbench: Matbench, device: DeviceInfo) -> None:
    if device.backend == "cuda":
        pytest.skip("CUDA is here")
    result = matbench("run", "single-block", "--baseline", "cublas*", "--sizes", "5", *QUICK)
    outcomes = last_run()
    assert [o.case.kernel for o in outcomes if o.status == "measured"] == ["single-block"]
    products = [o for o in outcomes if o.case.kernel != "single-block"]
    assert sorted(o.case.kernel for o in products) == sorted(OF_LIBRARIES)
    skip = Skip("requirement", "cuda", {"device": "opencl"})
    assert all((o.status, o.skip, o.case.launch) == ("skipped", skip, None) for o in products)
    assert "needs CUDA; this is opencl" in result.stdout


def test_what_is_missing_is_told_with_what_fixes_it(
    fake: Fake,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "which", lambda _: None)
    libraries.host_target.cache_clear()
    with pytest.raises(LackingError, match=r"^g\+\+ is missing; install it$"):
        Ready("cublas", fake)
    monkeypatch.setattr(libcuda, "version", lambda: (13, 0))
    module: Any = sys.modules["cuda.pathfinder"]
    monkeypatch.setattr(module, "load_nvidia_dynamic_lib", not_found)
    with pytest.raises(LackingError, match=r"cannot be loaded; pip .*\[cublas\]==13\.0\.\*'$"):
        cublas.place()
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    with pytest.raises(LackingError, match=r"^cuda-pathfinder is missing; pip install 'matbench"):
        fake.library()


def not_found(name: str) -> None:
    raise RuntimeError(f"Failure finding lib{name}.so")


def test_it_has_no_block(matbench: Matbench) -> None:
    shown = matbench("kernels", "cublaslt-best-fp8").stdout
    assert "kernels/baselines/cublaslt-best-fp8.cu\n" in shown
    assert "block (threads)" not in shown


# -- on a GPU ------------------------------------------------------------------------------------


def case_of(kernel: Kernel, size: str, inputs: str, info: DeviceInfo) -> Case:
    case = sweep.case(kernel, problem(size, inputs), {}, info)
    assert case.skip is None, case.skip
    return case


@pytest.mark.gpu
def test_float32_that_were_tf32_would_be_wrong(checks: Session, info: DeviceInfo) -> None:
    plain = checks.measure(case_of(OF_LIBRARIES["cublas"], "512", "uniform", info))
    assert plain.max_rel_err is not None
    assert plain.max_rel_err < 5e-6
    entry = OF_LIBRARIES["cublas-tf32"].entry
    tf32 = msgspec.structs.replace(OF_LIBRARIES["cublas"], entry=entry)
    assert checks.measure(case_of(tf32, "512", "uniform", info)).status == "wrong"


@pytest.mark.gpu
@pytest.mark.parametrize("size", ["64x64x8192", "1000", "2048"])
@pytest.mark.parametrize("name", OF_ANY_SIZE)
def test_the_same_bits_every_time(name: str, size: str, checks: Session, info: DeviceInfo) -> None:
    case = case_of(OF_LIBRARIES[name], size, "signed", info)
    assert case.kernel.deterministic
    assert checks.measure(case).status == "measured"
    bits = set()
    with checks._runnable(case, checks._build(case)) as running:
        reference = running.prepared.reference
        for _ in range(10):
            running.run(Draw(reference))
            found = running.result_on_host(reference)
            bits.add(found.tobytes())
    assert len(bits) == 1


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.parametrize(
    "mode", some([[], ["--hot"], ["--hot", "--graph"], ["--cold", "--hot"]], [])
)
def test_rows_like_any_other(matbench: Matbench, info: DeviceInfo, mode: list[str]) -> None:
    baselines = ("--baseline", "cublas*", "--backend", "cuda", "--max-time", "0.2")
    matbench("run", "tiled", "--set", "TILE=32", *baselines, "--sizes", "1024", *mode)
    outcomes = last_run()
    assert {o.status for o in outcomes} == {"measured"}
    medians = {o.case.kernel: present(o.median_ns) for o in outcomes}
    assert medians.keys() == {"tiled", *OF_LIBRARIES}
    for name in OF_LIBRARIES:
        assert medians[name] < medians["tiled"]
    assert medians["cublas-tf32"] < medians["cublas"]


@pytest.mark.gpu
def test_compared_with_a_kernel(matbench: Matbench, info: DeviceInfo) -> None:
    printed = matbench(
        *("compare", "cublas", "tiled", "--set", "TILE=32", "--sizes", "1024", "--backend", "cuda"),
        *("--format", "json"),
    ).stdout
    [_, row] = json.loads(printed)
    assert row["comparison"]["verdict"] == "SLOWER"


@pytest.mark.gpu
@pytest.mark.parametrize("how", [["--quick"], pytest.param([], marks=pytest.mark.long)])
def test_checked_like_a_kernel(how: list[str], matbench: Matbench, info: DeviceInfo) -> None:
    printed = matbench("check", "cublas", "--backend", "cuda", *how).stdout
    assert re.search(r"passed (\d+) of \1 probes", printed)  # with other factors, and a batch


@pytest.mark.gpu
def test_one_handle_serves_all(cuda: Backend, info: DeviceInfo) -> None:
    programs = [cuda.build(kernel, {}) for kernel in OF_LIBRARIES.values()]
    assert len({id(program.cublas) for program in programs}) == 1  # type: ignore[attr-defined]
    ones = np.ones((3, 2), np.float32)
    A, B, C = (cuda.allocate(4 * 4096) for _ in "ABC")
    try:
        cuda.write(A, ones)
        cuda.write(B, 2 * np.ascontiguousarray(ones.T))
        launch = case_of(OF_LIBRARIES["cublas"], "3x3x2", "uniform", info).launch
        assert launch is not None
        case = case_of(OF_LIBRARIES["cublas"], "3x3x2", "uniform", info)
        arguments = kernel_arguments.arguments(case, {"A": A, "B": B, "C": C})
        cuda.build(case.kernel, {}).launch(launch, arguments)
        found = np.empty((3, 3), np.float32)
        cuda.read(C, found)
        assert (found == 4).all()
    finally:
        for buffer in (A, B, C):
            cuda.release(buffer)
