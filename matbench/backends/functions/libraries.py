"""Functions of C++ and CUDA files: built as a shared library, loaded, and called."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matbench import programs, temporary
from matbench.backends import building
from matbench.backends.cuda import compilation
from matbench.backends.functions.arrays import Arrays
from matbench.backends.functions.calls import Function, Memory
from matbench.backends.protocol import Argument, Array, Handle
from matbench.cache import Cache
from matbench.errors import BuildError, CaseError
from matbench.kernelfile import entry as entries
from matbench.kernelfile import includes
from matbench.kernelfile.host_file import HANDLES
from matbench.model import DeviceInfo, Kernel

#: The function of a library that calls the user's, and what it needs.
_SYMBOL = "matbench_call"
_GLUE = Path(__file__).with_name("call.cpp")
_MESSAGE_BYTES = 500
#: The types of numbers that functions of plain C take; every whole number is passed as 64 bits.
_C_NUMBERS: dict[str, Any] = {
    "long long": ctypes.c_longlong, "float": ctypes.c_float, "double": ctypes.c_double
}  # fmt: skip
#: A C++ compiler for functions that need no CUDA.
_HOST_COMPILER = "g++"


class _Value(ctypes.Structure):
    _fields_ = (
        ("whole", ctypes.c_longlong), ("real", ctypes.c_double), ("pointer", ctypes.c_void_p)
    )  # fmt: skip


class Target(NamedTuple):
    """What a library is built with and for; without an architecture, for the CPU."""

    compiler: str
    version: str
    architecture: str | None

    @property
    def options(self) -> list[str]:
        if self.architecture is None:
            # Two versions of a file in one process must not share the statics of inline functions.
            return ["-shared", "-fPIC", "-O3", "-fno-gnu-unique"]
        folder = compilation.root(self.compiler)
        found = [] if folder is None else [f"-Xlinker=-rpath,{folder}/lib64"]
        return [
            "-shared",
            "-Xcompiler=-fPIC,-fno-gnu-unique",
            "-O3",
            f"-gencode=arch=compute_{self.architecture},code=sm_{self.architecture}",
            *found,
        ]


def cuda_target(kernel: Kernel, device: DeviceInfo) -> Target:
    """For a CUDA device. `UnavailableError`: no nvcc."""
    capability = device.compute_capability or (0, 0)
    return Target(*compilation.nvcc(), compilation.architecture(kernel, capability))


@functools.cache
def host_target() -> Target:
    """For the CPU. `BuildError`: no compiler."""
    path = programs.which(_HOST_COMPILER)
    if path is None:
        raise BuildError(f"{_HOST_COMPILER} is missing; install it")
    asked = (path, "-dumpfullversion")
    version = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return Target(path, version, None)


def function(
    kernel: Kernel,
    params: Mapping[str, int],
    target: Target,
    cache: Cache,
    pointers: Pointers,
    memory: Memory,
    handles: Mapping[str, int],
) -> Function:
    """A function on the host; `handles` are matbench's, by name. `BuildError`: why it cannot be
    built or loaded."""
    lacking = [name for name in kernel.args if name in HANDLES.values() and name not in handles]
    if lacking:
        raise BuildError(f"{kernel.path}: args: {lacking[0]} needs CUDA")
    if not kernel.source:
        _require_own(Path(kernel.file), kernel)
        library = _loaded(Path(kernel.file), kernel)
        return ReadyFunction(kernel, library, pointers, memory, handles)
    with temporary.folder() as folder:
        path = folder / f"{Path(kernel.file).stem}.so"
        path.write_bytes(prepare(kernel, params, target, cache))
        library = _loaded(path, kernel)
    return BuiltFunction(kernel, library, pointers, memory, handles)


def prepare(kernel: Kernel, params: Mapping[str, int], target: Target, cache: Cache) -> bytes:
    """The shared library of a function, from the cache if nothing has changed.

    What it depends on is in the key, unless the environment adds folders of headers.
    """
    text = _text(kernel, params)
    macros = entries.macros(kernel, params)
    options = [
        *target.options, *(f"-D{name}={value}" for name, value in macros.items()),
        *(f"-I{folder}" for folder in includes.folders(kernel)),
        *([f"-std={kernel.std}"] if kernel.std else []),
    ]  # fmt: skip
    links = [f"-l{name}" for name in kernel.link]
    name = Path(kernel.file).name
    return made(target, options, links, text, name, cache, includes.again(kernel))


def made(
    target: Target,
    options: list[str],
    links: list[str],
    text: str,
    name: str,
    cache: Cache,
    *depends: object,
) -> bytes:
    """The shared library of a text, whose file has this name, as `prepare` has it."""

    def build() -> bytes:
        return _built(target, options, links, text, name)

    if compilation.settings_in_force():
        return build()
    key = repr(("library", target, options, links, text, *depends))
    return bytes(cache.get_or_make(key, build))


def _text(kernel: Kernel, params: Mapping[str, int]) -> str:
    """The user's file, and below it the function that calls theirs with an array of values."""
    return f"""{kernel.source}
#line 1 "{_GLUE.name}"
{_GLUE.read_text(encoding="utf-8")}
extern "C" void {_SYMBOL}(const matbench::Value *values, char *text, int size) {{
    matbench::run(&{entries.written(entries.entry_of(kernel), params)}, values, {{text, size}});
}}
"""


