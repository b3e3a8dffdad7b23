"""OpenCL: for the CPU of a machine without an NVIDIA GPU, and for other GPUs."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from matbench import files
from matbench.backends import building, host
from matbench.backends.building import apart, first_error, warnings_of
from matbench.backends.protocol import (
    Address,
    Argument,
    Backend,
    Buffer,
    Call,
    Program,
    UnavailableError,
    Variant,
    Work,
)
from matbench.cache import Cache, revision
from matbench.errors import BuildError, CaseError, LackingError, OutOfMemoryError
from matbench.kernelfile import includes, opencl_c, signature, sweep
from matbench.model import Conditions, DeviceInfo, Kernel, Launch, Params, Resources

if TYPE_CHECKING:
    from matbench.backends.functions.isolated import Judged

# Libraries of Intel's runtime; its wheel does not say where they are.
_INTEL_NEEDS = (
    "libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so", "libtbb.so.12", "libtbbmalloc.so.2",
)  # fmt: skip
_SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
_VENDORS = "OCL_ICD_VENDORS"
_INSTALL = "pip install 'matbench-cuda[cpu]'"

LIBRARY = "pyopencl"
# Intel's CPU compiler puts this many work-items into one vector. Without a hint it computes
# narrower blocks one work-item at a time: tiles with T = 8 took six to nine times as long.
_VECTOR_WIDTH = 16
_VECTOR_HINTS = (8, 4, 1)  # the supported ones
#: C++ for OpenCL; like nvcc, without errors for `int pair[2] = {threadIdx.x, threadIdx.y};`.
_CPLUSPLUS = ("-cl-std=CLC++2021", "-Wno-c++11-narrowing")
#: Warnings of what may be a mistake.
_WARNED = ("-Wall", "-Wno-unused", "-Wtautological-unsigned-zero-compare")
#: Environment variables by which runtimes and PyOpenCL build or run kernels differently.
_SETTINGS = (
    "CL_CONFIG_", "DPCPP_CPU_", "SYCL_CPU_", "OPENCL_PROGRAM_", "POCL_", "PYOPENCL_BUILD_OPTIONS",
)  # fmt: skip


class _PyOpenCL(ModuleType):
    """The package, imported when one of its names is first looked up, so that this module can be
    imported without it; then that is an `UnavailableError`."""

    def __getattr__(self, name: str) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import pyopencl
        except ImportError as error:
            raise UnavailableError(f"pyopencl is missing ({error})", _INSTALL) from None
        vars(self).update(vars(pyopencl))  # later names are not looked up here
        return getattr(pyopencl, name)


cl: Any = _PyOpenCL("pyopencl")


@cache
def platforms() -> list[Any]:
    """All runtimes: those in `OCL_ICD_VENDORS`, or else Intel's from wheels and the system's."""
    # A worker process has the environment of the main one, which may not have imported it.
    os.environ["PYOPENCL_NO_CACHE"] = "1"  # it would unpickle what others may have written
    os.environ["PYOPENCL_HOME"] = str(Path(cl.__file__).parent)  # its loader needs it
    library, given = Path(sys.prefix, "lib"), os.environ.get(_VENDORS)
    intel = library / "libintelocl.so"
    trouble, fix = "no OpenCL runtime is installed", _INSTALL
    if given is not None:
        trouble, fix = f"no OpenCL runtime in {_VENDORS} = {given} starts", f"unset {_VENDORS}"
    with files.temporary_folder() as folder:
        if given is None and intel.exists():
            trouble, fix = "Intel's OpenCL runtime is installed but does not start", ""
            try:
                for name in (*_INTEL_NEEDS, intel.name):
                    ctypes.CDLL(str(library / name), mode=ctypes.RTLD_GLOBAL)
            except OSError as error:  # the system's runtimes may still start
                trouble = f"Intel's OpenCL runtime cannot be loaded ({error})"
            else:
                (folder / "intel.icd").write_text(f"{intel}\n")
                for path in _SYSTEM_VENDORS.glob("*.icd"):
                    shutil.copyfile(path, folder / f"system-{path.name}")
                os.environ[_VENDORS] = str(folder)
        try:
            return list(cl.get_platforms())
        except cl.Error as error:
            is_known = error.code == cl.status_code.PLATFORM_NOT_FOUND_KHR
            raise UnavailableError(trouble if is_known else f"{trouble} ({error})", fix) from None
        finally:
            if given is None:
                os.environ.pop(_VENDORS, None)


def offered() -> list[Any]:
    """GPUs first; for CPUs, Intel's runtime first, by far the fastest for these kernels."""
    offered, failed = [], []
    for platform in platforms():
        try:
            offered += platform.get_devices()
        except cl.Error as error:
            failed.append(f"{platform.name.strip()}: {error}")
    if not offered:
        raise UnavailableError("; ".join(["no OpenCL runtime offers a device", *failed]))
    gpu = cl.device_type.GPU
    return sorted(offered, key=lambda d: (not d.type & gpu, "Intel" not in d.platform.name))


