"""Functions of C++ and CUDA files: built as a shared library, loaded, and called."""

from __future__ import annotations

import ctypes
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matbench import files, programs
from matbench.backends import building, host
from matbench.backends.cuda import compilation
from matbench.backends.functions.arrays import Arrays
from matbench.backends.functions.calls import CalledFunction
from matbench.backends.protocol import Address, Argument, Array, Backend, Handle, Variant
from matbench.cache import Cache, seal
from matbench.errors import BuildError, CaseError, LackingError
from matbench.kernelfile import host_file, includes, signature
from matbench.model import DeviceInfo, Kernel

#: The function of a library that calls the user's, and what it needs.
_SYMBOL = "matbench_call"
_GLUE = Path(__file__).with_name("call.cpp")
_MESSAGE_BYTES = 500
#: A C++ compiler for functions that need no CUDA.
_HOST_COMPILER = "g++"


class _Value(ctypes.Structure):
    _fields_ = (
        ("whole", ctypes.c_longlong), ("real", ctypes.c_double), ("pointer", ctypes.c_void_p),
        ("is_null", ctypes.c_bool),
    )  # fmt: skip


class Target(NamedTuple):
    """What a library is built with and for; without an architecture, for the CPU. `staggered`:
    threads share their variables in memory, never in registers, so that races show."""

    compiler: str
    version: str
    architecture: str | None
    variant: Variant = "plain"

    def options(self, own: list[str]) -> list[str]:
        """The options for it with the user's, of which nvcc passes some on."""
        own = [*own, *(["-O0"] if self.variant == "staggered" else [])]
        if self.architecture is None:
            # Two versions of a file in one process must not share the statics of inline functions.
            return ["-shared", "-fPIC", "-O3", "-fno-gnu-unique", *own]
        folder = compilation.root(self.compiler)
        level = [option for option in ("-O3", *own) if re.fullmatch("-O[0-3]", option)][-1]
        return [
            "-shared",
            *(["--split-compile=0"] if re.match(r"1[3-9]\.", self.version) else []),  # on all CPUs
            "-Xcompiler=-fPIC,-fno-gnu-unique",
            f"-gencode=arch=compute_{self.architecture},code=sm_{self.architecture}",
            *([] if folder is None else [f"-Xlinker=-rpath,{folder}/lib64"]),
            *(
                f"-Xcompiler={option}" if host_file.is_for_host(option) else option
                for option in own
                if not re.fullmatch("-O[0-3]", option)
            ),
            level,  # nvcc takes one
        ]


def cuda_target(kernel: Kernel, device: DeviceInfo, variant: Variant = "plain") -> Target:
    """For a CUDA device. `UnavailableError`: no nvcc."""
    capability = device.compute_capability or (0, 0)
    return Target(*compilation.nvcc(), compilation.architecture(kernel, capability), variant)


@functools.cache
def host_target(variant: Variant = "plain") -> Target:
    """For the CPU. `BuildError`: no compiler."""
    path = programs.which(_HOST_COMPILER)
    if path is None:
        raise BuildError(f"{_HOST_COMPILER} is missing; install it")
    return Target(path, programs.output(path, "-dumpfullversion").strip(), None, variant)


def loaded(kernel: Kernel, made: bytes) -> ctypes.CDLL:
    """The shared library that was made of a function's file; `BuildError`: it cannot be loaded."""
    with files.temporary_folder() as folder:
        path = folder / f"{Path(kernel.file).stem}.so"
        path.write_bytes(made)
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            reason = str(error).removeprefix(f"{path}: ")
    if "undefined symbol" in reason:
        reason += '; install the library that has it, or name that, as in link = ["openblas"]'
    raise BuildError(f"{kernel.path}: cannot be loaded: {reason}")


#: What a compiler for the CPU says of a header, name or mark that only CUDA has.
_OF_CUDA = re.compile(
    r":(\d+):\d+: (?:fatal )?error: .*?\b"
    r"(cu(?:da|blas|rand)\w*\.h\w*|mma\.h|cuda[A-Z]\w+|__(?:global|device|shared)__|dim3)\b"
)


