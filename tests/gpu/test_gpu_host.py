"""Functions on the host that launch kernels, or call a library, on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.functions import measured
from support.optional import present
from support.paths import FUNCTIONS

import matbench as api
from matbench.bench.options import CHECKS
from matbench.kernelfile import catalogue
from matbench.model import Kernel
from matbench.records.outcome import Outcome

pytestmark = pytest.mark.gpu

FILE = FUNCTIONS / "host_on_gpu.cu"

#: The tables of honest functions.
HONEST: dict[str, dict[str, Any]] = {
    "plain": {},
    "split": {
        "args": ["A", "B", "C", "M", "N", "K", "workspace"],
        "launch": {"workspace_bytes": "8 * M * N"},
    },
    "library": {"link": ["cublas"]},
    "launchers::scaled<float, ROWS>": {
        "args": ["M", "N", "K", "alpha", "A", "B", "C"],
        "sweep": {"ROWS": [4, 8], "END": [1]},
        "alpha": [1.0, 2.5],
    },
    "launchers::scaled<double, 8>": {"args": ["M", "N", "K", "alpha", "A", "B", "C"]},
    "with_maps": {"requires": ["sm_90a"], "launch": {"where": ["K % 4 == 0", "N % 4 == 0"]}},
}


def load(entry: str, **given: Any) -> Kernel:
    file = FUNCTIONS / "host_library.cu" if entry == "library" else FILE
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
def test_a_library_call_is_as_fast_as_the_baseline(tmp_path: Path) -> None:
    file = tmp_path / "host_library.cu"
    file.write_text((FUNCTIONS / file.name).read_text())
    table = 'entry = "host library"\nlink = ["cublas"]\n[sweep]\nEND = [1]\n'
    file.with_suffix(".toml").write_text(table)
    with api.Judge("4096", backend="cuda", timeout=120) as judge:
        compared = judge.compare("cublas", file)
    [ratio] = compared.ratios
    assert ratio == pytest.approx(1, abs=0.02)
