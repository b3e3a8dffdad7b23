"""The reasons given for a wrong C."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from support.cli import QUICK, Matbench, last_run
from support.golden import TableRegression
from support.kernels import saved, text_of
from support.optional import present
from support.paths import output_of
from support.sources import kernel

from matbench.backends.building import warnings_of
from matbench.bench import diagnosis

VECTOR = text_of("vector.cu")


def test_what_is_wrong_with_a_vector(
    matbench: Matbench, tmp_path: Path, table_regression: TableRegression
) -> None:
    """A kernel over N numbers has one thread each; a sum has one block."""

    def said(source: str) -> str:
        (_, workload, sizes, inputs), body = (
            source.split("\n")[0].split(),
            source.partition("\n")[2],
        )
        text = VECTOR.replace("WORKLOAD", workload).replace("BODY", body)
        dot = workload == "dot"
        text = text.replace("ARGS", '"A", "B", "C", "N"' if dot else '"A", "C", "N"')
        text = text.replace("GRID", "1" if dot else "ceil_div(N, 64)")
        parameters = "const float *A, const float *B, float *C" if dot else "const int *A, int *C"
        path = saved(tmp_path / "mine.cu", text.replace("PARAMETERS", parameters))
        matbench("run", path, "--sizes", sizes, "--inputs", inputs, *QUICK, code=1)
        return " | ".join(present(outcome.reason) for outcome in last_run())

    table_regression("reasons-of-vectors.txt", said)


def test_where_c_is_wrong(table_regression: TableRegression) -> None:
    """Of C's shape, the wrong elements as a slice, and constants."""

    def words(question: str) -> str:
        size, where, *constants = re.split(": |; ", question)
        shape = [int(side) for side in size.split(" × ")]
        expected = np.arange(1.0, math.prod(shape) + 1, dtype=np.float32).reshape(shape)
        wrong = np.zeros(shape, bool)
        wrong[eval(f"np.s_[{where}]")] = True
        C = np.where(wrong, expected**2 + 7, expected).astype(np.float32)
        params = {name: int(value) for name, value in (one.split("=") for one in constants)}
        return "; ".join(diagnosis.patterns(C, expected, wrong, params)) or "no region"

    table_regression("regions.txt", words)


@pytest.mark.parametrize("many", [2, 3])
def test_three_wrong_elements_are_enough_to_tell_what_they_share(many: int) -> None:
    expected = np.arange(1.0, 118.0, dtype=np.float32).reshape(9, 13)
    wrong = np.zeros(expected.shape, bool)
    wrong[[0, 3, 4][:many], [0, 5, 2][:many]] = True
    C = np.where(wrong, 7, expected).astype(np.float32)
    assert ("all are 7" in diagnosis.patterns(C, expected, wrong, {})) == (many == 3)
    vector = expected[:1, :many]
    shifted = diagnosis.patterns(vector - 1, vector, np.ones(vector.shape, bool), {})
    assert ("shifted by one, towards the end" in shifted) == (many == 3)


@pytest.mark.parametrize(("share", "is_told"), [(0.99, True), (1.05, False)])
def test_what_is_done_to_all_may_vary_a_little(share: float, is_told: bool) -> None:
    """A factor by 1e-4 of it, a sum by 1e-5 of the largest number."""
    expected = np.arange(1.0, 118.0).reshape(9, 13)
    varied = share * np.linspace(-0.5, 0.5, expected.size).reshape(expected.shape)
    for C, words in (
        (2 * expected * (1 + 1e-4 * varied), "each multiplied by 2"),
        (expected + 5 + 1e-5 * 117 * varied, "each off by +5"),
    ):
        told = diagnosis.patterns(C, expected, np.ones(C.shape, bool), {})
        assert (words in told) == is_told


# -- a run, which names mistakes, precision and compilers' warnings ------------------------------


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
    tmp_path: Path, matbench: Matbench, table_regression: TableRegression
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

    table_regression("reasons.txt", said)


def test_a_cast_is_told(
    tmp_path: Path, matbench: Matbench, table_regression: TableRegression
) -> None:
    def said(product: str) -> str:
        path = tmp_path / "mine.py"
        saved(path, f"import numpy as np\n\n\ndef f(A, B):\n    return {product}\n")
        [reason] = reasons(matbench, f"{path}::f", "8x8x60")  # fewer elements tell nothing
        assert "; largest error " in reason
        return ends([reason])

    table_regression("reasons-of-casts.txt", said)


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
