"""`matbench adopt` on a real GPU: every foreign file, including those that need nvcc."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.cli import QUICK, Matbench, last_run
from support.kernels import saved
from support.paths import FOREIGN
from support.signatures import generated

pytestmark = pytest.mark.gpu


def test_a_template_in_a_header_is_for_its_includer(tmp_path: Path, matbench: Matbench) -> None:
    shutil.copy(FOREIGN / "sgemm-coalesced.cuh", tmp_path)
    path = saved(
        tmp_path / "runner.cu", '#include "sgemm-coalesced.cuh"\nint main() { return 0; }\n'
    )
    matbench("adopt", path, "--backend", "cuda")
    matbench("run", path, "--sizes", "64", "--backend", "cuda", *QUICK)
    assert [outcome.status for outcome in last_run()] == ["measured"]


def test_generated_signatures_are_adopted(tmp_path: Path, matbench: Matbench) -> None:
    for seed in range(2000, 2004):
        path = saved(tmp_path / f"kernel-{seed}.cu", generated(seed))
        matbench("adopt", path, "--backend", "cuda")