def _built(target: Target, options: list[str], links: list[str], text: str, name: str) -> bytes:
    with temporary.folder() as folder:
        source = folder / name
        source.write_text(text, encoding="utf-8")
        kind = "c++" if target.architecture is None else "cu"
        building.run([target.compiler, *options, "-x", kind, name, "-o", "made.so", *links], folder)
        return (folder / "made.so").read_bytes()


class Pointers(Arrays):
    """Addresses, for a function that takes pointers."""

    def __init__(self, version: str, used_bytes: Callable[[], int | None]) -> None:
        self._version, self._used_bytes = version, used_bytes

    def array(self, array: Array, address: int) -> Any:
        return address

    def used_bytes(self) -> int | None:
        return self._used_bytes()

    @property
    def version(self) -> str:
        return self._version


class HostFunction(Function):
    """A function that takes pointers, from a shared library."""

    def __init__(
        self,
        kernel: Kernel,
        library: ctypes.CDLL,
        pointers: Pointers,
        memory: Memory,
        handles: Mapping[str, int],
    ) -> None:
        super().__init__(kernel, pointers, memory)
        self.handles = handles
        try:
            self.once = getattr(library, _SYMBOL if kernel.source else kernel.entry)
        except AttributeError:
            raise BuildError(f"{kernel.path}: does not export {kernel.entry}") from None
        self.once.restype = None

    def values(
        self, arrays: Sequence[Any], arguments: Sequence[Argument]
    ) -> Iterator[tuple[int | None, float]]:
        """Each argument: its address, if it is no number."""
        addresses = iter(arrays)
        for argument in arguments:
            if isinstance(argument, Array):
                yield next(addresses), 0
            elif isinstance(argument, Handle):
                yield self.handles[argument.name], 0
            else:
                assert isinstance(argument, int | float)
                yield None, argument


class BuiltFunction(HostFunction):
    """One that matbench built: whatever its types are."""

    def prepared(self, arrays: Sequence[Any], arguments: Sequence[Argument]) -> Callable[[], Any]:
        values = (_Value * len(arguments))()
        for value, (address, number) in zip(values, self.values(arrays, arguments), strict=True):
            value.pointer, value.real = address, number
            value.whole = int(number) if math.isfinite(number) else 0
        said = ctypes.create_string_buffer(_MESSAGE_BYTES)

        def call() -> None:
            self.once(values, said, _MESSAGE_BYTES)
            if said.value:
                reason = said.value.decode(errors="replace")
                raise CaseError(f"{self.kernel.entry}: {reason}", fatal=True)

        return call


class ReadyFunction(HostFunction):
    """One of a library that was there: of plain C, with types as its table has them."""

    def prepared(self, arrays: Sequence[Any], arguments: Sequence[Argument]) -> Callable[[], Any]:
        passed: list[Any] = []
        for (address, number), parameter in zip(
            self.values(arrays, arguments), self.kernel.parameters, strict=True
        ):
            if address is not None:
                passed.append(ctypes.c_void_p(address))
            else:
                value = _C_NUMBERS[parameter.type](number)
                passed.append(ctypes.byref(value) if parameter.pointer else value)
        return functools.partial(self.once, *passed)


#: What the libraries that were loaded as they are need: files, by name.
_needed: dict[str, str] = {}


def _require_own(path: Path, kernel: Kernel) -> None:
    """`BuildError` if a library would get what one of another folder needs: the loader goes by
    names, and keeps the first file of a name."""
    ldd = programs.which("ldd")
    if ldd is None:
        return
    said = subprocess.run((ldd, str(path)), capture_output=True, text=True, check=False).stdout
    for name, file in re.findall(r"^\s*(\S+) => (/.*) \(0x", said, re.MULTILINE):
        own = os.path.realpath(file)
        known = _needed.setdefault(name, own)
        if known != own:
            raise BuildError(
                f"{kernel.path} needs {own}: {known} has the same name, and is in this process; "
                "rename one"
            )


def _loaded(path: Path, kernel: Kernel) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(f"{kernel.path}: cannot be loaded: {error}") from None
