"""The reason of a wrong kernel names the mistake: terms of K, precision, compilers' warnings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support.cli import QUICK, Matbench, last_run
from support.golden import told_again
from support.kernels import saved, text_of
from support.optional import present
from support.paths import output_of
from support.sources import kernel

from matbench.backends.building import warnings_of

NAIVE = text_of("rounding.cu")
LOOP = "float sum = 0; for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];"


def written(folder: Path, body: str, real: str = "float") -> Path:
    text = NAIVE.replace("BODY", body).replace("REAL", real)
    return saved(folder / "mine.cu", text)


def reasons(matbench: Matbench, path: Path | str, sizes: str) -> list[str]:
    matbench("run", path, "--sizes", sizes, *QUICK, code=1)
    return [present(outcome.reason) for outcome in last_run()]


def ends(found: list[str]) -> str:
    """What reasons say last, beyond places and sizes of errors."""
    return " | ".join(dict.fromkeys(reason.rpartition("; ")[2] for reason in found))


def test_a_wrong_kernel_is_told_what_it_does(
    tmp_path: Path, matbench: Matbench, file_regression: FileRegressionFixture
) -> None:
    """And once it declares that, it is right."""

    def said(source: str) -> str:
        (_, sizes, real), body = source.split("\n")[0].split(), source.partition("\n")[2]
        path = written(tmp_path, body, real)
        found = reasons(matbench, path, sizes)
        told = ends(found)
        if declare := re.search(r'declare `(\w+) = "(\w+)"`', told):
            assert all("; largest error " in one and "× the bound; " in one for one in found)
            front_matter = f"{declare[1]}={declare[2]}"
            matbench("run", path, "--sizes", sizes, "--front-matter", front_matter, *QUICK)
        return told

    told_again(Path(__file__).with_name("reasons.txt"), said, file_regression)


def test_a_cast_is_told(
    tmp_path: Path, matbench: Matbench, file_regression: FileRegressionFixture
) -> None:
    def said(product: str) -> str:
        path = tmp_path / "mine.py"
        saved(path, f"import numpy as np\n\n\ndef f(A, B):\n    return {product}\n")
        [reason] = reasons(matbench, f"{path}::f", "8x8x60")  # fewer elements tell nothing
        assert "; largest error " in reason
        return ends([reason])

    told_again(Path(__file__).with_name("reasons-of-casts.txt"), said, file_regression)


def test_a_wrong_kernel_shows_its_compilers_warnings(tmp_path: Path, matbench: Matbench) -> None:
    """Also if its build was kept; a right kernel comes without."""
    body = f"int unused;\n        {LOOP.replace('sum = 0', 'sum')}"
    path = written(tmp_path, body)
    for _ in range(2):
        [reason] = reasons(matbench, path, "64")
        assert reason.endswith("; mine.cu:11: variable 'sum' is uninitialized when used here")
    body = "float other; if (K < 0) other += 1;\n" + LOOP
    right = written(tmp_path, body)
    matbench("run", right, "--sizes", "64", *QUICK)
    assert "uninitialized" not in str(last_run())


@pytest.mark.long
def test_an_endless_kernel_shows_its_compilers_warnings(tmp_path: Path, matbench: Matbench) -> None:
    body = LOOP.replace("int k = 0; k < K; ++k", "unsigned k = K - 1; k >= 0; --k")
    path = written(tmp_path, body)
    matbench("run", path, "--sizes", "64", "--timeout", "3", *QUICK, code=None)
    [outcome] = last_run()
    assert "mine.cu:10: result of comparison of unsigned expression >= 0 is always true" in present(
        outcome.reason
    )


NVCC = output_of("nvcc-warnings.txt")


def test_nvccs_warnings_of_the_kernels_own_file_are_read() -> None:
    assert warnings_of(NVCC, kernel()) == (
        "mine.cu:7: pointless comparison of unsigned integer with zero",
    )
