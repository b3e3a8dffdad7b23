"""`matbench adopt` on a real GPU: every foreign file, including those that need nvcc."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from support import foreign
from support.cli import QUICK, Matbench, last_run
from support.signatures import generated

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", sorted(foreign.COMPUTES))
def test_a_foreign_file_is_adopted_in_a_minute_and_runs(
    name: str, tmp_path: Path, matbench: Matbench
) -> None:
    path = Path(shutil.copy(foreign.FOLDER / name, tmp_path))
    start = time.monotonic()
    output = matbench("adopt", path, "--backend", "cuda").stdout
    assert time.monotonic() - start < 60
    assert f"computes {foreign.COMPUTES[name]}, correct at " in foreign.without_luck(output)
    size = foreign.SIZES.get(name, "192")
    matbench("run", path, "--sizes", size, "--backend", "cuda", *QUICK)
    assert {outcome.status for outcome in last_run()} == {"measured"}


@pytest.mark.parametrize("name", sorted(p.stem for p in (foreign.FOLDER / "wrong").iterdir()))
def test_no_table_is_written_for_a_wrong_kernel(
    name: str, tmp_path: Path, matbench: Matbench
) -> None:
    path = Path(shutil.copy(foreign.FOLDER / "wrong" / f"{name}.cu", tmp_path))
    matbench("adopt", path, "--backend", "cuda", code=1)
    assert list(tmp_path.iterdir()) == [path]


def test_a_template_in_a_header_is_adopted_for_the_file_that_includes_it(
    tmp_path: Path, matbench: Matbench
) -> None:
    shutil.copy(foreign.FOLDER / "sgemm-coalesced.cuh", tmp_path)
    path = tmp_path / "runner.cu"
    path.write_text('#include "sgemm-coalesced.cuh"\nint main() { return 0; }\n')
    matbench("adopt", path, "--backend", "cuda")
    matbench("run", path, "--sizes", "64", "--backend", "cuda", *QUICK)
    assert [outcome.status for outcome in last_run()] == ["measured"]


@pytest.mark.alone
def test_generated_signatures_are_adopted(tmp_path: Path, matbench: Matbench) -> None:
    for seed in range(2000, 2010):
        path = tmp_path / f"kernel-{seed}.cu"
        path.write_text(generated(seed).source)
        matbench("adopt", path, "--backend", "cuda")
