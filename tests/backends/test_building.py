"""Parsing sources and compiler output, independent of the compiler."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.paths import output_of

from matbench.backends import building
from matbench.backends.building import first_error, includes_own_files
from matbench.model import Kernel, LaunchRules

KERNEL = Kernel("mine", LaunchRules(block=(1,), grid=(1,)))

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


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ("int x;", False),
        ("#include <cuda_fp16.h>", False),
        ("  #  include <mine.h>", True),
        ('#include "anything.h"', True),
        ("#include CHOSEN", True),
        ('// #include "mine.h"\n/*\n#include "mine.h"\n*/', False),
        ('const char *text = "#include";', False),
    ],
)
def test_own_includes_are_told_from_the_compilers(source: str, own: bool, tmp_path: Path) -> None:
    (tmp_path / "mine.h").touch()
    kernel = msgspec.structs.replace(KERNEL, source=source, file=str(tmp_path / "mine.cu"))
    assert includes_own_files(kernel) == own


def test_a_compiler_has_a_folder_for_all_that_it_writes(tmp_path: Path) -> None:
    said = building.run(["sh", "-c", "pwd; echo $TMPDIR; cat"], tmp_path, "a text")
    assert said.decode() == f"{tmp_path}\n{tmp_path}\na text"
