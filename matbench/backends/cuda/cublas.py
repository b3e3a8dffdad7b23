"""cuBLAS through ctypes: its handle, and matbench's own functions that call it, as programs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from functools import cache, partial
from pathlib import Path
from statistics import median

from matbench.backends.cuda import libcuda
from matbench.backends.protocol import Address, Argument, Array, Backend, Call, Program, Work
from matbench.cache import Cache
from matbench.errors import BuildError, CaseError, LackingError
from matbench.model import Kernel, Launch, Params, Resources

#: What cuBLAS would allocate itself on a Hopper GPU. With our own workspace nothing is allocated
#: during stream capture; one workspace on one stream makes results reproducible.
WORKSPACE_BYTES = 32 * 1024**2
#: CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION: partial sums over K are added in float32 even
#: if C is narrower.
_MATH_MODE = 16
#: A launch of several, by its number, with its C elsewhere; and what chooses one.
_LAUNCH = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)
_CHOOSE = ctypes.CFUNCTYPE(c_int, c_size_t, c_size_t, _LAUNCH, c_void_p)
#: Timing in turns ends after this many rounds, or as soon as it took long enough.
_LEAST_ROUNDS, _MOST_ROUNDS = 3, 20
_ENOUGH_NS = 0.2e9
#: What takes this many times as long as the fastest is then not timed again.
_TOO_SLOW = 1.25


@cache
def place() -> Path:
    """Where cuBLAS is; `LackingError`: why it cannot be loaded, and how to fix it."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return Path(load_nvidia_dynamic_lib("cublas").abs_path)
    except ImportError:
        missing, fix = "cuda-pathfinder is missing", "pip install 'matbench-cuda[cuda]'"
    except RuntimeError:  # not found, or not to be loaded
        release = "{}.{}".format(*(libcuda.version() or (0, 0)))
        missing = "libcublas cannot be loaded"
        fix = f"pip install 'cuda-toolkit[cublas]=={release}.*'"
    raise LackingError(f"{missing}; {fix}")


def version() -> str:
    """The version of cuBLAS, such as 13.0.2; `LackingError`: why it cannot be loaded."""
    library, number, parts = ctypes.CDLL(str(place())), c_int(), []
    for part in range(3):
        library.cublasGetProperty(part, byref(number))
        parts.append(str(number.value))
    return ".".join(parts)


class Library:
    """One cuBLAS handle on the backend's context; its stream and workspace are set once.

    It is a handle of cuBLASLt, too, which takes stream and workspace with each call.
    """

    def __init__(self, backend: Backend, stream: int) -> None:
        self.version = f"cuBLAS {version()}"
        self.functions = ctypes.CDLL(str(place()))
        self.backend = backend
        self.workspace = backend.allocate(WORKSPACE_BYTES).handle
        handle = c_void_p()
        self._call("cublasCreate_v2", byref(handle))
        self._call("cublasSetStream_v2", handle, c_void_p(stream))
        bytes_ = c_size_t(WORKSPACE_BYTES)
        self._call("cublasSetWorkspace_v2", handle, c_void_p(self.workspace), bytes_)
        self._call("cublasSetMathMode", handle, _MATH_MODE)
        self.handles = {"stream": stream, "cublas": handle.value or 0}

    def _call(self, name: str, *values: object) -> None:
        if status := self.functions[name](*values):
            raise CaseError(f"cuBLAS: {name}: status {status}", fatal=True)

    def close(self) -> None:
        self.functions.cublasDestroy_v2(c_void_p(self.handles["cublas"]))  # the device may be lost


class Baseline(Program):
    """A program that calls the library, by one call of C++ for each launch. `LackingError`: no C++
    compiler, or cuBLAS cannot do this."""

    def __init__(self, library: Library, kernel: Kernel, params: Params, cache: Cache) -> None:
        from matbench.backends.functions import libraries

        self.cublas, self.kernel = library, kernel
        self.resources = Resources(library=library.version)
        try:
            target = libraries.host_target()
        except BuildError as error:
            raise LackingError(error.reason) from None
        at = place()
        links = [f"-L{at.parent}", f"-Wl,--no-as-needed,-rpath,{at.parent}", f"-l:{at.name}"]
        made = libraries.prepare(kernel, params, target, cache, links)
        self.code = libraries.loaded(kernel, made)
        self.bound = partial(libraries.bound, self.code, "cuBLAS", handles=library.handles)
        if lacks := self._text("baseline_lacks"):
            raise LackingError(lacks)
        self.chooses = _CHOOSE(self._fastest)  # kept: C++ has its address
        if hasattr(self.code, "baseline_workspace"):
            c_void_p.in_dll(self.code, "baseline_workspace").value = library.workspace
            chooses = ctypes.cast(self.chooses, c_void_p).value
            c_void_p.in_dll(self.code, "baseline_fastest").value = chooses

    @property
    def notes(self) -> tuple[str, ...]:
        """What the last launch says."""
        note = self._text("baseline_note")
        return (note,) if note else ()

    def _text(self, name: str) -> str:
        """What C++ says by this name; empty if it says nothing."""
        said = c_char_p.in_dll(self.code, name).value if hasattr(self.code, name) else None
        return (said or b"").decode()

    def call(self, launch: Launch, arguments: Sequence[Argument]) -> Call:
        given = [Address(a.matrix.handle, a) if isinstance(a, Array) else a for a in arguments]
        return Call(self.bound(given), program=self, arguments=arguments)

    def _fastest(self, count: int, nbytes: int, launch: Callable[..., int], context: int) -> int:
        """The number of the fastest launch of those that work, 0 if none does; they write to memory
        of their own. -1: a failure."""
        backend = self.cublas.backend
        try:
            C = backend.allocate(nbytes)
            try:
                launches = {n: partial(launch, context, n, C.handle) for n in range(count)}
                working = [number for number, run in launches.items() if run() == 0] or [0]
                return working[fastest([launches[number] for number in working], backend)]
            finally:
                backend.release(C)
        except CaseError:
            return -1


def fastest(launches: Sequence[Callable[[], object]], backend: Backend) -> int:
    """The number of the launch with the least median time, timed in turns with a cold cache."""
    works = [Work([Call(launch)], is_cold=True) for launch in launches]
    for work in works:
        backend.timed_ns(work)  # loads its code
    taken: list[list[float]] = [[] for _ in launches]
    left, spent_ns = list(range(len(launches))), 0.0
    for turn in range(1, _MOST_ROUNDS + 1):
        for number in left:
            taken[number].append(backend.timed_ns(works[number]))
            spent_ns += taken[number][-1]
        is_known, is_long = turn >= _LEAST_ROUNDS, spent_ns >= _ENOUGH_NS
        medians = {number: median(taken[number]) for number in left}
        if is_known or is_long:
            least = min(medians.values())
            left = [number for number in left if medians[number] <= _TOO_SLOW * least]
        if len(left) == 1 or (is_known and is_long):
            break
    return min(left, key=medians.__getitem__)
