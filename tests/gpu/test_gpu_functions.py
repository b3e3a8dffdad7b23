"""Functions of PyTorch, Triton, CuPy, Numba and JAX on a GPU: cheats, twins, and precision."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import Matbench, last_run
from support.functions import measured
from support.optional import present
from support.paths import ROOT

import matbench as api
from matbench.backends.functions.calls import TRUSTED
from matbench.kernelfile import catalogue
from matbench.measure.options import CHECKS

pytestmark = pytest.mark.gpu

FOLDER = Path(__file__).parents[1] / "functions"
FILE = FOLDER / "on_gpu.py"

#: Each cheat, and the words of its reason.
CHEATS = {
    "early": "",
    "late": "",
    "thread": "",
    "by_address": "integers: ",
    "by_version": "integers: ",
    "by_value": "integers: ",
    "graph": "integers: ",
    "inputs": "inputs: changed its input A",
    "elsewhere": "never written",
    "events": "replaced: replaced pycuda._driver.Event.time_till",
    "clock": "replaced: replaced time.perf_counter_ns",
    "comparison": "all are 0",
    "memory": "growth: memory grows with every call",
    "tf32": 'as exact as TF32 inputs: declare `precision = "tf32"`, or pass',
}
#: The checks without which a cheat passes.
CONTROLS = {
    "early": {"ready", "impossible", "reference", "integers", "selection", "repeat"},
    "late": {"returned", "impossible", "reference", "integers", "selection", "repeat"},
    "events": {"replaced", "impossible"},
    "memory": {"growth"},
}


@pytest.fixture(scope="module")
def judge() -> Iterator[api.Judge]:
    with api.Judge("1000", backend="cuda", timeout=60) as judge:
        yield judge


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_is_refused_with_its_reason(cheat: str, judge: api.Judge) -> None:
    verdict = judge.run(f"{FILE}::cheat_{cheat}")
    assert verdict.status == "wrong"
    assert CHEATS[cheat] in present(verdict.reason)


@pytest.mark.parametrize("twin", [*CHEATS, "lazy", "recorded", "ring"])
def test_its_honest_twin_is_measured(twin: str, judge: api.Judge) -> None:
    verdict = judge.run(f"{FILE}::twin_{twin}")
    assert (verdict.status, verdict.reason) == ("measured", None)
    assert all(TRUSTED in case.notes for case in verdict.cases)
    assert all(present(case.host_ns) > 1e3 for case in verdict.cases)


@pytest.mark.parametrize("cheat", CONTROLS)
def test_a_cheat_passes_without_the_checks_that_stop_it(cheat: str) -> None:
    kernel = catalogue.load(Path(f"{FILE}::cheat_{cheat}"))
    checks = CHECKS - CONTROLS[cheat] - {"determinism"}
    outcome = measured(kernel, "2048", backend="cuda", checks=checks)
    assert (outcome.status, outcome.reason) == ("measured", None)


@pytest.mark.parametrize("cheat", ["lazy", "recorded"])
def test_work_that_is_put_off_or_denied_is_timed(cheat: str, judge: api.Judge) -> None:
    denied, honest = (judge.run(f"{FILE}::{name}") for name in (f"cheat_{cheat}", "honest"))
    assert denied.status == "wrong" or present(denied.median_ns) > 0.8 * present(honest.median_ns)


@pytest.mark.parametrize(
    ("function", "status", "words"),
    [
        ("with_triton.py::exact", "measured", ""),
        ("with_triton.py::tuned", "measured", ""),
        ("with_triton.py::declared", "measured", ""),
        ("with_triton.py::default", "wrong",
         'as exact as TF32 inputs: declare `precision = "tf32"'),
        ("with_cupy.py::raw", "measured", ""),
        ("with_cupy.py::library", "measured", ""),
        ("with_cupy.py::by_columns", "measured", ""),
        ("with_numba_cuda.py", "measured", ""),
        ("with_jax.py::exact", "measured", ""),
        ("with_jax.py::rounded", "wrong", 'or pass `precision="highest"`'),
    ],
)  # fmt: skip
def test_arrays_of_other_libraries(
    function: str, status: str, words: str, judge: api.Judge
) -> None:
    verdict = judge.run(f"{FOLDER}/{function}")
    assert verdict.status == status, verdict.reason
    assert words in (verdict.reason or "")


def test_an_honest_function_between_two_that_patch_its_process_is_as_alone(
    matbench: Matbench,
) -> None:
    names = ("cheat_events", "honest", "cheat_tf32")
    together = [f"{FILE}::{name}" for name in names]
    matbench("run", *together, "--sizes", "1000", "--backend", "cuda", code=1)
    by_name = {outcome.case.kernel: outcome for outcome in last_run()}
    matbench("run", f"{FILE}::honest", "--sizes", "1000", "--backend", "cuda")
    [alone] = last_run()
    assert by_name["honest"].status == alone.status == "measured"
    assert by_name["honest"].accuracy == alone.accuracy
    assert by_name["cheat_events"].status == by_name["cheat_tf32"].status == "wrong"


DECLARED = """
import torch

# /// matbench
# precision = "bfloat16"
# result = "float32"
# ///
def bfloat16(A, B, C):
    assert A.dtype == torch.bfloat16
    torch.mm(A, B, out_dtype=torch.float32, out=C)

# /// matbench
# precision = "float16"
# transpose = "NT"
# ///
def transposed(x, w):
    return x @ w.T

# /// matbench
# batch = [3]
# alpha = [1, 2]
# beta = [0, 0.5]
# ///
def batched(A, B, C, alpha, beta):
    torch.baddbmm(C, A, B, alpha=alpha, beta=beta, out=C)

# /// matbench
# layout = "column-major"
# padding = 4
# ///
def by_columns(A, B, C):
    torch.mm(A, B, out=C)
"""


@pytest.mark.parametrize("function", ["bfloat16", "transposed", "batched", "by_columns"])
def test_what_a_table_declares_is_what_a_function_gets(
    function: str, judge: api.Judge, tmp_path: Path
) -> None:
    file = tmp_path / "declared.py"
    file.write_text(DECLARED)
    verdict = judge.run(f"{file}::{function}", sizes="96x80x64")
    assert (verdict.status, verdict.reason) == ("measured", None)


def test_the_example_of_the_documentation(judge: api.Judge, tmp_path: Path) -> None:
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    [example, *_] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "product.py"
    file.write_text(example)
    verdict = judge.run(f"{file}::multiply", sizes="256,1000")
    assert (verdict.status, verdict.reason) == ("measured", None)
    assert {case.case.params["BLOCK"] for case in verdict.cases} == {32, 64}
    file.write_text(example.replace(', input_precision="ieee"', ""))
    default = judge.run(f"{file}::multiply")
    assert "as exact as TF32 inputs" in present(default.reason)


@pytest.mark.alone
def test_a_library_call_is_as_fast_as_the_baseline(judge: api.Judge, tmp_path: Path) -> None:
    file = tmp_path / "declared.py"
    file.write_text(DECLARED)
    compared = judge.compare("cublas-bf16", f"{file}::bfloat16", sizes="4096")
    assert compared.verdict == "SAME"
