"""Machine code as text: runs nvdisasm on what nvcc makes of a kernel."""

from __future__ import annotations

import hashlib
import re
import subprocess
from functools import cache
from typing import NamedTuple

from matbench import files
from matbench.backends.cuda import compilation
from matbench.backends.protocol import UnavailableError
from matbench.cache import Cache
from matbench.errors import BuildError
from matbench.model import Kernel, Resources


class Disassembly(NamedTuple):
    """A kernel's machine code: nvdisasm's listing of `entry`, for `architecture` (`sm_90a`)."""

    listing: str
    entry: str
    architecture: str
    resources: Resources


@cache
def nvdisasm() -> str:
    """The path of nvdisasm; `UnavailableError` says how to get it."""
    path = compilation.find("nvdisasm")
    if path is None:
        raise UnavailableError(
            "nvdisasm is missing", "install the CUDA toolkit, or pip install nvidia-cuda-nvdisasm"
        )
    return str(path)


def disassembled(
    capability: tuple[int, int], kernel: Kernel, params: dict[str, int], cache: Cache
) -> Disassembly:
    """A kernel's machine code for a compute capability; needs no GPU or PyCUDA.

    `UnavailableError` without nvcc and nvdisasm for it, `BuildError` for a bad source.
    """
    nvdisasm()
    code = compilation.compiled_by_nvcc(capability, kernel, params, cache)
    key = repr(("nvdisasm", hashlib.sha256(code.cubin).hexdigest(), code.entry))
    listing = cache.get_or_make(key, lambda: _listing(code.cubin, code.entry).encode())
    real = code.request.virtual_and_real[1]
    return Disassembly(bytes(listing).decode(), code.entry, real, code.resources)


def _listing(cubin: bytes, entry: str) -> str:
    """The sections that describe an entry; those for debuggers are ten times as long."""
    with files.temporary_folder() as folder:
        path = folder / "made.cubin"
        path.write_bytes(cubin)
        asked = (nvdisasm(), "-hex", "-ndf", str(path))
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first, *_ = [*done.stderr.splitlines(), "no message"]
        raise BuildError(f"nvdisasm: {first.replace(str(path), 'the cubin').strip()}")
    sections = re.split(r"^(?=//-{5})", done.stdout, flags=re.MULTILINE)
    names = (f".text.{entry} ", f".nv.info.{entry} ")
    return "".join(section for section in sections if any(name in section[:400] for name in names))
