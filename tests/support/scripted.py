"""A device that computes nothing: each kernel says in macros what its launches do.

    #define TAKES 1000 * TILE    // nanoseconds
    #define WRONG K == 33        // whether C is wrong
    #define SAYS "a text"        // is printed, once
    #define HANGS N == 21        // whether it never ends
    #error a text                // it does not compile, or only #if on the line before

They may name constants of the sweep, integers that the kernel is passed, and other macros, also of
headers. Without them its results are right. The device stands in for both backends, as the only one
there is: everything but building, launching and comparing is matbench's own.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec
from multiprocessing import forkserver
from types import SimpleNamespace
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import numpy.typing as npt

from matbench.backends.protocol import Argument, Buffer, Call, Program, UnavailableError, Work
from matbench.bench.options import Options
from matbench.cache import Cache
from matbench.errors import BuildError
from matbench.kernelfile import includes
from matbench.model import Conditions, DeviceInfo, Kernel, Launch, Resources
from support.devices import CPU
from support.paths import ROOT, STARTUP, TESTS

DEVICE = msgspec.structs.replace(CPU, name="A scripted device")
DEVICES = [DEVICE]
#: Of its samples, so that their median has an interval.
_JITTER = (1.0, 1.001, 0.999, 1.002, 0.998)
_MACRO = re.compile(r"^#define +([A-Z]+)\b *(.*)$", re.MULTILINE)
_ERROR = re.compile(r"^(?:#if (.*)\n)?#error (.*)$", re.MULTILINE)
_NONE = 2**64 - 1


class Memory:
    """Bytes that a view shares."""

    def __init__(self, words: npt.NDArray[np.uint8]) -> None:
        self.handle, self.nbytes = words, words.nbytes

    def view(self, offset_bytes: int, nbytes: int) -> Memory:
        return Memory(self.handle[offset_bytes : offset_bytes + nbytes])


class _Names(dict[str, Any]):
    """Those of arguments and constants, and of other macros."""

    def __init__(self, known: dict[str, Any], script: dict[str, str]) -> None:
        super().__init__(known)
        self.script = script

    def __missing__(self, name: str) -> Any:
        return eval(self.script[name], {}, self)


class ScriptedProgram(Program):
    """A kernel of a test; of matbench's own, `seal` alone does anything."""

    resources = Resources(static_shared_bytes=0, max_threads_per_block=1024)

    def __init__(self, device: ScriptedDevice, kernel: Kernel, params: dict[str, int]) -> None:
        self.device, self.kernel, self.params = device, kernel, params
        texts = [*includes.texts(kernel.includes), kernel.source]
        self.script = dict(_MACRO.findall("\n".join(texts)))
        self.takes_ns = 0.0

    def call(self, launch: Launch, arguments: Sequence[Argument]) -> Call:
        run = partial(self._run, arguments)
        return Call(run, program=self, arguments=arguments)

    def _run(self, arguments: Sequence[Argument]) -> None:
        if self.kernel.entry == "seal":
            self.device.seal(*arguments)
        if self.kernel.path.startswith("matbench/"):  # one of its own
            return
        named: dict[str, Any] = dict(zip(self.kernel.args, arguments, strict=False))
        named |= self.params
        if self._value("HANGS", named, False):
            time.sleep(1e6)
        if "SAYS" in self.script:
            print(self.script.pop("SAYS").strip('"'), flush=True)
        work = math.prod(float(named.get(size, 1)) for size in "MNK")
        kind = zlib.crc32(repr((self.kernel.source, self.params)).encode()) / 2**32
        usual_ns = 1000 + work * (1 + kind)
        self.takes_ns = float(self._value("TAKES", named, usual_ns))
        self.device.is_wrong = bool(self._value("WRONG", named, False))

    def _value(self, macro: str, named: dict[str, Any], usual: Any) -> Any:
        names = _Names(named, self.script)
        return eval(self.script[macro], {}, names) if macro in self.script else usual


