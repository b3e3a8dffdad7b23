"""Kernel files written by tests, and the built-in kernels."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from matbench.errors import UsageError
from matbench.kernelfile import catalogue
from support.paths import KERNELS

#: The fixture `write_kernel`: from a name and parts of `kernel_text` to the path of the file.
KernelWriter = Callable[..., Path]


def text_of(name: str) -> str:
    """A file of tests/kernels/texts: kernels that tests change, or put into a file of their own."""
    return (KERNELS / "texts" / name).read_text(encoding="utf-8")


GOOD_BODY = text_of("good.cu")

#: Parts of it, for `changed`.
PRODUCT = "A[(size_t)row * K + k] * B[(size_t)k * N + column]"
STORED = "C[(size_t)row * N + column] = sum;"
SIZES = "int M, int N, int K"
PARAMETERS = f"const float *A, const float *B, float *C, {SIZES}"

#: The elements of C that a thread of a kernel as others write it computes.
WHOLE = "row < M && col < N"

#: Runs for many seconds, so that a deadline or Ctrl-C comes first.
SPIN_BODY = text_of("spin.cu")

#: Right, but 20 times slower than necessary.
SLOW_BODY = text_of("slow.cu")


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """The text with the second of each pair in place of the first, which it has."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


#: Wrong, and not to be compiled; as are SPIN_BODY and SLOW_BODY, on the scripted device, too.
WRONG_BODY = "#define WRONG 1\n" + changed(GOOD_BODY, ("k < K", "k < K - 1"))
BROKEN_BODY = "#error no sum\n" + GOOD_BODY

#: The rows of its matrices lie `padding` numbers apart.
PADDED = {
    "front": 'args = ["A", "B", "C", "M", "N", "K", "lda", "ldb", "ldc"]\npadding = 400',
    "body": GOOD_BODY.replace("int K)", "int K, int lda, int ldb, int ldc)")
    .replace("row * K + k", "row * lda + k")
    .replace("k * N + column", "k * ldb + column")
    .replace("row * N + column", "row * ldc + column"),
}


def kernel_text(name: str = "mine", *, front: str = "", launch: str = "", body: str = "") -> str:
    """A kernel file; `front` and `launch` are lines of TOML for the top and for `[launch]`, which
    has a thread for each element unless they give a grid. A body that is a block only is that of
    an entry with the parameters of a product."""
    toml = f'name = "{name}"\nsummary = "For a test"\n{front}\n[sweep]\nTILE = [8]\n[launch]\n'
    if "grid = " not in launch:
        toml += 'block = ["TILE", "TILE"]\ngrid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]\n'
    toml += launch
    lines = "\n".join(f"// {line}".rstrip() for line in toml.splitlines())
    entry = name.replace("-", "_")
    if body.startswith("{"):
        body = f'extern "C" __global__ void ENTRY({PARAMETERS})\n{body}\n'
    return f"// /// matbench\n{lines}\n// ///\n" + (body or GOOD_BODY).replace("ENTRY", entry)


def saved(path: Path, text: str) -> Path:
    """The path, at which this text stands now."""
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path, text: str | bytes | None = None) -> str:
    """The printable line that soon refuses a file, without its path at the start."""
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    started = time.process_time()
    with pytest.raises(UsageError) as refused:
        catalogue.load(path)
    assert time.process_time() - started < 6
    message = str(refused.value)
    assert message.isprintable()
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def own_file(name: str) -> Path:
    """The file of one of matbench's own kernels."""
    return Path(catalogue.Catalogue(catalogue.builtin()).get(name).file)


def plain(
    check: str = WHOLE, width: str = "N", rows: str = "blockDim.y", columns: str = "blockDim.x"
) -> str:
    """One thread per element of C; `check` says which, and `rows` and `columns` are of a block."""
    text = text_of("plain.cu").replace("PARAMETERS", PARAMETERS).replace("CHECKED", check)
    return text.replace("WIDTH", width).replace("ROWS", rows).replace("COLUMNS", columns)
