"""matbench's own kernels: what makes inputs, fills and hashes memory, and compares results.

Every buffer that a kernel may touch lies between guards of NaNs that arithmetic cannot make. An
out-of-bounds write changes a guard; an out-of-bounds read returns a NaN, which multiplying by zero
does not remove.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from matbench import workloads
from matbench.backends.protocol import Argument, Backend, Buffer, Program
from matbench.cache import kept
from matbench.errors import BuildError, CaseError
from matbench.kernelfile import signature
from matbench.model import Kernel, Launch, LaunchRules, Parameter, Params

# Quiet NaNs with payloads that arithmetic does not make. Each place has its own: some devices keep
# payloads in arithmetic, so a stray value written to a guard must differ from the guard, and the
# payload of a NaN in C shows where it came from. Two equal ones are a NaN as a float64, too.
#: C before a launch.
UNWRITTEN = 0x7FF8DEAD
#: The guards around C.
OUTSIDE_C = 0x7FF8C0DE
#: The guards around A and B.
OUTSIDE_INPUTS = 0x7FF8A5B5
#: Shared memory before a launch.
UNSHARED = 0x7FF85EED
#: A workspace before a launch, and the guards around it. Their halves are NaNs of 16 bits, too.
UNWORKED = 0x7FF87FDB
OUTSIDE_WORKSPACE = 0x7FF87FD5
#: C of 16 bits before a launch: NaN as bfloat16 and as float16.
UNWRITTEN_NARROW = 0x7FDE
#: The guards around C, and around A and B, by the bytes of a word: as `UNWRITTEN_NARROW` for 16
#: bits; bytes are NaN in both 8-bit floating-point types, and as int8 they are its largest number.
GUARDS = {1: (0x7F, 0x7F), 2: (0x7FC3, 0x7FC1)} | dict.fromkeys((4, 8), (OUTSIDE_C, OUTSIDE_INPUTS))

THREADS = 256
ANY = 2**63  # elements, for as many blocks as a kernel is ever launched with
_BLOCKS = {"gpu": 8, "cpu": 4}  # of each multiprocessor
_NONE: Params = {}
#: The parameters of a kernel of `memory.cu` for words of each size; 8 bytes are two words.
WORD_PARAMS = {1: {"WORD_BYTES": 1}, 2: {"WORD_BYTES": 2}, 4: _NONE, 8: _NONE}
_FOLDER = Path(__file__).parent / "device_code"
_WORKLOADS = Path(workloads.__file__).parent
_INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)


class DeviceKernels:
    """Those of one device, built when they are first launched."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.blocks = _BLOCKS[backend.info.kind] * backend.info.limits["multiprocessors"]
        self.programs: dict[tuple[object, ...], Program] = {}
        try:
            self.program("memory.cu", "mask_words")
        except BuildError as error:
            raise CaseError(
                f"cannot check results on {backend.info.label}, which needs float64: {error.reason}"
            ) from None
        self.sink = backend.allocate(4)
        #: What blocks report of a comparison, and of the hashes before and after a launch.
        self.partial = backend.allocate(3 * 3 * 8 * self.blocks)

    def close(self) -> None:
        for buffer in (self.sink, self.partial):
            self.backend.release(buffer)

    def program(self, file: str, entry: str, params: Params = _NONE) -> Program:
        key = file, entry, tuple(params.items())
        if key not in self.programs:
            self.programs[key] = self.backend.build(device_kernel(file, entry), params)
        return self.programs[key]

    def start(
        self, file: str, entry: str, *given: Argument, size: int = ANY, params: Params = _NONE
    ) -> None:
        """Launch a kernel with these arguments, in enough blocks for `size` elements (1: one)."""
        blocks = min(self.blocks, max(1, -(-size // THREADS)))
        launch = Launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))
        self.program(file, entry, params).launch(launch, given)

    def fill(self, buffer: Buffer, start: int, count: int, value: int, word_bytes: int = 4) -> None:
        """Write `value` into words `start` to `start + count` of a buffer; 8 bytes are two."""
        if word_bytes == 8:
            start, count = 2 * start, 2 * count
        if count:
            where = buffer, start, count, value
            params = WORD_PARAMS[word_bytes]
            self.start("memory.cu", "fill_words", *where, size=count, params=params)

    def hashed(self, key: int, *buffers: Buffer) -> int:
        """The hash of some buffers, each from its start on."""
        sizes = [(buffer, -(-buffer.nbytes // 4)) for buffer in buffers]
        for number in range(0, len(sizes), 2):  # two at once
            one, other = sizes[number], (sizes[number + 1 :] or [(self.partial, 0)])[0]
            where = *one, 0, 0, *other, key, self.partial, 0, int(number > 0)
            self.start("memory.cu", "hash_words", *where)
        reports = np.empty((self.blocks, 3), np.uint64)
        self.backend.read(self.partial, reports)
        return int(reports[:, 0].sum())

    def hold(self, duration_ns: int) -> None:
        """Keep a CUDA device busy for about this long, counting 2 cycles per nanosecond."""
        if self.backend.info.backend == "cuda":
            once = Launch(grid=(1, 1, 1), block=(1, 1, 1))
            self.program("hold.cu", "hold").launch(once, [2 * duration_ns])

    def poison_shared(self, value: int = UNSHARED) -> None:
        """Fill the shared memory of every multiprocessor with `value`."""
        limits = self.backend.info.limits
        launch = Launch(
            # Enough blocks to reach all; a CPU distributes blocks less evenly.
            grid=((2 if self.backend.info.kind == "gpu" else 8) * limits["multiprocessors"], 1, 1),
            block=(min(1024, limits["max_threads_per_block"]), 1, 1),
            shared_bytes=limits["max_shared_bytes_per_block"],
        )
        program = self.program("poison.cu", "poison_shared")
        program.launch(launch, [self.sink, value, launch.shared_bytes // 4])


def device_source(file: str, folder: Path = _FOLDER) -> str:
    """The source text of a file of `device_code`, of `workloads`, or of a feature's folder, with
    the files that it includes in it."""
    text = _place(file, folder).read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda match: device_source(match[1], folder), text)


def _place(file: str, folder: Path) -> Path:
    return next(at / file for at in (folder, _FOLDER, _WORKLOADS) if (at / file).is_file())


def preload() -> None:
    """Read those that matrix products need: processes that are forked later need not."""
    of_product = f"{workloads.DEFAULT}/samples.cu"
    for file in (*(path.name for path in _FOLDER.glob("*.cu")), of_product):
        for entry in _entries(device_source(file)):
            device_kernel(file, entry)


@cache
def _entries(source: str) -> dict[str, tuple[Parameter, ...]]:
    """The kernels of a source, and their parameters."""

    def found() -> bytes:
        functions = signature.functions(source)
        return msgspec.msgpack.encode({one.name: one.parameters for one in functions})

    return msgspec.msgpack.decode(kept(source, found), type=dict[str, tuple[Parameter, ...]])


@cache
def device_kernel(file: str, entry: str, folder: Path = _FOLDER) -> Kernel:
    """One of matbench's own kernels."""
    source = device_source(file, folder)
    return Kernel(
        name=entry,
        summary="",
        launch=LaunchRules(block=(1,), grid=(1,)),
        entry=entry,
        source=source,
        path=_place(file, folder).relative_to(Path(__file__).parents[2]).as_posix(),
        sha256=hashlib.sha256(source.encode()).hexdigest(),
        parameters=_entries(source)[entry],
    )
