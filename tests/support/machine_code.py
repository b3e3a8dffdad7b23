"""Machine code of small kernels: compiled with nvcc, listed by nvdisasm, and read."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from matbench.backends.cuda import compilation
from matbench.backends.protocol import UnavailableError
from matbench.cache import Cache
from matbench.features.explain import disassembly
from matbench.features.explain.architectures import named
from matbench.features.explain.sass import flow, listing
from matbench.features.explain.sass.tally import Tally, tally
from support.nvcc import compile_cubin

#: The address of the buffer.
BUFFER = 1 << 40


def missing() -> str | None:
    """Why machine code cannot be read here; None if it can."""
    try:
        compilation.nvcc(), disassembly.nvdisasm()
    except UnavailableError as error:
        return str(error)
    return None


needs_nvdisasm = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@functools.cache
def listed(source: str, arch: str = "sm_90") -> str:
    """nvdisasm's listing of a source whose entry is `k`; it is kept, for nvcc takes a second."""

    def make() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path, cubin = Path(folder, "k.cu"), Path(folder, "k.cubin")
            path.write_text(source)
            cubin.write_bytes(compile_cubin(path, arch))
            asked = [disassembly.nvdisasm(), "-hex", str(cubin)]
            return subprocess.run(asked, check=True, capture_output=True).stdout

    key = f"listing {compilation.nvcc().release} {arch}\n{source}"
    return bytes(Cache().get_or_make(key, make)).decode()


def listing_of(*lines: tuple[str, int]) -> str:
    """nvdisasm's text for instructions with the upper half of their encoding."""
    shown = ["//--------------------- .text.k  ------------"]
    for index, (text, upper) in enumerate(lines):
        shown.append(f"        /*{16 * index:04x}*/  {text} ;  /* {0:#018x} */")
        shown.append(f"        /* {upper:#018x} */")
    return "\n".join(shown) + "\n"


def code_of(*instructions: str, labels: Mapping[int, str] | None = None) -> flow.FlowGraph:
    """The code of these instructions, with labels by address."""
    text = listing_of(*((each, 0) for each in instructions))
    for address, label in (labels or {}).items():
        text = text.replace(f"        /*{address:04x}*/", f"{label}:\n        /*{address:04x}*/")
    return flow.code(listing.function(text, "k"))


def followed(
    source: str, *numbers: int, arch: str = "sm_90", block: int = 32, grid: int = 1
) -> Tally:
    """What a block does; the kernel takes `float *`, then these whole numbers."""
    code = flow.code(listing.function(listed(source, arch), "k"))
    constants = {0: block, 4: 1, 8: 1, 12: grid, 16: 1, 20: 1}
    for index, (offset, nbytes) in sorted(code.function.parameters.items()):
        if nbytes == 8:
            constants |= {offset: 0, offset + 4: BUFFER >> 32}
        else:
            constants[offset] = numbers[index - 1]
    rates = dict[str, int](named(arch).tensor_fma.items())
    return tally(code, (block, 1, 1), (grid, 1, 1), constants, rates)
