"""Parsing sources and compiler output, independent of the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support.golden import told_again
from support.paths import output_of
from support.samples import any_kernel

from matbench.backends import building
from matbench.backends.building import first_error, includes_own_files

NVCC = output_of("nvcc.txt")
CLANG = output_of("clang.txt")
PTXAS = """ptxas info    : 0 bytes gmem
ptxas error   : Entry function 'mine' uses too much shared data (0x14000 bytes, 0xc000 max)
"""


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (NVCC, NVCC.splitlines()[4:7]),
        (CLANG, CLANG.splitlines()[4:8]),
        (PTXAS, PTXAS.splitlines()[1:]),
        ("nvcc fatal   : Unsupported gpu architecture",
         ["nvcc fatal   : Unsupported gpu architecture"]),
        ("it failed\n\nfor no error it tells\n", ["it failed", "for no error it tells"]),
        ("", []),
    ],
)  # fmt: skip
def test_the_first_error_is_shown_with_its_line(output: str, shown: list[str]) -> None:
    assert first_error(output).splitlines() == shown


def test_own_includes_are_told_from_the_compilers(
    tmp_path: Path, file_regression: FileRegressionFixture
) -> None:
    """A header `mine.h` lies beside the kernel."""
    (tmp_path / "mine.h").touch()

    def said(source: str) -> str:
        kernel = any_kernel(source=source, file=str(tmp_path / "mine.cu"))
        return "its own" if includes_own_files(kernel) else "none of its own"

    told_again(Path(__file__).with_name("includes.txt"), said, file_regression)


def test_a_compiler_has_a_folder_for_all_that_it_writes(tmp_path: Path) -> None:
    said = building.run(["sh", "-c", "pwd; echo $TMPDIR; cat"], tmp_path, "a text")
    assert said.decode() == f"{tmp_path}\n{tmp_path}\na text"
