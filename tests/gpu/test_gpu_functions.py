"""Functions of PyTorch, Triton, CuPy, Numba and JAX on a GPU: cheats, twins, and precision."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import Matbench, last_run
from support.functions import measured
from support.kernels import saved
from support.optional import present
from support.paths import FUNCTIONS, ROOT
from support.toml import table

import matbench as api
from matbench.bench.options import CHECKS
from matbench.kernelfile import catalogue
from matbench.model import Kernel
from matbench.records.outcome import Outcome

pytestmark = pytest.mark.gpu

FILE = FUNCTIONS / "on_gpu.py"


@pytest.fixture(scope="module")
def judge() -> Iterator[api.Judge]:
    with api.Judge("1000", backend="cuda", timeout=60) as judge:
        yield judge


@pytest.mark.parametrize("cheat", ["lazy", "recorded"])
def test_work_that_is_put_off_or_denied_is_timed(cheat: str, judge: api.Judge) -> None:
    denied, honest = (judge.run(f"{FILE}::{name}") for name in (f"cheat_{cheat}", "honest"))
    assert denied.status == "wrong" or present(denied.median_ns) > 0.8 * present(honest.median_ns)


def test_honesty_between_two_that_patch_it_is_as_alone(matbench: Matbench) -> None:
    names = ("cheat_events", "honest", "cheat_tf32")
    together = [f"{FILE}::{name}" for name in names]
    matbench("run", *together, "--sizes", "1000", "--backend", "cuda", code=1)
    by_name = {outcome.case.kernel: outcome for outcome in last_run()}
    matbench("run", f"{FILE}::honest", "--sizes", "1000", "--backend", "cuda")
    [alone] = last_run()
    assert by_name["honest"].status == alone.status == "measured"
    assert by_name["honest"].accuracy == alone.accuracy
    assert by_name["cheat_events"].status == by_name["cheat_tf32"].status == "wrong"


DECLARED = Path(__file__).with_name("declared.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("function", ["bfloat16", "transposed", "batched", "by_columns"])
def test_a_function_gets_its_declaration(function: str, judge: api.Judge, tmp_path: Path) -> None:
    file = saved(tmp_path / "declared.py", DECLARED)
    verdict = judge.run(f"{file}::{function}", sizes="96x80x64")
    assert (verdict.status, verdict.reason) == ("measured", None)


def test_the_example_of_the_documentation(judge: api.Judge, tmp_path: Path) -> None:
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    [example, *_] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    file = saved(tmp_path / "product.py", example)
    verdict = judge.run(f"{file}::multiply", sizes="256,1000")
    assert (verdict.status, verdict.reason) == ("measured", None)
    assert {case.case.params["BLOCK"] for case in verdict.cases} == {32, 64}
    file.write_text(example.replace(', input_precision="ieee"', ""))
    default = judge.run(f"{file}::multiply")
    assert "as exact as TF32 inputs" in present(default.reason)


@pytest.mark.alone
def test_a_library_call_is_as_fast_as_the_baseline(judge: api.Judge, tmp_path: Path) -> None:
    file = saved(tmp_path / "declared.py", DECLARED)
    compared = judge.compare("cublas-bf16", f"{file}::bfloat16", sizes="4096")
    [record] = compared.records
    # Where the device's clock swings, the interval is wide.
    low, high = present(present(record.comparison).interval)
    assert low <= 1.02, record
    assert high >= 0.98, record


# -- on the host, which launch kernels or call a library -----------------------------------------


HONEST = table(Path(__file__).with_name("honest.toml"))


def load(entry: str, **given: Any) -> Kernel:
    file = FUNCTIONS / ("host_library.cu" if entry == "library" else "host_on_gpu.cu")
    return catalogue.load(file, given={"entry": f"host {entry}", "sweep": {"END": [1]}} | given)


def run(kernel: Kernel, size: str = "1000", checks: frozenset[str] = CHECKS) -> Outcome:
    return measured(kernel, size, backend="cuda", checks=checks)


@pytest.mark.parametrize("entry", HONEST)
def test_an_honest_function_is_measured(entry: str) -> None:
    outcome = run(load(entry, **HONEST[entry]))
    assert (outcome.status, outcome.reason) == ("measured", None)
    assert present(outcome.host_ns) > 1e3


@pytest.mark.parametrize("entry", HONEST)
def test_one_that_leaves_out_a_term_is_wrong(entry: str) -> None:
    given = HONEST[entry]
    sweep = {**given.get("sweep", {}), "END": [2]}
    assert run(load(entry, **given | {"sweep": sweep}), "1000x1000x256").status == "wrong"


def test_alpha_is_read_on_the_host() -> None:
    kernel = load("launchers::scaled<float, ROWS>", **HONEST["launchers::scaled<float, ROWS>"])
    outcome = measured(kernel, "500x300x400", backend="cuda", factors={"alpha": 2.5})
    assert (outcome.status, outcome.reason) == ("measured", None)


@pytest.mark.alone
def test_a_library_call_of_a_host_is_as_fast_as_the_baseline(tmp_path: Path) -> None:
    text = (FUNCTIONS / "host_library.cu").read_text()
    file = saved(tmp_path / "host_library.cu", text)
    table = 'entry = "host library"\nlink = ["cublas"]\n[sweep]\nEND = [1]\n'
    file.with_suffix(".toml").write_text(table)
    with api.Judge("4096", backend="cuda", timeout=120) as judge:
        compared = judge.compare("cublas", file)
    [ratio] = compared.ratios
    assert ratio == pytest.approx(1, abs=0.02)