def devices() -> list[DeviceInfo]:
    """Every OpenCL device: GPUs first, then CPUs with the fastest runtime first."""
    with apart():  # a runtime may load libraries at any of these questions
        return [_describe(index, device) for index, device in enumerate(offered())]


def _describe(index: int, device: Any) -> DeviceInfo:
    is_gpu = bool(device.type & cl.device_type.GPU)
    block = [*device.max_work_item_sizes, 1, 1][:3]
    warp_size = 32 if is_gpu else 1
    for attribute in ("wavefront_width_amd", "warp_size_nv"):
        with suppress(AttributeError, cl.Error):
            warp_size = int(getattr(device, attribute))
    toolkit = device.platform.name.strip(), device.opencl_c_version.strip()
    return DeviceInfo(
        backend="opencl",
        index=index,
        name=" ".join(device.name.split()),
        kind="gpu" if is_gpu else "cpu",
        driver=device.driver_version,
        toolkit=", ".join((*toolkit, *building.settings(*_SETTINGS))),
        limits={
            "max_threads_per_block": device.max_work_group_size,
            **{f"max_block_{axis}": size for axis, size in zip("xyz", block, strict=True)},
            **dict.fromkeys(("max_grid_x", "max_grid_y", "max_grid_z"), 2**31 - 1),
            "max_shared_bytes_per_block": device.local_mem_size,
            "max_static_shared_bytes": device.local_mem_size,
            "warp_size": warp_size,
            "multiprocessors": device.max_compute_units,
        },
        properties={
            "platform": f"{device.platform.name.strip()} {device.platform.version.strip()}",
            "global memory (bytes)": device.global_mem_size,
            "largest allocation (bytes)": device.max_mem_alloc_size,
            "last-level cache (bytes)": device.global_mem_cache_size,
            "shared memory per block (bytes)": device.local_mem_size,
            "registers per block": None,
            "warp size": warp_size,
            "memory pitch (bytes)": None,
            "largest block (threads)": device.max_work_group_size,
            "largest block (x, y, z)": " × ".join(map(str, block)),
            "largest grid (x, y, z)": "not limited by OpenCL",
            "constant memory (bytes)": device.max_constant_buffer_size,
            "compute capability": None,
            "clock rate (MHz)": device.max_clock_frequency or None,
            "texture alignment (bytes)": None,
            "copy and compute overlap": None,
            "multiprocessors": device.max_compute_units,
            "double precision": "yes" if "cl_khr_fp64" in device.extensions else "no",
        },
    )


@dataclass(eq=False)
class _Buffer:
    handle: Any
    nbytes: int
    memory: Any = None  # of the host, if it is shared

    def view(self, offset_bytes: int, nbytes: int) -> _Buffer:
        return _Buffer(self.handle.get_sub_region(offset_bytes, nbytes), nbytes)