def prepare(
    kernel: Kernel, params: Mapping[str, int], target: Target, cache: Cache,
    links: Sequence[str] = (),
) -> bytes:  # fmt: skip
    """The shared library of a function, from the cache if nothing has changed; it has these `links`
    besides its own.

    What it depends on is in the key, unless the environment adds folders of headers.
    """
    # The user's file, and below it the function that calls theirs with an array of values.
    text = f"""{kernel.source}
#line 1 "{_GLUE.name}"
{_GLUE.read_text(encoding="utf-8")}
extern "C" int {_SYMBOL}(const matbench::Value *values, char *text, int size) {{
    matbench::run(&{signature.written(signature.entry_of(kernel), params)}, values, {{text, size}});
    return text[0];
}}
"""
    macros = signature.macros(kernel, params)
    options = [
        *host_file.options(kernel), *(f"-D{name}={value}" for name, value in macros.items()),
        *(f"-I{folder}" for folder in includes.folders(kernel)),
        *([f"-std={kernel.std}"] if kernel.std else []),
    ]  # fmt: skip
    links = [*(f"-l{name}" for name in kernel.link), *links]
    for names in host_file.libraries(kernel):
        places = {name: place for name in names if (place := _place_of(name)) is not None}
        for name, place in [*places.items()][:1]:
            to_linker = "-Wl," if target.architecture is None else "-Xlinker="
            links += [f"-l{name}", f"{to_linker}-rpath,{place}"]
        # nvcc finds the toolkit's. Whatever else no library has is found out when it is loaded.
        if not places and len(names) == 1 and target.architecture is not None:
            links.append(f"-l{names[0]}")
    # The cache may be of several machines.
    machine = host.processor() if any(o.endswith("=native") for o in options) else ""
    depends = (includes.again(kernel), machine)
    return made(target, options, links, text, Path(kernel.file).name, cache, depends)


def made(
    target: Target, own: list[str], links: list[str], text: str, name: str, cache: Cache,
    depends: object = None,
) -> bytes:  # fmt: skip
    """The shared library that a compiler makes of a text with the user's `own` options."""
    options = target.options(own)

    def build() -> bytes:
        kind = "c++" if target.architecture is None else "cu"
        with files.temporary_folder() as folder:
            (folder / name).write_text(text, encoding="utf-8")
            command = [target.compiler, *options, "-x", kind, name, "-o", "made.so", *links]
            try:
                building.run(command, folder)
            except BuildError as error:
                if target.architecture is None and (lacked := _OF_CUDA.search(error.reason)):
                    raise LackingError(f"needs CUDA ({lacked[2]}, line {lacked[1]})") from None
                raise
            return (folder / "made.so").read_bytes()

    key = repr(("library", target, options, links, text, depends))
    return bytes(cache.get_or_make(key, build, keep=not compilation.settings_in_force()))


class HostFunction(CalledFunction):
    """A function that takes pointers, from the shared library that is built of its file; `handles`
    are matbench's, by name. `BuildError`: why it cannot be built or loaded."""

    def __init__(
        self,
        kernel: Kernel,
        params: Mapping[str, int],
        target: Target,
        backend: Backend,
        used_bytes: Callable[[], int | None],
        handles: Mapping[str, int],
    ) -> None:
        lacking = [n for n in kernel.args if n in host_file.HANDLES.values() and n not in handles]
        if lacking:
            raise BuildError(f"{kernel.path}: args: {lacking[0]} needs CUDA")
        compiler = f"{Path(target.compiler).name} {target.version}"
        arrays = Arrays(  # of which it takes pointers, and it returns none
            compiler, lambda _, at: Address(at, None), lambda *_: Address(0, None), used_bytes
        )
        super().__init__(kernel, arrays, backend)
        made = prepare(kernel, params, target, backend.cache)
        seal()
        self.library, self.handles = loaded(kernel, made), handles

    def prepared(self, arrays: Sequence[Any], arguments: Sequence[Argument]) -> Callable[[], Any]:
        addresses = iter(arrays)
        given = [next(addresses) if isinstance(a, Array) else a for a in arguments]
        return bound(self.library, self.kernel.entry, given, self.handles)


def bound(
    library: ctypes.CDLL, name: str, arguments: Sequence[Any], handles: Mapping[str, int]
) -> Callable[[], None]:
    """A call with numbers, addresses and these handles; what goes wrong in it is a `CaseError`."""
    values = (_Value * len(arguments))()
    for value, argument in zip(values, arguments, strict=True):
        if isinstance(argument, Address):
            value.pointer = argument.value
        elif isinstance(argument, Handle):
            value.is_null = argument.name == host_file.NULL
            value.pointer = handles.get(argument.name)
        else:
            value.real = argument
            value.whole = int(argument) if math.isfinite(argument) else 0
    said = ctypes.create_string_buffer(_MESSAGE_BYTES)
    once = library[_SYMBOL]
    once.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)

    def call() -> None:
        if once(values, said, _MESSAGE_BYTES):
            raise CaseError(f"{name}: {said.value.decode(errors='replace')}", fatal=True)

    return call


@functools.cache
def _place_of(library: str) -> Path | None:
    """The folder where the host's compiler finds a library; None if it does not."""
    path = Path(programs.output(_HOST_COMPILER, f"-print-file-name=lib{library}.so").strip())
    return path.resolve().parent if path.is_absolute() else None
