"""CUDA C that tests read and rewrite."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from matbench.backends.protocol import Argument, Backend, Program
from matbench.kernelfile import catalogue, signature
from matbench.model import Kernel, Launch, LaunchRules
from support.kernels import kernel_text, saved, text_of

PATH = "folder/mine.cu"
ONE = Launch(grid=(1, 1, 1), block=(1, 1, 1))
SEVERAL = text_of("several.cu")


def kernel(source: str = SEVERAL, entry: str = "entry", path: str = PATH) -> Kernel:
    """A kernel with this source, without its front matter."""
    [parameters] = [one.parameters for one in signature.functions(source) if one.name == entry]
    return Kernel(
        name="mine", summary="", launch=LaunchRules(block=(1,), grid=(1,)), entry=entry,
        source=source, path=path, parameters=parameters,
    )  # fmt: skip


def lines_of_the_kernel(unit: str, path: str = PATH) -> list[str]:
    """What follows `#line 1 "path"`: the compiler counts these."""
    _, body = unit.split(f'#line 1 "{path}"\n')
    return body.splitlines()


#: Values of every type of a parameter: different sizes, so that a wrong one shows.
VALUES = {
    "int": -(2**31), "unsigned": 2**32 - 1, "unsigned int": 7, "float": 1.5, "double": 0.1,
    "size_t": 2**40 + 1, "long": -(2**40), "unsigned long": 2**63, "long long": 2**40 + 3,
    "unsigned long long": 2**64 - 1, "short": -300, "char": -5, "bool": 1,
    "unsigned short": 65_535, "signed char": -128, "unsigned char": 255,
    "__half": -0.375, "__nv_bfloat16": -3.5,
}  # fmt: skip


def launched(
    backend: Backend, program: Program, count: int, *more: Argument, launch: Launch = ONE
) -> list[float]:
    """The first numbers of C after a launch that is given it as A, B and C, and more."""
    C, found = backend.allocate(4 * count), np.empty(count, np.float32)
    program.launch(launch, [C, C, C, *more])
    backend.read(C, found)
    backend.release(C)
    return [float(number) for number in found]


def arrived(backend: Backend, folder: Path, kinds: list[str], head: str = "") -> dict[str, float]:
    """Of each type, whether a kernel with a parameter of every one gets the value."""
    declared = ", ".join(f"const {kind} v{number}" for number, kind in enumerate(kinds))
    stores = " ".join(
        f"C[{number}] = v{number} == ({kind})({VALUES[kind]!r}{'ul' * (VALUES[kind] >= 2**63)});"
        for number, kind in enumerate(kinds)
    )
    given = "const float *A, const float *B, float *C"
    body = f'{head}extern "C" __global__ void mine({given}, {declared}) {{ {stores} }}\n'
    front = f"args = {['A', 'B', 'C', *['1'] * len(kinds)]}"
    path = saved(folder / "mine.cu", kernel_text(front=front, body=body))
    program = backend.build(catalogue.load(path), {"TILE": 8})
    found = launched(backend, program, len(kinds), *(VALUES[kind] for kind in kinds))
    return dict(zip(kinds, found, strict=True))