class _Program(Program):
    def __init__(
        self, backend: OpenCLBackend, program: Any, unit: opencl_c.Unit, scalars: list[str]
    ) -> None:
        self.backend = backend
        self.is_reordered = False
        self.program = program
        self.unit = unit
        self.scalars = scalars
        with _errors("build"):
            self.kernel = cl.Kernel(program, unit.entry)
        with suppress(AttributeError, cl.Error):  # before OpenCL 2.0, which introduced them
            size = cl.program_build_info.GLOBAL_VARIABLE_TOTAL_SIZE
            self.variable_bytes = int(program.get_build_info(backend.device, size))
        group = cl.kernel_work_group_info
        get = self.kernel.get_work_group_info
        options = program.get_build_info(backend.device, cl.program_build_info.OPTIONS)
        self.resources = Resources(
            language="C++ for OpenCL" if _CPLUSPLUS[0] in options else "OpenCL C",
            static_shared_bytes=get(group.LOCAL_MEM_SIZE, backend.device),
            max_threads_per_block=get(group.WORK_GROUP_SIZE, backend.device),
        )

    def reload(self) -> None:
        backend = self.backend
        binary = self.program.get_info(cl.program_info.BINARIES)[0]
        with _errors("build"), warnings.catch_warnings(), apart():
            warnings.simplefilter("ignore")  # compiler warnings, again
            self.program = cl.Program(backend.context, [backend.device], [binary]).build()
            self.kernel = cl.Kernel(self.program, self.unit.entry)

    def call(self, launch: Launch, arguments: Sequence[Argument]) -> Call:
        return Call(partial(self.launch, launch, arguments), program=self, arguments=arguments)

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        values: list[Any] = []
        cells = [g * b for g, b in zip(launch.grid, launch.block, strict=True)]
        offset: list[int] | None = None
        if self.is_reordered:  # what has no effect on a launch tells a single block its place
            order, *block = cast("Sequence[int]", arguments[-4:])
            arguments = arguments[:-4]
            places = zip(launch.grid, block, strict=True)
            offset = [order << 62 | count << 31 | place for count, place in places]
            cells = list(launch.block)
        for argument, scalar in zip(arguments, self.scalars, strict=True):
            if isinstance(argument, int | float):
                values.append(np.dtype(scalar).type(argument))
            else:  # tensor maps are of CUDA, arrays and handles of functions
                values.append(cast(Buffer, argument).handle)
        if self.unit.dynamic is not None:
            values.append(cl.LocalMemory(max(launch.shared_bytes, 4)))
        with _errors("launch"):
            self.kernel.set_args(*values)
            event = cl.enqueue_nd_range_kernel(
                self.backend.queue, self.kernel, cells, list(launch.block), offset
            )
        self.backend.events[1:] = [event]


@contextmanager
def _errors(doing: str, asked_bytes: int | None = None) -> Iterator[None]:
    """Turn OpenCL's errors into `CaseError`s; all but those of memory are fatal."""
    try:
        yield
    except (cl.MemoryError, MemoryError):
        asked = f"; {asked_bytes:,} bytes requested" if asked_bytes else ""
        raise OutOfMemoryError(f"out of device memory{asked}") from None
    except cl.Error as error:
        raise CaseError(f"{doing} failed: {error}", fatal=True) from None


