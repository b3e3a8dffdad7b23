"""The CPU itself, and NumPy's product on it."""

from __future__ import annotations

import functools
import os
import platform
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from matbench import files
from matbench.backends.protocol import Argument, Array, Backend, Call, Program, Variant, Work
from matbench.kernelfile.front_matter import DEVICE_LIMITS
from matbench.model import NUMPY, Conditions, DeviceInfo, Kernel, Launch, Params, Resources


def devices() -> list[DeviceInfo]:
    """This machine's CPU, with the BLAS that NumPy calls."""
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    library = f"{blas.get('name', 'unknown BLAS')} {blas.get('version', '')}".strip()
    info = DeviceInfo(
        backend="host",
        index=0,
        name=processor(),
        kind="cpu",
        driver=platform.platform(terse=True),
        toolkit=f"NumPy {np.__version__}, {library}",
        limits=dict.fromkeys(DEVICE_LIMITS, 1)
        | {"max_shared_bytes_per_block": 0, "max_static_shared_bytes": 0},
    )
    return [info]


#: Functions of fewer bytes than this are called once before they are timed.
_SMALL_BYTES = 1 << 20


class HostBackend:
    """The CPU, for functions: times them by the host's clock. All else, and all memory, is that of
    another device, which compares their results."""

    variants: tuple[Variant, ...] = ("plain",)

    def __init__(self, info: DeviceInfo, judging: Backend) -> None:
        self.info = msgspec.structs.replace(info, limits=judging.info.limits)
        self.judging = judging

    def __getattr__(self, name: str) -> Any:
        return getattr(self.judging, name)

    def build(self, kernel: Kernel, params: Params, *more: Any, **named: Any) -> Program:
        if kernel.kind == NUMPY:
            return HostProgram(kernel, self.judging, self.info.toolkit)
        return self.judging.build(kernel, params, *more, **named)

    def timed_ns(self, work: Work) -> float:
        if not work.calls[0].runs_on_host:
            return self.judging.timed_ns(work)
        work.ready()
        self.judging.synchronize()
        with np.errstate(all="ignore"):
            return clocked_ns(work.calls)

    def conditions(self) -> Conditions:
        return conditions()

    def energy_j(self) -> float | None:
        return None


def clocked_ns(calls: Sequence[Call]) -> float:
    """The mean time of these calls by the host's clock, or their own; C is taken after each."""
    clock_ns, total_ns = time.perf_counter_ns, 0.0
    for call in calls:
        # No variable holds the first time meanwhile, which the call could find in this frame.
        began_ns, own_ns, ended_ns = map(_called, (clock_ns, call.run, clock_ns))
        total_ns += own_ns if isinstance(own_ns, float) else ended_ns - began_ns
        call.take()
    return total_ns / len(calls)


def _called(function: Callable[[], Any]) -> Any:
    return function()


class HostProgram(Program):
    """One of matbench's own functions in Python, called with copies of its matrices."""

    def __init__(self, kernel: Kernel, judging: Backend, version: str) -> None:
        names: dict[str, Any] = {}
        exec(compile(kernel.source, kernel.file, "exec"), names)  # noqa: S102
        self.function: Callable[..., None] = names[kernel.entry]
        self.args, self.judging = kernel.args, judging
        self.resources = Resources(library=version)

    def call(self, launch: Launch, arguments: Sequence[Argument]) -> Call:
        matrices = [argument for argument in arguments if isinstance(argument, Array)]
        arrays = [np.empty(matrix.shape, matrix.storage) for matrix in matrices]
        for matrix, array in zip(matrices, arrays, strict=True):
            self.judging.read(matrix.matrix, array)
        named = dict(zip(self.args[len(arrays) :], arguments[len(arrays) :], strict=True))
        if sum(array.nbytes for array in arrays) < _SMALL_BYTES:
            with np.errstate(all="ignore"):  # another thread may have copied, on another core
                self.function(*[array.copy() for array in arrays], **named)
        give = functools.partial(self.judging.write, matrices[-1].matrix, arrays[-1])
        run = functools.partial(self.function, *arrays, **named)
        return Call(run, give=give, runs_on_host=True)

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        with np.errstate(all="ignore"):
            super().launch(launch, arguments)


def conditions() -> Conditions:
    """The load of this machine, and its frequency governor."""
    load = governor = None
    with suppress(OSError):
        load = os.getloadavg()[0]
    with suppress(OSError):
        governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text().strip()
    return Conditions(load=load, others_share=_others().share(), governor=governor)


class _Others:
    """The share of the processors' time that other programs, or other virtual machines, took."""

    #: The shortest time to average over: the system counts in steps of 10 ms.
    _SHORTEST_S = 0.2

    _read: tuple[float, float, float] | None = None
    _share: float | None = None

    def share(self) -> float | None:
        """Since the last reading that was long enough before; None until there is one."""
        import psutil

        times = psutil.cpu_times()._asdict()
        # Linux counts the time of guests twice.
        total_s = sum(times.values()) - times.get("guest", 0.0) - times.get("guest_nice", 0.0)
        busy_s = total_s - times["idle"] - times.get("iowait", 0.0)
        now = time.process_time(), busy_s, total_s  # of this process, of all, and with idle time
        self._read = before = self._read or now
        own_s, busy_s, total_s = (b - a for a, b in zip(before, now, strict=True))
        if total_s >= self._SHORTEST_S * (os.cpu_count() or 1):
            self._read = now
            self._share = min(max((busy_s - own_s) / total_s, 0.0), 1.0)
        return self._share


_others = functools.cache(_Others)


def processor() -> str:
    named = re.search(r"^model name.*?: *(.+)$", files.told(Path("/proc/cpuinfo")), re.MULTILINE)
    return named[1].strip() if named else platform.processor() or platform.machine()
