"""One product as CUDA C, PTX and a cubin, with a table for all of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from matbench.cache import Cache
from support.kernels import text_of
from support.nvcc import find_nvcc

SOURCE = text_of("compiled.cu")
#: The same, right only once: it remembers launches in variables.
COUNTING = "__device__ int launches, done = 1;\n" + SOURCE.replace(
    "float sum = 0.0f;", "float sum = launches == 0 ? 0.0f : 1.0f;"
).replace(
    "beta * *c);", "beta * *c);\n    if (atomicAdd(&done, 1) == M * N)\n        launches = 1;"
)
ARGS = '["M", "N", "K", "alpha", "A", "B", "beta", "C"]'
LAUNCH = '[launch]\nblock = [16, 16]\ngrid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]\n'
TABLE = f'entry = "gemm"\nargs = {ARGS}\n{LAUNCH}'


def make(path: Path, source: str = SOURCE, arch: str = "sm_90") -> Path:
    """Write a kernel in the form that the name of the file ends in, and its table beside it."""
    path.with_suffix(".toml").write_text(TABLE)
    if path.suffix == ".cu":
        path.write_text(source)
        return path
    form = "-ptx" if path.suffix == ".ptx" else "-cubin"

    def compiled() -> bytes:
        command = [str(find_nvcc()), form, f"-arch={arch}", "-x", "cu", "-", "-o", str(path)]
        subprocess.run(command, input=source.encode(), check=True)
        return path.read_bytes()

    path.write_bytes(Cache().get_or_make(repr((form, arch, source)), compiled))
    return path
