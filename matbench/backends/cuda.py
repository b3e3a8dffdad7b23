"""CUDA through PyCUDA: nvcc compiles, the primary context runs, events and clock64 time it."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import re
import shutil
import struct
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from matbench.backends import (
    VARIANTS,
    Argument,
    Buffer,
    Program,
    TensorMap,
    UnavailableError,
    Variant,
    cublas,
    nvml,
)
from matbench.cache import Cache
from matbench.errors import BuildError, CaseError, OutOfMemoryError
from matbench.kernelfile import signature as cuda_c
from matbench.model import WORD_BYTES, Conditions, DeviceInfo, Kernel, Launch, Resources

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@cache
def _driver() -> Any:
    """pycuda.driver, initialised."""
    try:
        import pycuda.driver as driver
    except ImportError as error:
        raise UnavailableError(
            f"PyCUDA is missing ({error}); with a CUDA toolkit: pip install 'matbench-cuda[cuda]'"
        ) from None
    try:
        driver.init()
    except driver.Error as error:
        raise UnavailableError(f"no usable NVIDIA driver ({_words(error)})") from None
    return driver


@cache
def _nvcc() -> tuple[str, str]:
    """nvcc's path and release."""
    folders = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [str(Path(folder) / "bin" / "nvcc") for folder in folders if folder]
    found = shutil.which("nvcc") or next((p for p in places if os.access(p, os.X_OK)), None)
    if found is None:
        raise UnavailableError(
            "nvcc is missing; install the CUDA toolkit and put its bin folder on PATH"
        )
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    release = re.search(r"release (\d+\.\d+), V([\d.]+)", said)
    return found, release[2] if release else "unknown"