class ScriptedDevice:
    """The open device."""

    clock_is_sm = False
    variants = ("plain",)

    def __init__(self, info: DeviceInfo, cache: Cache) -> None:
        self.info, self.cache = info, cache
        self.is_wrong = False
        self._jitter = itertools.cycle(_JITTER)

    def allocate(self, nbytes: int, *, is_given: bool = False) -> Memory:
        return Memory(np.zeros(nbytes, np.uint8))

    def memory_without(self, buffers: Sequence[Buffer]) -> list[Memory]:
        return []  # nothing is hashed

    def write(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        buffer.handle[: array.nbytes] = array.reshape(-1).view(np.uint8)

    def read(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        array.reshape(-1).view(np.uint8)[:] = buffer.handle[: array.nbytes]

    def build(self, kernel: Kernel, params: dict[str, int], *_: Any, **__: Any) -> Program:
        for found in _ERROR.finditer(kernel.source):
            if found[1] is None or eval(found[1], dict(params)):
                line = 1 + kernel.source.count("\n", 0, found.start(2))
                raise BuildError(f"{kernel.path}:{line}:2: error: {found[2]}")
        return ScriptedProgram(self, kernel, params)

    def seal(self, *arguments: Any) -> None:
        """Say that the last kernel that was launched was right or wrong; see `Samples.verdicts`."""
        from matbench.bench.samples import drawn  # which is slow to import

        *_, seal, results, number, elements, _ = arguments
        wrong, first = (elements, 0) if self.is_wrong else (0, _NONE)
        told = (wrong, first, 0)
        words = [drawn(seal, place) ^ value for place, value in enumerate(told)]
        words.append(drawn(drawn(drawn(seal, wrong), first), 0))
        results.handle.view(np.uint64)[4 * number : 4 * number + 4] = words

    def timed_ns(self, work: Work) -> float:
        for call in work.calls:
            call.run()
        times_ns = [getattr(call.program, "takes_ns", 0.0) or 100.0 for call in work.calls]
        return next(self._jitter) * sum(times_ns) / len(times_ns)

    def clock_agrees(self) -> bool:
        return True

    def conditions(self) -> Conditions:
        return Conditions()

    def energy_j(self) -> None:
        return None

    def release(self, buffer: Buffer) -> None: ...
    def copy(self, target: Buffer, source: Buffer) -> None: ...
    def reset_cache(self) -> None: ...
    def synchronize(self) -> None: ...
    def close(self) -> None: ...


def _none() -> list[DeviceInfo]:
    raise UnavailableError("no CUDA beside a scripted device")


#: What stands in for the modules of backends; those below `cuda` are as usual.
STAND_INS: dict[str, Any] = {
    "matbench.backends.opencl": SimpleNamespace(
        devices=lambda: DEVICES, open_device=ScriptedDevice, LIBRARY="none"
    ),
    "matbench.backends.cuda": SimpleNamespace(
        devices=_none,
        LIBRARY="none",
        gpu_is_present=lambda: False,
        __path__=[str(ROOT / "matbench" / "backends" / "cuda")],
    ),
}
for _name, _module in STAND_INS.items():
    _module.__name__, _module.__spec__ = _name, ModuleSpec(_name, None)
#: The variables with which other processes have it.
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(
        filter(None, (str(STARTUP), str(TESTS), os.environ.get("PYTHONPATH")))
    )
}
_real: dict[str, Any] = {}


def stand_in(wanted: bool) -> None:
    """From now on, this process has the scripted device, or again its own modules."""
    for name, module in STAND_INS.items():
        known = sys.modules.pop(name, None)
        if known is not module:
            _real[name] = known
        taken = module if wanted else _real.get(name)
        if taken is not None:
            sys.modules[name] = taken


@contextmanager
def device() -> Iterator[None]:
    """Commands that begin here, and processes for workers that are made here, have it."""
    from matbench.worker import process, worker

    process._context()  # the server of processes, which serves others, too, is as usual
    forkserver.ensure_running()
    with mock.patch.dict(os.environ, ENVIRONMENT), mock.patch.object(worker, "_begin", begin):
        stand_in(True)
        try:
            yield
        finally:
            stand_in(False)


def begin(device: DeviceInfo, options: Options, _: bool) -> None:
    """In a worker process, in place of its `_begin`."""
    from matbench.worker import worker

    stand_in(True)
    worker._begin(device, options, False)