class OpenCLBackend(Backend):
    """One OpenCL device, its context and an in-order queue that profiles."""

    def __init__(self, info: DeviceInfo, cache: Cache, judged: Judged | None = None) -> None:
        self.info = info
        self.judged = judged
        self.device = device = offered()[info.index]
        self.cache = cache
        self.context = cl.Context([device])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.queue = cl.CommandQueue(self.context, properties=profiling)
        self.flush_area: Any = None
        self.rate: float | None = None
        version = re.search(r"OpenCL C (\d+)\.(\d+)", device.opencl_c_version)
        modern = version is not None and int(version[1]) >= 3
        self.language = [f"-cl-std=CL{version[1]}.{version[2]}"] if version and modern else []
        extensions = device.extensions.split()
        self.clock_expression = (
            "clock_read_device()" if modern and "cl_khr_kernel_clock" in extensions
            else "__builtin_readcyclecounter()"
        )  # fmt: skip
        self._held: list[_Buffer] = []
        self.events: list[Any] = []  # of the first launch of what is timed, and of the last
        self._reading: Any = None  # a kernel that does nothing
        self._apart = b""  # what was last copied apart
        self._is_host_clock: bool | None = None
        self.takes_vector_hint = info.kind == "cpu" and "cl_intel_vec_len_hint" in extensions
        self.variants: tuple[Variant, ...] = ("plain", "clocked")
        if info.kind == "cpu" and device.address_bits == 64:
            self.variants += ("reordered",)

    def allocate(self, nbytes: int, *, is_given: bool = False) -> _Buffer:
        largest = self.device.max_mem_alloc_size
        if nbytes > largest:
            raise OutOfMemoryError(
                f"out of device memory: {nbytes:,} bytes requested in one allocation; "
                f"this device allows {largest:,}"
            )
        flags, memory = cl.mem_flags.READ_WRITE, None
        with _errors("allocation", nbytes):
            if self.judged is not None and is_given:
                flags, memory = flags | cl.mem_flags.USE_HOST_PTR, self.judged.allocate(nbytes)
            handle = cl.Buffer(self.context, flags, nbytes, memory)
        self._held.append(_Buffer(handle, nbytes, memory))
        return self._held[-1]

    def release(self, buffer: Buffer) -> None:
        own = next(held for held in self._held if held is buffer)
        self._held.remove(own)
        own.handle.release()
        if self.judged is not None and own.memory is not None:
            self.judged.release(own.memory)

    def memory_without(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        return [held for held in self._held if all(held is not buffer for buffer in buffers)]

    def write(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        with _errors("upload"):
            cl.enqueue_copy(self.queue, buffer.handle, array, is_blocking=True)

    def read(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        with _errors("download"):
            cl.enqueue_copy(self.queue, array, buffer.handle, is_blocking=True)

    def copy(self, target: Buffer, source: Buffer) -> None:
        with _errors("copy"):
            cl.enqueue_copy(self.queue, target.handle, source.handle, byte_count=source.nbytes)

    def build(
        self, kernel: Kernel, params: Params, variant: Variant = "plain", *, block_width: int = 32
    ) -> Program:
        if kernel.kind.is_apart:
            from matbench.backends.functions import isolated

            if self.info.kind != "cpu":
                raise BuildError("functions need CUDA or a CPU; this is a GPU through OpenCL")
            if self.judged is None:
                return isolated.made(kernel, params, variant, self)
            return isolated.IsolatedFunction(self.judged, kernel, params, variant, self)
        clock = self.clock_expression if variant == "clocked" else None

        def translated() -> bytes:
            try:
                return msgspec.msgpack.encode(opencl_c.unit(kernel, params, clock))
            except signature.SourceError as error:
                raise BuildError(str(error)) from None

        keep = not includes.operands(kernel.source)  # OpenCL has no headers, so all may change
        # Making a unit takes longer than loading its binary.
        key = repr(("unit", revision(), kernel, params, clock))
        packed = self.cache.get_or_make(key, translated, keep=keep)
        unit = msgspec.msgpack.decode(packed, type=opencl_c.Unit)
        options = [f"-D{name}={value}" for name, value in unit.macros.items()]
        if self.takes_vector_hint and 1 < block_width < _VECTOR_WIDTH:
            width = next(known for known in _VECTOR_HINTS if known <= block_width)
            options.append(f"-DMATBENCH_VECTOR_HINT=__attribute__((intel_vec_len_hint({width})))")
        if variant == "reordered":  # quickly compiled, and a thread after the other
            options += ["-DMATBENCH_REORDERED", "-cl-opt-disable"]
        if not keep:
            options += [f'-I "{folder}"' for folder in includes.folders(kernel)]
        options += _WARNED
        program, log = self._compiled(unit.text, options, keep=keep, path=kernel.path)
        scalars = ["" if p.pointer else signature.SCALARS[p.type] for p in kernel.parameters]
        built = _Program(self, program, unit, [*scalars, ""] if clock else scalars)
        built.warnings = warnings_of(log, kernel)
        built.is_reordered = variant == "reordered"
        static = built.resources.static_shared_bytes or 0
        most = sweep.GPU_LIMITS["max_static_shared_bytes"]  # ptxas refuses more
        if static > most:
            needs = f"{kernel.entry} needs {static:,} bytes of static shared memory per block"
            raise BuildError(f"{needs}; no NVIDIA GPU allows more than {most:,}")
        return built

    def _compiled(
        self, unit: str, options: list[str], *, keep: bool = True, path: str = ""
    ) -> tuple[Any, str]:
        """A program built as OpenCL C or, if that fails and the runtime knows it, as C++, and the
        compiler's log.

        `keep` allows taking it from the cache and storing it there. A unit has only the name of its
        file, so that it is built once wherever the file is; an error says its `path`.
        """
        toolkit = (self.info.name, self.info.driver, self.info.toolkit)
        failed: BuildError | None = None
        for language in (self.language, _CPLUSPLUS):
            given = [*language, *options]
            key = repr(("opencl and log", unit, given, toolkit))
            kept = self.cache.get(key) if keep else None
            try:
                with warnings.catch_warnings(), apart():
                    warnings.simplefilter("ignore")  # compiler warnings; errors are exceptions
                    if kept is not None:
                        log, binary = msgspec.msgpack.decode(kept, type=tuple[str, bytes])
                        program = cl.Program(self.context, [self.device], [binary])
                        return program.build(given, cache_dir=False), log
                    program = cl.Program(self.context, unit).build(given, cache_dir=False)
            except cl.Error as error:
                if failed is None or error.code != cl.status_code.INVALID_BUILD_OPTIONS:
                    said, name = _compiler_message(str(error)), Path(path).name
                    is_there = said.startswith(f"{name}:")
                    failed = BuildError(path + said.removeprefix(name) if is_there else said)
                    if (built_in := _BUILT_IN.match(said)) is not None:
                        file, line, what = built_in.groups()
                        of = "" if Path(file).name == name else f" of {Path(file).name}"
                        failed = LackingError(f"needs CUDA (`{what}`, line {line}{of})")
                continue
            log = program.get_build_info(self.device, cl.program_build_info.LOG)
            if keep:
                binary = program.get_info(cl.program_info.BINARIES)[0]
                self.cache.put(key, msgspec.msgpack.encode((log, binary)))
            return program, log
        assert failed is not None
        raise failed

    def timed_ns(self, work: Work) -> float:
        if work.is_graph:
            raise CaseError("--method graph needs CUDA; this is OpenCL")
        work.hold()
        if work.is_cold and self.info.kind == "gpu":
            if self.flush_area is None:
                self.flush_area = self.allocate(max(2 * self.device.global_mem_cache_size, 1 << 24))
            area = self.flush_area
            cl.enqueue_fill_buffer(self.queue, area.handle, np.uint32(0), 0, area.nbytes)
        work.ready()
        if work.calls[0].runs_on_host:
            self.synchronize()
            return host.clocked_ns(work.calls)
        self.events = []
        for call in work.calls:
            call.run()
        first, last = self.events[0], self.events[-1]
        with _errors("launch"):
            last.wait()
            return float(last.profile.end - first.profile.start) / len(work.calls)

    def mapped(self, buffer: Buffer) -> Address:
        with _errors("mapping memory"):
            words, _ = cl.enqueue_map_buffer(
                self.queue, buffer.handle, cl.map_flags.READ | cl.map_flags.WRITE,
                0, (buffer.nbytes,), "u1", is_blocking=True,
            )  # fmt: skip
        return Address(words.ctypes.data, words)

    def unmap(self, place: Address) -> None:
        with _errors("mapping memory"):
            place.keeper.base.release(self.queue)

    def copy_apart(self, address: int, nbytes: int) -> None:
        # Without a page fault, for which a function could have a handler that works only now.
        with suppress(OSError), Path("/proc/self/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            self._apart = memory.read(nbytes)
            if len(self._apart) == nbytes:
                return
        self._apart = ctypes.string_at(address, nbytes)  # not Linux

    def copy_back(self, target: Buffer) -> None:
        with _errors("upload"):
            cl.enqueue_copy(self.queue, target.handle, self._apart, is_blocking=True)

    def conditions(self) -> Conditions:
        return host.conditions() if self.info.kind == "cpu" else Conditions()

    def ticks_per_ns(self, stamps: npt.NDArray[np.uint64]) -> float:
        """The rate of the device clock against the host's over 50 ms; measured once."""
        if self.rate is None:
            unit = f"__kernel void tick(__global ulong *t) {{ *t = {self.clock_expression}; }}"
            kernel = cl.Kernel(self._compiled(unit, [])[0], "tick")
            target = self.allocate(8)
            readings = []
            for pause_s in (0.0, 0.0, 0.05):  # the first one warms up
                time.sleep(pause_s)
                ticks = np.zeros(1, np.uint64)
                kernel.set_args(target.handle)
                cl.enqueue_nd_range_kernel(self.queue, kernel, [1], [1]).wait()
                now = time.perf_counter_ns()
                self.read(target, ticks)
                readings.append((int(ticks[0]), now))
            _, (first, begin), (last, end) = readings
            self.rate = (last - first) / (end - begin)
        return self.rate

    def synchronize(self) -> None:
        with _errors("launch"):
            self.queue.finish()

    def clock_agrees(self) -> bool:
        if self._reading is None:
            unit = "__kernel void nothing(__global uint *unused) {}"
            self._reading = cl.Kernel(self._compiled(unit, [])[0], "nothing")
            self._reading.set_args(self.allocate(4).handle)
        before = time.perf_counter_ns()
        event = cl.enqueue_nd_range_kernel(self.queue, self._reading, [1], [1])
        event.wait()
        start, end = event.profile.start, event.profile.end
        is_within = before <= start <= end <= time.perf_counter_ns()
        if self._is_host_clock is None:
            self._is_host_clock = is_within
        return is_within or not self._is_host_clock


#: Opens a device that `devices` listed, with the cache for compiled code.
open_device = OpenCLBackend

#: An error about something that only CUDA has: a header, or a type declared in one.
_ONLY_CUDA = re.compile(r"file not found|'(?:matbench_half|_*(?:half|nv_b)\w*)'")
#: How names begin that CUDA alone has (CUDA C++ Programming Guide, chapter 10; Math API).
_BUILT_IN_NAMES = (
    r"warpSize clock(?:64)?\b atomic[A-Z] make_[a-z]+[1-4] cuda tex[123] surf[123] __trap __brkpt "
    r"__nanosleep __popc __clz __ffs __brev __byte_perm __funnelshift __dp[24]a __u?mul __u?sad "
    r"__u?r?hadd __v[a-z]+[24] __ldc __ldlu __st(?:wb|wt|cg|cs) __saturatef __fdividef __sincosf "
    r"__(?:exp|exp10|log|log2|log10|sin|cos|tan|pow)f __[fd](?:add|sub|mul|div|rcp|r?sqrt|ma)f?_ "
    r"__(?:float|double|int|uint|u?ll)2 __(?:float|double|int|uint|longlong)_as __is[GSCL] __cvta "
    r"__syncthreads_ __threadfence_"
).replace(" ", "|")
_BUILT_IN = re.compile(
    rf"(.*):(\d+):\d+: error: use of undeclared identifier '((?:{_BUILT_IN_NAMES})\w*)'"
)


def _compiler_message(output: str) -> str:
    """The first error in the compiler's log, extracted from PyOpenCL's message."""
    log = output.partition("\n\nBuild on ")[2].partition("\n")[2] or output
    first, *below = first_error(log.partition("\n(options: ")[0]).splitlines() or [output]
    first = first.replace("attempt to use a poisoned identifier", "inline assembly needs CUDA")
    if _ONLY_CUDA.search(first):
        first += """; if it needs CUDA's headers, set requires = ["cuda"]"""
    return "\n".join([first, *below]).replace("matbench_half", "half")
