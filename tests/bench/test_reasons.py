"""The reason of a wrong kernel names the mistake: terms of K, precision, compilers' warnings."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import QUICK, Matbench, last_run
from support.kernels import saved, text_of
from support.optional import present, some
from support.paths import output_of
from support.sources import kernel

from matbench.backends.building import warnings_of

NAIVE = text_of("rounding.cu")
LOOP = "float sum = 0; for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];"
CUT = """__device__ float cut(float x)
{
    unsigned bits = __float_as_uint(x);
    bits += ROUND;
    return __uint_as_float(bits & ~MASKu);
}
"""
#: What is added before bits are cut off, which bits these are, and what is said.
ROUNDED = {
    "tf32": ("0xfffu + ((bits >> 13) & 1u)", "0x1fff", "inputs of 11 bits", "tf32"),
    "truncated": ("0u", "0x1fff", "inputs of 11 bits", "tf32"),
    "bfloat16": ("0x7fffu + ((bits >> 16) & 1u)", "0xffff", "inputs of 8 bits", "bfloat16"),
}


def written(folder: Path, body: str, helpers: str = "", real: str = "float") -> Path:
    path = folder / "mine.cu"
    text = NAIVE.replace("HELPERS", helpers).replace("BODY", body).replace("REAL", real)
    path.write_text(text)
    return path


def reasons(matbench: Matbench, path: Path | str, sizes: str) -> list[str]:
    matbench("run", path, "--sizes", sizes, *QUICK, code=1)
    return [present(outcome.reason) for outcome in last_run()]


@pytest.mark.parametrize("kind", some(ROUNDED, "bfloat16"))
def test_a_file_that_rounds_inputs_is_told(kind: str, tmp_path: Path, matbench: Matbench) -> None:
    added, mask, inputs, precision = ROUNDED[kind]
    helpers = CUT.replace("ROUND", added).replace("MASK", mask)
    body = LOOP.replace(
        "A[row * K + k] * B[k * N + col]", "cut(A[row * K + k]) * cut(B[k * N + col])"
    )
    path = written(tmp_path, body, helpers)
    for reason in reasons(matbench, path, "1,40x50x60"):
        assert f'× the bound; as exact as {inputs}: declare `precision = "{precision}"`' in reason
        assert "; largest error " in reason
    matbench("run", path, "--sizes", "40x50x60", "--front-matter", f"precision={precision}", *QUICK)


def test_doubles_with_float_sums_say_what_to_declare(tmp_path: Path, matbench: Matbench) -> None:
    path = written(tmp_path, LOOP, real="double")
    for reason in reasons(matbench, path, "1,40x50x60"):
        assert reason.endswith('as exact as float32 sums: declare `accumulator = "float32"`')
        assert "× the bound; " in reason
    matbench("run", path, "--sizes", "40", "--front-matter", "accumulator=float32", *QUICK)


def test_other_mistakes_of_doubles_are_not_called_so(tmp_path: Path, matbench: Matbench) -> None:
    path = written(
        tmp_path, LOOP.replace("k = 0", "k = 1").replace("float", "double"), real="double"
    )
    [reason] = reasons(matbench, path, "40")
    assert reason.endswith("it leaves out the first term of K")


@pytest.mark.parametrize(
    ("product", "words"),
    [
        pytest.param("np.float32(np.float16(A)) @ np.float32(np.float16(B))",
         'as exact as float16 inputs: declare `precision = "float16"`', marks=pytest.mark.long),
        ("np.float32(np.float16(A) @ np.float16(B))",
         "all of C has only 11 bits, as if it were float16"),
        pytest.param("np.float32(np.float64(A) @ B) * (1 + 2e-5)", "every element",
                     marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_a_cast_is_told(product: str, words: str, tmp_path: Path, matbench: Matbench) -> None:
    path = saved(
        tmp_path / "mine.py", f"import numpy as np\n\n\ndef f(A, B):\n    return {product}\n"
    )
    [reason] = reasons(matbench, f"{path}::f", "8x8x60")  # fewer elements tell nothing
    assert "; largest error " in reason
    assert reason.endswith(words)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ("k < K / 16 * 16", "of K, it leaves out terms 64–76"),
        ("k % 16 != 15", "of K, it leaves out every 16th term from 15 on"),
        pytest.param("k % 16 < 14", "of K, it leaves out terms 14–15 of every 16",
                     marks=pytest.mark.long),
        ("(k < 72 ? k < 64 ? 1 : 2 : 0)",
         "of K, it leaves out terms 72–76 and adds terms 64–71 twice"),
        ("k + 1 != K", "it leaves out the last term of K"),
    ],
)  # fmt: skip
def test_lost_or_doubled_terms(times: str, words: str, tmp_path: Path, matbench: Matbench) -> None:
    body = LOOP.replace("sum +=", f"sum += ({times}) *")
    [reason] = reasons(matbench, written(tmp_path, body), "40x50x77")
    assert reason.split("; ")[-1] == words


def test_rows_of_every_period_are_named(tmp_path: Path, matbench: Matbench) -> None:
    body = f"{LOOP} if (row % 8 > 1) sum += row * col;"
    [reason] = reasons(matbench, written(tmp_path, body), "40x50x30")
    assert reason.endswith("; rows 2–7 of every 8")
    body = f"{LOOP} if (row % 8 > 3 || col % 16 > 3) sum += 1 + row * col;"
    [reason] = reasons(matbench, written(tmp_path, body), "40x50x30")
    assert reason.endswith("; right only in rows 0–3 of every 8, columns 0–3 of every 16")


def test_a_wrong_kernel_shows_its_compilers_warnings(tmp_path: Path, matbench: Matbench) -> None:
    """Also if its build was kept; a right kernel comes without."""
    body = f"int unused;\n        {LOOP.replace('sum = 0', 'sum')}"
    path = written(tmp_path, body)
    for _ in range(2):
        [reason] = reasons(matbench, path, "64")
        assert reason.endswith("; mine.cu:12: variable 'sum' is uninitialized when used here")
    body = "float other; if (K < 0) other += 1;\n" + LOOP
    right = written(tmp_path, body)
    matbench("run", right, "--sizes", "64", *QUICK)
    assert "uninitialized" not in str(last_run())


def test_an_array_that_nothing_clears_is_named(tmp_path: Path, matbench: Matbench) -> None:
    body = LOOP.replace("float sum = 0", "float s[2]").replace("sum +=", "s[k % 2] +=")
    [reason] = reasons(matbench, written(tmp_path, f"{body} float sum = s[0] + s[1];"), "64")
    assert reason.endswith("; `s` at mine.cu:11 is added to, but never set")


@pytest.mark.long
def test_an_endless_kernel_shows_its_compilers_warnings(tmp_path: Path, matbench: Matbench) -> None:
    body = LOOP.replace("int k = 0; k < K; ++k", "unsigned k = K - 1; k >= 0; --k")
    path = written(tmp_path, body)
    matbench("run", path, "--sizes", "64", "--timeout", "3", *QUICK, code=None)
    [outcome] = last_run()
    assert "mine.cu:11: result of comparison of unsigned expression >= 0 is always true" in present(
        outcome.reason
    )


NVCC = output_of("nvcc-warnings.txt")


def test_nvccs_warnings_of_the_kernels_own_file_are_read() -> None:
    assert warnings_of(NVCC, kernel()) == (
        "mine.cu:7: pointless comparison of unsigned integer with zero",
    )