@cache
def _architectures() -> frozenset[str]:
    command = [_nvcc()[0], "--list-gpu-arch"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return frozenset(re.findall(r"compute_(\d+)", said))


def devices() -> list[DeviceInfo]:
    """Every CUDA device that the toolkit here can compile for and the driver can run."""
    driver = _driver()
    version = driver.get_driver_version()
    speaks = f"{version // 1000}.{version % 1000 // 10}"
    _, toolkit = _nvcc()
    if toolkit.split(".")[0].isdigit() and int(toolkit.split(".")[0]) > version // 1000:
        raise UnavailableError(
            f"the CUDA toolkit {toolkit} is too new for the driver, which speaks CUDA {speaks}; "
            "update the driver or install an older toolkit"
        )
    found = [_describe(driver, index, toolkit, speaks) for index in range(driver.Device.count())]
    if not found:
        raise UnavailableError("the driver shows no CUDA device")
    for info in found:
        major, minor = info.compute_capability or (0, 0)
        if _architectures() and f"{major}{minor}" not in _architectures():
            raise UnavailableError(
                f"the CUDA toolkit {toolkit} does not know {info.name} (sm_{major}{minor}); "
                f"install one that does (the driver speaks CUDA {speaks})"
            )
    return found


def _describe(driver: Any, index: int, toolkit: str, speaks: str) -> DeviceInfo:
    device = driver.Device(index)
    attribute = driver.device_attribute

    def get(name: str) -> int:
        return int(device.get_attribute(getattr(attribute, name)))

    block = [get(f"MAX_BLOCK_DIM_{axis}") for axis in "XYZ"]
    grid = [get(f"MAX_GRID_DIM_{axis}") for axis in "XYZ"]
    static_shared = get("MAX_SHARED_MEMORY_PER_BLOCK")
    try:
        shared = get("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
    except (AttributeError, driver.Error):
        shared = static_shared
    return DeviceInfo(
        backend="cuda",
        index=index,
        name=device.name(),
        kind="gpu",
        driver=f"{_driver_release() or 'unknown'} (CUDA {speaks})",
        toolkit=f"nvcc {toolkit}",
        compute_capability=device.compute_capability(),
        limits={
            "max_threads_per_block": get("MAX_THREADS_PER_BLOCK"),
            **{f"max_block_{axis}": size for axis, size in zip("xyz", block, strict=True)},
            **{f"max_grid_{axis}": size for axis, size in zip("xyz", grid, strict=True)},
            "max_shared_bytes_per_block": max(shared, static_shared),
            "max_static_shared_bytes": static_shared,
            "warp_size": get("WARP_SIZE"),
            "multiprocessors": get("MULTIPROCESSOR_COUNT"),
        },
        properties={
            "global memory (bytes)": device.total_memory(),
            "last-level cache (bytes)": get("L2_CACHE_SIZE"),
            "shared memory per block (bytes)": static_shared,
            "shared memory per block, opted in (bytes)": shared,
            "shared memory per multiprocessor (bytes)": get("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
            "registers per block": get("MAX_REGISTERS_PER_BLOCK"),
            "warp size": get("WARP_SIZE"),
            "memory pitch (bytes)": get("MAX_PITCH"),
            "largest block (threads)": get("MAX_THREADS_PER_BLOCK"),
            "largest block (x, y, z)": " × ".join(map(str, block)),
            "largest grid (x, y, z)": " × ".join(map(str, grid)),
            "constant memory (bytes)": get("TOTAL_CONSTANT_MEMORY"),
            "compute capability": ".".join(map(str, device.compute_capability())),
            "clock rate (MHz)": get("CLOCK_RATE") // 1000,
            "memory clock rate (MHz)": get("MEMORY_CLOCK_RATE") // 1000,
            "texture alignment (bytes)": get("TEXTURE_ALIGNMENT"),
            "copy and compute overlap": "yes" if get("GPU_OVERLAP") else "no",
            "multiprocessors": get("MULTIPROCESSOR_COUNT"),
            "double precision": "yes",
            # The owner's to do, never ours.
            "to hold its clock": f"sudo nvidia-smi -i {index} --lock-gpu-clocks="
            f"{get('CLOCK_RATE') // 1000} (undo: --reset-gpu-clocks)",
        },
        missing={"cublas": reason} if (reason := cublas.missing()) else {},
    )


def _driver_release() -> str | None:
    """The driver's own release, 580.159.04 say, where Linux shows it."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return None
    found = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", text)
    return found[1] if found else None


def open_device(info: DeviceInfo, cache: Cache) -> CudaBackend:
    """Open a device that `devices` listed."""
    return CudaBackend(info, cache)


def _words(error: BaseException) -> str:
    """What the driver said, without the name of the call that said it."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return re.sub(r"^cu\w+ failed: ", "", text)


class _Errors:
    """Turns the driver's errors into `CaseError`s; after most of them the context is lost."""

    def __init__(self, asked_bytes: int | None = None, doing: str = "CUDA") -> None:
        self.asked_bytes = asked_bytes
        self.doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        driver = _driver()
        if isinstance(error, driver.MemoryError | MemoryError):
            asked = f"; {self.asked_bytes:,} bytes were asked for" if self.asked_bytes else ""
            raise OutOfMemoryError(f"out of device memory{asked}") from None
        if isinstance(error, driver.Error):
            raise CaseError(f"{self.doing}: {_words(error)}", fatal=True) from None


class _Buffer:
    """Device memory: `handle` is its address; only the whole of it is ever freed."""

    def __init__(self, handle: int, nbytes: int, owner: Any = None) -> None:
        self.handle = handle
        self.nbytes = nbytes
        self.owner = owner

    def view(self, offset_bytes: int, nbytes: int) -> _Buffer:
        return _Buffer(self.handle + offset_bytes, nbytes)


#: The shared memory that a block gets without asking for more.
_SHARED_BYTES = 48 * 1024


class _Bindings:
    """cuda-bindings, for what PyCUDA lacks; it works on PyCUDA's context."""

    def __init__(self, purpose: str, *, fatal: bool = False) -> None:
        try:
            from cuda.bindings import driver
        except ImportError:
            raise CaseError(
                f"{purpose} needs cuda-bindings; pip install 'matbench-cuda[cuda]'"
            ) from None
        self.driver: Any = driver
        self.purpose = purpose
        self.fatal = fatal

    def done(self, answer: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a call answered beside its status, which must be success."""
        status, *results = answer
        if status != self.driver.CUresult.CUDA_SUCCESS:
            raise CaseError(f"{self.purpose}: {status.name}", fatal=self.fatal)
        return tuple(results)

    @contextlib.contextmanager
    def copy_of(self, built: _Built) -> Iterator[Any]:
        """A kernel's handle, of a second copy of its code: PyCUDA keeps its own to itself."""
        (module,) = self.done(self.driver.cuModuleLoadData(bytes(built.image)))
        try:
            (function,) = self.done(self.driver.cuModuleGetFunction(module, built.entry.encode()))
            yield function
        finally:
            self.driver.cuModuleUnload(module)


def _encoded(tensor: TensorMap) -> bytes:
    """A `CUtensorMap`: zeros where the matrix's rows do not start at multiples of 16 bytes.

    A box whose rows are 32, 64 or 128 bytes long is swizzled by that length.
    """
    (rows, columns), (box_rows, box_columns) = tensor.shape, tensor.box
    item_bytes = WORD_BYTES[tensor.storage]
    pitch_bytes, box_bytes = columns * item_bytes, box_columns * item_bytes
    if pitch_bytes % 16:
        return bytes(128)
    bindings = _Bindings(f"a tensor map of {rows}×{columns} by {box_rows}×{box_columns}")
    driver = bindings.driver
    wide, short = driver.cuuint64_t, driver.cuuint32_t
    kind = f"CU_TENSOR_MAP_DATA_TYPE_{tensor.storage.upper()}"
    swizzle = f"CU_TENSOR_MAP_SWIZZLE_{f'{box_bytes}B' if box_bytes in (32, 64, 128) else 'NONE'}"
    (encoded,) = bindings.done(
        driver.cuTensorMapEncodeTiled(
            getattr(driver.CUtensorMapDataType, kind),
            2,
            tensor.matrix.handle,
            [wide(columns), wide(rows)],  # from the dimension that runs fastest
            [wide(pitch_bytes)],
            [short(box_columns), short(box_rows)],
            [short(1), short(1)],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(driver.CUtensorMapSwizzle, swizzle),
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    return ctypes.string_at(encoded.getPtr(), 128)


class _Program:
    def __init__(self, function: Any, kinds: list[str], stream: Any, built: _Built) -> None:
        import numpy as np

        self.function = function
        self.built = built
        self.stream = stream
        # Static and dynamic together; more must be asked for.
        self.allowed_shared_bytes = _SHARED_BYTES - function.shared_size_bytes
        self.types: list[Any] = [
            _encoded if kind == cuda_c.TENSOR_MAP else np.dtype(kind or np.uintp).type
            for kind in kinds
        ]
        if _encoded in self.types:
            # They are aligned in constant memory, where parameters begin somewhere: only the
            # driver knows how far behind the first byte each one lies.
            bindings = _Bindings("a kernel with tensor maps")
            layout = ""
            with bindings.copy_of(built) as copy:
                for index, make in enumerate(self.types):
                    place, _ = bindings.done(bindings.driver.cuFuncGetParamInfo(copy, index))
                    letter = "128s" if make is _encoded else np.dtype(make).char
                    layout += f"{place - struct.calcsize(layout)}x{letter}"
            function.prepare([layout])
        else:
            function.prepare(self.types)
        self.resources = Resources(
            registers=function.num_regs,
            static_shared_bytes=function.shared_size_bytes,
            local_bytes=function.local_size_bytes,
            spilled_bytes=built.spilled_bytes,
            max_threads_per_block=function.max_threads_per_block,
        )

    def bound(self, launch: Launch, arguments: Sequence[Argument]) -> Callable[[], None]:
        """The launch with all that it passes, ready so that it costs the host little."""
        if launch.shared_bytes > self.allowed_shared_bytes:
            attribute = _driver().function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            with _Errors():
                self.function.set_attribute(attribute, launch.shared_bytes)
            self.allowed_shared_bytes = launch.shared_bytes
        values = [
            make(argument if isinstance(argument, int | float | TensorMap) else argument.handle)
            for make, argument in zip(self.types, arguments, strict=True)
        ]
        return partial(
            self.function.prepared_async_call,
            *(launch.grid, launch.block, self.stream, *values),
            shared_size=launch.shared_bytes,
        )

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        bound = self.bound(launch, arguments)
        shape = (
            f"launching {launch.blocks:,} blocks of {launch.threads_per_block:,} threads "
            f"with {launch.shared_bytes:,} bytes of dynamic shared memory"
        )
        with _Errors(doing=shape):
            bound()

    def resident_blocks(self, launch: Launch) -> int | None:
        """By the driver's occupancy call, which PyCUDA lacks, on a copy of the code.

        None without cuda-bindings, and where the driver refuses such a block.
        """
        most = _SHARED_BYTES - (self.resources.static_shared_bytes or 0)
        try:
            bindings = _Bindings("occupancy")
            driver = bindings.driver
            with bindings.copy_of(self.built) as copy:
                if launch.shared_bytes > most:
                    attribute = driver.CUfunction_attribute
                    largest = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    bindings.done(driver.cuFuncSetAttribute(copy, largest, launch.shared_bytes))
                (blocks,) = bindings.done(
                    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                        copy, launch.threads_per_block, launch.shared_bytes
                    )
                )
                return int(blocks)
        except CaseError:
            return None


class CudaBackend:
    """One CUDA device through its primary context, and a stream of its own."""

    def __init__(self, info: DeviceInfo, cache: Cache) -> None:
        driver = _driver()
        self.info = info
        self.cache = cache
        self.clock = "clock64"
        self.variants = VARIANTS
        with _Errors():
            self.context = driver.Device(info.index).retain_primary_context()
            self.context.push()
            atexit.register(self.close)
            self.stream = driver.Stream()
            self.start, self.end = driver.Event(), driver.Event()
        self.watch = nvml.Watch(driver.Device(info.index).pci_bus_id())
        self.modules: dict[str, Any] = {}
        self.flush_area: _Buffer | None = None
        self.cublas: cublas.Library | None = None
        self.is_open = True

    def allocate(self, nbytes: int) -> _Buffer:
        with _Errors(nbytes):
            memory = _driver().mem_alloc(max(nbytes, 1))
        return _Buffer(int(memory), nbytes, memory)

    def release(self, buffer: Buffer) -> None:
        assert isinstance(buffer, _Buffer) and buffer.owner is not None
        with _Errors():
            buffer.owner.free()

    def write(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        with _Errors():
            self.stream.synchronize()
            _driver().memcpy_htod(buffer.handle, array)

    def read(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        with _Errors():
            self.stream.synchronize()
            _driver().memcpy_dtoh(array, buffer.handle)

    def copy(self, target: Buffer, source: Buffer) -> None:
        with _Errors():
            _driver().memcpy_dtod_async(target.handle, source.handle, source.nbytes, self.stream)

    def build(
        self,
        kernel: Kernel,
        params: dict[str, int],
        variant: Variant = "plain",
        *,
        block_width: int = 32,  # its compiler needs no hint of it
    ) -> Program:
        if kernel.library is not None:
            return self._product(kernel)
        driver = _driver()
        built = _build(self.info, kernel, params, variant, self.cache)
        if built.key not in self.modules:
            try:
                self.modules[built.key] = driver.module_from_buffer(bytes(built.image))
            except driver.Error as error:
                raise BuildError(
                    f"the driver ({self.info.driver}) refused what {self.info.toolkit} built: "
                    f"{_words(error)}"
                ) from None
        with _Errors():
            function = self.modules[built.key].get_function(built.entry)
        kinds = ["" if p.pointer else cuda_c.SCALARS.get(p.type, p.type) for p in kernel.parameters]
        extra = [] if variant == "plain" else [""]
        return _Program(function, [*kinds, *extra], self.stream, built)

    def _product(self, kernel: Kernel) -> Program:
        if self.cublas is None:
            self.cublas_area = self.allocate(cublas.WORKSPACE_BYTES)
            self.cublas = cublas.Library(self.stream.handle, self.cublas_area.handle)
        return self.cublas.program(kernel)

    def time_ns(
        self, program: Any, launch: Launch, arguments: Sequence[Argument], *, cold: bool
    ) -> float:
        once = program.bound(launch, arguments)
        return self._between_events_ns(once, before=self._flush if cold else None)

    def time_hot_ns(
        self,
        program: Any,
        launch: Launch,
        arguments: Sequence[Argument],
        *,
        count: int,
        graph: bool,
    ) -> float:
        once = program.bound(launch, arguments)

        def many() -> None:
            for _ in range(count):
                once()

        def hold_and_warm() -> None:
            self._flush()
            once()

        with _Errors():
            if not graph:
                return self._between_events_ns(many, before=hold_and_warm) / count
            with _Graph(self.stream, many) as captured:
                return self._between_events_ns(captured.launch, before=hold_and_warm) / count

    def _between_events_ns(
        self, enqueue: Callable[[], None], before: Callable[[], None] | None
    ) -> float:
        """Event time of what is enqueued. While the device works at what comes `before`, the host
        enqueues the rest: its own cost stays out of the pair of events."""
        with _Errors():
            if before is not None:
                before()
            self.start.record(self.stream)
            enqueue()
            self.end.record(self.stream)
            self.end.synchronize()
            return float(self.start.time_till(self.end)) * 1e6

    def conditions(self) -> Conditions:
        return self.watch.read() or Conditions()

    def _flush(self) -> None:
        if self.flush_area is None:
            cache_bytes = int(self.info.properties["last-level cache (bytes)"] or 0)
            self.flush_area = self.allocate(max(4 * cache_bytes, 1 << 26))
        words = self.flush_area.nbytes // 4
        _driver().memset_d32_async(self.flush_area.handle, 0, words, self.stream)

    def ticks_per_ns(self, stamps: npt.NDArray[np.uint64]) -> float:
        """The SM clock that was held: cycles over globaltimer's span, median of multiprocessors."""
        import numpy as np

        stamps = stamps[stamps[:, 1] > 0]
        _, unit = np.unique(stamps[:, 4], return_inverse=True)
        rates = []
        if len(stamps):
            order = np.argsort(unit, kind="stable")
            groups = np.searchsorted(unit[order], np.arange(int(unit.max()) + 1))
            start, end, start_ns, end_ns = (stamps[order, column] for column in range(4))
            ticks, span_ns = (
                np.maximum.reduceat(last, groups) - np.minimum.reduceat(first, groups)
                for first, last in ((start, end), (start_ns, end_ns))
            )
            rates = ticks[span_ns > 0] / span_ns[span_ns > 0]
        if len(rates):
            return float(np.median(rates))
        return int(self.info.properties["clock rate (MHz)"] or 1000) / 1000

    def synchronize(self) -> None:
        with _Errors():
            self.stream.synchronize()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            if self.cublas is not None:
                self.cublas.close()
            _driver().Context.pop()


class _Graph:
    """Launches captured once and started as one, through cuda-bindings on PyCUDA's stream."""

    def __init__(self, stream: Any, enqueue: Callable[[], None]) -> None:
        self.bindings = _Bindings("--graph", fatal=True)
        self.driver = driver = self.bindings.driver
        self.stream = driver.CUstream(stream.handle)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self.bindings.done(driver.cuStreamBeginCapture(self.stream, mode))
        enqueue()
        (graph,) = self.bindings.done(driver.cuStreamEndCapture(self.stream))
        (self.instance,) = self.bindings.done(driver.cuGraphInstantiate(graph, 0))
        self.bindings.done(driver.cuGraphDestroy(graph))
        self.launch()  # the first launch uploads it

    def launch(self) -> None:
        self.bindings.done(self.driver.cuGraphLaunch(self.instance, self.stream))

    def __enter__(self) -> _Graph:
        return self

    def __exit__(self, *_: object) -> None:
        self.bindings.done(self.driver.cuGraphExecDestroy(self.instance))


def precompile(
    info: DeviceInfo,
    kernel: Kernel,
    params: dict[str, int],
    cache: Cache,
    variants: Sequence[Variant],
) -> None:
    """Leave these builds of a kernel in the cache; needs no context, so any process can do it."""
    if kernel.library is not None:
        return
    for variant in variants:
        try:
            _build(info, kernel, params, variant, cache)
        except BuildError:  # of what wraps the kernel: the worker meets it again, and says so
            if variant == "plain":
                raise


class _Built(NamedTuple):
    """Machine code with what ptxas said of its entry."""

    key: str
    entry: str
    image: memoryview
    registers: int | None
    spilled_bytes: int | None


def _build(
    info: DeviceInfo,
    kernel: Kernel,
    params: dict[str, int],
    variant: Variant,
    cache: Cache,
    most_registers: int | None = None,
) -> _Built:
    """One build of a kernel, from the cache where all that it depends on is the same."""
    parts = (kernel.source, kernel.path, kernel.entry, kernel.parameters)
    # Lines of the source go into the machine code, for the sanitizer's and profiler's reports.
    options = ["-lineinfo", "-Xptxas", "-v", *(f"-D{n}={v}" for n, v in params.items())]
    if variant == "plain":
        text, entry = cuda_c.cuda_unit(kernel.source, kernel.path), kernel.entry
    else:
        wrap = cuda_c.cuda_clocked_unit if variant == "clocked" else cuda_c.cuda_staggered_unit
        text, entry = wrap(*parts), "matbench_entry"
        if most_registers is not None:
            options.append(f"-maxrregcount={most_registers}")
    major, minor = info.compute_capability or (0, 0)
    architecture = next(
        (r[3:] for r in kernel.requires if r.startswith("sm_") and r[-1] in "af"), f"{major}{minor}"
    )
    key = repr(("cuda", text, options, info.toolkit, architecture))
    own_headers = _includes_own_headers(kernel)
    image = report = None
    if not own_headers:  # what those hold is not in the key
        image, report = cache.get(key), cache.get(key + " report")
    if image is None or report is None:
        compiled, said = _compile(kernel, text, options, architecture)
        image, report = memoryview(compiled), memoryview(said.encode())
        if not own_headers:
            cache.put(key, image)
            cache.put(key + " report", report)
    given = _given_by_ptxas(bytes(report).decode(), entry)
    registers, spilled = given.registers, given.spilled_bytes
    if variant != "plain" and most_registers is None and registers is not None:
        # With more registers fewer blocks would fit on a multiprocessor than of the plain build.
        plain = _build(info, kernel, params, "plain", cache).registers
        if plain is not None and registers > plain:
            return _build(info, kernel, params, variant, cache, plain)
    return _Built(key, entry, image, registers, spilled)


def _includes_own_headers(kernel: Kernel) -> bool:
    return re.search(r'^\s*#\s*include\s*"', kernel.source, re.MULTILINE) is not None


def _given_by_ptxas(report: str, entry: str) -> Resources:
    """What ptxas said of one entry; None for what it did not say."""
    of_entry = report.partition(f"entry function '{entry}'")[2].partition("entry function")[0]
    registers, spilled, shared = (
        int(found[1]) if (found := re.search(pattern, of_entry)) else None
        for pattern in (r"Used (\d+) registers", r"(\d+) bytes spill stores", r"(\d+) bytes smem")
    )
    if shared is None and registers is not None:
        shared = 0  # ptxas does not mention what is not used
    return Resources(registers=registers, static_shared_bytes=shared, spilled_bytes=spilled)


def compiled_resources(
    capability: tuple[int, int], kernel: Kernel, params: dict[str, int], cache: Cache
) -> Resources | None:
    """What nvcc and ptxas give a kernel for a compute capability; needs neither GPU nor PyCUDA."""
    nvcc, release = _nvcc()
    number = f"{capability[0]}{capability[1]}"
    if number not in _architectures():
        return None
    text = cuda_c.cuda_unit(kernel.source, kernel.path)
    architecture = next((r[3:] for r in kernel.requires if r.startswith(f"sm_{number}")), number)
    options = [
        f"-arch=sm_{architecture}",
        "-Xptxas",
        "-v",
        *(f"-D{n}={v}" for n, v in params.items()),
    ]
    key = repr(("ptxas", text, options, release))
    own_headers = _includes_own_headers(kernel)
    report = None if own_headers else cache.get(key)
    if report is None:
        with tempfile.TemporaryDirectory(prefix="matbench-") as folder:
            unit = Path(folder) / "kernel.cu"
            unit.write_text(text, encoding="utf-8")
            own = Path(kernel.path).parent.resolve()
            done = subprocess.run(
                [
                    nvcc,
                    "-cubin",
                    *options,
                    f"-I{own}",
                    "-o",
                    str(unit.with_suffix(".cubin")),
                    str(unit),
                ],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        if done.returncode != 0:
            raise BuildError(_compiler_message(done.stderr or done.stdout))
        report = memoryview((done.stdout + done.stderr).encode())
        if not own_headers:
            cache.put(key, report)
    return _given_by_ptxas(bytes(report).decode(), kernel.entry)


def _compile(kernel: Kernel, text: str, options: list[str], architecture: str) -> tuple[bytes, str]:
    """The cubin, and what nvcc and ptxas said."""
    from pycuda.compiler import compile as compile_unit

    folder = Path(kernel.path).parent
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")  # PyCUDA warns with what the compiler remarks on
            image = compile_unit(
                text,
                nvcc=_nvcc()[0],
                options=options,
                no_extern_c=True,
                arch=f"compute_{architecture}",
                code=f"sm_{architecture}",
                cache_dir=False,
                include_dirs=[str(folder.resolve())] if folder.is_dir() else [],
            )
    except _driver().CompileError as error:
        message = error.stderr or error.stdout or str(error)
        raise BuildError(_compiler_message(message)) from None
    return bytes(image), "\n".join(str(warning.message) for warning in said)


def _compiler_message(text: str) -> str:
    """nvcc's lines that are errors, or all it said when it marks none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b(error|fatal)\b", line)]
    return "\n".join((errors or lines)[:20])
