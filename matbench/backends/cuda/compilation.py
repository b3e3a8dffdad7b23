"""Compiling with nvcc: the request, the machine code, and what ptxas reports about it.

Kernels for the device in use are compiled through PyCUDA, which shares our cache folder; what
`explain` shows, for any architecture and without PyCUDA, by nvcc with the same request.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matbench import files, programs
from matbench.backends import building
from matbench.backends.building import INCLUDE, apart, first_error, includes_own_files
from matbench.backends.protocol import UnavailableError, Variant
from matbench.cache import Cache
from matbench.errors import BuildError
from matbench.kernelfile import includes, instrument, signature
from matbench.kernelfile.compiled import of_cubin
from matbench.model import Kernel, Params, Resources

_ENTRY = re.compile(r"entry function '([^']+)'")
#: Requests with different turns are compiled at the same time.
_TURNS = 4096
#: What ptxas' messages call PTX, which nvcc takes only from a file.
_PTX_NAME = "kernel.ptx"
#: Environment variables that change the options and headers of nvcc and the host compiler.
_SETTINGS = (
    "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN",
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH",
)  # fmt: skip


class Nvcc(NamedTuple):
    """The compiler's path and its release, such as `13.0.88`."""

    path: str
    release: str


@cache
def nvcc() -> Nvcc:
    """nvcc with its release; `UnavailableError` if it or its host compiler is missing."""
    path = find()
    if path is None:
        raise UnavailableError(
            "nvcc is missing",
            "put the bin folder of a CUDA toolkit on PATH, or without a toolkit: "
            "matbench doctor --install",
        )
    if not (os.environ.get("NVCC_CCBIN") or programs.which("g++")):
        raise UnavailableError("nvcc needs a host compiler", "install g++")
    release = re.search(r"release \d+\.\d+, V([\d.]+)", programs.output(str(path), "--version"))
    return Nvcc(str(path), release[1] if release else "unknown")


def find(program: str = "nvcc") -> Path | None:
    """A program of the toolkit from PATH, a toolkit's usual folder, or wheels."""
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [Path(folder, "bin", program) for folder in toolkits if folder]
    for site in _wheels():
        places += sorted(site.glob(f"*/bin/{program}"))
    if on_path := programs.which(program):
        return Path(on_path)
    return next((place for place in places if os.access(place, os.X_OK)), None)


def is_from_wheels(nvcc: Path) -> bool:
    """Whether this nvcc is in Python's site-packages."""
    return any(site in nvcc.parents for site in _wheels())


def _wheels() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    return list(map(Path, (spec and spec.submodule_search_locations) or ()))


@cache
def architectures() -> frozenset[str]:
    """The compute capabilities that nvcc compiles for: `90`, `100`."""
    return frozenset(re.findall(r"compute_(\d+)", programs.output(nvcc().path, "--list-gpu-arch")))


@cache
def header_folders() -> tuple[Path, ...]:
    top = root(nvcc().path)
    return (top / "include", top / "include" / "cccl") if top else ()


def root(nvcc: str | Path) -> Path | None:
    """The folder of the toolkit, as nvcc reports it; its path may be that of a script."""
    asked = (str(nvcc), "--dryrun", "--preprocess", "-x", "cu", os.devnull)
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stderr
    top = re.search(r"^#\$ TOP=(.+)$", said, re.MULTILINE)
    return Path(top[1].strip()) if top else None


class CompileRequest(NamedTuple):
    """A request to nvcc: a text and options, for one architecture (`90`, `90a`).

    `entry` is its name in the machine code, or, for a C++ entry, the mark that reveals its name.
    The text is CUDA C++ unless `is_ptx`. `may_change`: see there.
    """

    text: str
    entry: str
    options: tuple[str, ...]
    architecture: str
    include_folders: tuple[str, ...]
    is_ptx: bool = False
    may_change: bool = False

    @property
    def virtual_and_real(self) -> tuple[str, str]:
        """The values of `-arch` and `-code`."""
        return f"compute_{self.architecture}", f"sm_{self.architecture}"


def request(
    kernel: Kernel, params: Params, variant: Variant, capability: tuple[int, int]
) -> CompileRequest:
    """The request for one build of a kernel."""
    # With settings, headers of other libraries may be found.
    built = instrument.prepared(kernel, has_libraries=bool(settings_in_force()))
    if variant == "plain":
        text, entry = instrument.plain_unit(built, params), signature.entry_of(kernel).last_name
        entry = entry if kernel.is_extern_c else instrument.MARK
    else:
        wrap = instrument.clocked_unit if variant == "clocked" else instrument.staggered_unit
        text, entry = wrap(built, params), "matbench_entry"
    macros = signature.macros(kernel, params)
    # With -lineinfo, the sanitizer and profilers can name source lines.
    options = ["-lineinfo", "-Xptxas", "-v", *(f"-D{n}={v}" for n, v in macros.items())]
    if kernel.std is not None:
        options.append(f"-std={kernel.std}")
    # If PyCUDA finds `#include`, it runs the preprocessor and hashes its output even if its cache
    # has the code (0.3 to 0.8 s per build). The kernel's own headers need that, because they can
    # change; nvcc's change only with its release, which PyCUDA hashes anyway.
    if settings := settings_in_force():
        options.append(f"-DMATBENCH_SETTINGS={_checksum(settings)}")
    changes = may_change(kernel)
    if changes:
        # PyCUDA's hash ignores line numbers, which the line table depends on; so hash the text.
        options.append(f"-DMATBENCH_TEXT={_checksum((text, includes.again(kernel)))}")
        text += "// #include\n"  # however the kernel writes it
    else:
        text = INCLUDE.sub("# include", text)
    # Without extra include folders, no header can shadow the toolkit's.
    includes_own = kernel.file and includes_own_files(kernel)
    folders = tuple(map(str, includes.folders(kernel))) if includes_own else ()
    target = architecture(kernel, capability)
    return CompileRequest(text, entry, tuple(options), target, folders, may_change=changes)


def architecture(kernel: Kernel, capability: tuple[int, int]) -> str:
    """The architecture to compile for: `90`, or `90a` if the kernel requires it."""
    major, minor = capability
    exact = (need[3:] for need in kernel.requires if re.fullmatch(rf"sm_{major}\d[af]", need))
    return next(exact, f"{major}{minor}")


def _checksum(of: object) -> int:
    return zlib.crc32(repr(of).encode())


def settings_in_force() -> list[str]:
    """The environment variables that change what is built, as `NAME=VALUE`."""
    return building.settings(*_SETTINGS)


def may_change(kernel: Kernel) -> bool:
    """Whether it includes headers that are neither the toolkit's nor C++'s own (`<cstdint>`)."""
    names = [name[1:].partition(">")[0] for name in includes.operands(kernel.source)]
    if not names or includes_own_files(kernel) or settings_in_force():
        return bool(names)
    return not all(
        name.isidentifier() or any((folder / name).is_file() for folder in header_folders())
        for name in names
    )


#: What compiles a request: the compiler's report, and the machine code.
Compiler = Callable[[CompileRequest, Cache], tuple[str, bytes]]


def with_pycuda(asked: CompileRequest, cache: Cache) -> tuple[str, bytes]:
    """Compile, and detect damaged or exchanged code in PyCUDA's cache.

    PyCUDA writes its cache in place and does not verify it, so a killed process or a failing disk
    could leave damaged code there for good. We keep ptxas' report under what PyCUDA compiled and
    the code's checksum: code without a report is dropped and compiled again.
    """
    from pycuda.compiler import compile as compile_cubin

    what = asked._replace(entry="")  # all entries of a text are compiled, and reported, together
    for _ in range(2):
        cubin, report = through_pycuda(compile_cubin, asked, cache)
        key = repr(("ptxas", what, hashlib.sha256(cubin).hexdigest()))
        if report:
            cache.put(key, report.encode())
        elif (kept := cache.get(key)) is not None:
            report = bytes(kept).decode()
        else:
            cache.drop(".cubin", cubin)
            continue
        return report, bytes(cubin)
    return through_nvcc(asked, cache)  # other processes compile the same, and drop it, too


def through_pycuda(
    make: Callable[..., Any], asked: CompileRequest, cache: Cache
) -> tuple[Any, str]:
    """The result of PyCUDA's `compile` or `SourceModule` for a request, and nvcc's output.

    nvcc runs only if the cache lacks the code; otherwise there is no output. PyCUDA writes code
    there in place, and a driver that loads half of it crashes, so processes take turns.
    """
    from pycuda.driver import CompileError

    cache.prepare()
    turn = zlib.crc32(repr(asked).encode()) % _TURNS
    arch, code = asked.virtual_and_real
    arguments = {
        "nvcc": nvcc().path,
        "options": list(asked.options),
        "no_extern_c": True,
        "arch": arch,
        "code": code,
        "include_dirs": list(asked.include_folders),
    }
    import filelock  # which imports asyncio: every process of workers imports this module

    lock = filelock.FileLock(cache.folder / f"pycuda-{turn}.lock")
    with lock, warnings.catch_warnings(record=True) as said, apart():
        warnings.simplefilter("always")  # PyCUDA passes on nvcc's output as a warning
        try:
            try:
                result = make(asked.text, cache_dir=str(cache.folder), **arguments)
            except OSError:  # the cache's disk is full
                result = make(asked.text, cache_dir=False, **arguments)
        except CompileError as error:
            output = error.stderr or error.stdout or str(error)
            if isinstance(output, bytes):  # from the preprocessor
                output = output.decode(errors="replace")
            raise BuildError(first_error(output)) from None
    return result, "\n".join(str(warning.message) for warning in said)


def through_nvcc(asked: CompileRequest, cache: Cache) -> tuple[str, bytes]:
    """What nvcc and ptxas report, and the machine code; from the cache unless it may change."""
    key = repr(("nvcc", asked, nvcc().release))
    packed = cache.get_or_make(key, lambda: _through_nvcc(asked), keep=not asked.may_change)
    report, cubin = msgspec.msgpack.decode(packed, type=tuple[bytes, bytes])
    return report.decode(errors="replace"), cubin


def _through_nvcc(asked: CompileRequest) -> bytes:
    """The output of nvcc and ptxas, and the machine code."""
    arch, code = asked.virtual_and_real
    folders = [f"-I{folder}" for folder in asked.include_folders]
    source = (_PTX_NAME,) if asked.is_ptx else ("-x", "cu", "-")
    with files.temporary_folder() as empty:
        if asked.is_ptx:
            (empty / _PTX_NAME).write_text(asked.text, encoding="utf-8")
        options = ["-cubin", *asked.options, "-arch", arch, "-code", code, *folders]
        said = building.run([nvcc().path, *options, "-o", "made.cubin", *source], empty, asked.text)
        cubin = (empty / "made.cubin").read_bytes()
    return msgspec.msgpack.encode((said, cubin))


class Compiled(NamedTuple):
    """The machine code of a request, what ptxas reports about its `entry` and its variables, and
    all that nvcc said."""

    request: CompileRequest
    entry: str
    cubin: bytes
    resources: Resources
    variable_bytes: int
    said: str = ""


def compiled(
    kernel: Kernel,
    params: Params,
    variant: Variant,
    capability: tuple[int, int],
    cache: Cache,
    compiler: Compiler = with_pycuda,
) -> Compiled:
    """One build of a kernel, from the cache if nothing that it depends on has changed.

    An instrumented build gets no more registers than the plain one, or fewer blocks might fit on a
    multiprocessor.
    """
    if kernel.code:
        return _given(kernel, capability, cache)
    asked = request(kernel, params, variant, capability)
    try:
        build = _read(asked, *compiler(asked, cache))
    except BuildError as error:
        # It may need the headers that were left out after all.
        headers = [f"{name}, line {line}" for name, line in instrument.left_out(kernel).items()]
        if not headers or settings_in_force():
            raise
        first, *more = error.reason.split("\n")
        told = f"{first} (built without host code and its headers: {'; '.join(headers)})"
        raise BuildError("\n".join([told, *more])) from None
    if variant != "plain" and build.resources.registers is not None:
        plain = compiled(kernel, params, "plain", capability, cache, compiler).resources.registers
        if plain is not None and build.resources.registers > plain:
            asked = asked._replace(options=(*asked.options, f"-maxrregcount={plain}"))
            return _read(asked, *compiler(asked, cache))
    return build


def compiled_by_nvcc(
    capability: tuple[int, int], kernel: Kernel, params: Params, cache: Cache
) -> Compiled:
    """What nvcc makes of a kernel for a compute capability; needs no GPU or PyCUDA.

    `UnavailableError` without an nvcc for it, `BuildError` for a bad source.
    """
    if "{}{}".format(*capability) not in architectures():
        raise UnavailableError("nvcc {} does not know sm_{}{}".format(nvcc().release, *capability))
    return compiled(kernel, params, "plain", capability, cache, through_nvcc)


def _read(asked: CompileRequest, report: str, cubin: bytes) -> Compiled:
    variables = sum(map(int, re.findall(r"(\d+) bytes gmem", report)))
    entry = lowered(report, asked.entry)
    return Compiled(asked, entry, cubin, reported(report, entry), variables, report)


def _given(kernel: Kernel, capability: tuple[int, int], cache: Cache) -> Compiled:
    """The machine code in a kernel's file, or what ptxas makes of its PTX."""
    asked = CompileRequest("", kernel.entry, (), architecture(kernel, capability), ())
    report, cubin = "", kernel.code
    if kernel.file.endswith(".ptx"):
        options = ("-Xptxas", "-v", f"-DMATBENCH_SETTINGS={_checksum(settings_in_force())}")
        asked = asked._replace(text=cubin.decode("utf-8-sig"), options=options, is_ptx=True)
        try:
            report, cubin = through_nvcc(asked, cache)
        except BuildError as error:
            raise BuildError(error.reason.replace(_PTX_NAME, kernel.path)) from None
    needs, _, variable_bytes = of_cubin(cubin)
    asked = asked._replace(architecture=needs.strip("sm_f"))
    return Compiled(asked, kernel.entry, cubin, reported(report, kernel.entry), variable_bytes)


def try_out() -> None:
    """Compile an empty kernel; `BuildError` says why nvcc cannot."""
    oldest = min(architectures(), key=int, default="75")
    _through_nvcc(CompileRequest("__global__ void nothing() {}\n", "nothing", (), oldest, ()))


def reported(report: str, entry: str) -> Resources:
    """What ptxas reports about one entry; None for values that it does not mention."""
    of_entry = report.partition(f"entry function '{entry}'")[2].partition("entry function")[0]
    registers, spilled, shared = (
        int(match[1]) if (match := re.search(pattern, of_entry)) else None
        for pattern in (r"Used (\d+) registers", r"(\d+) bytes spill stores", r"(\d+) bytes smem")
    )
    if shared is None and registers is not None:
        shared = 0  # ptxas mentions only what is used
    return Resources(registers=registers, static_shared_bytes=shared, spilled_bytes=spilled)


def demangled(*symbols: str) -> list[str]:
    """The C++ names of symbols; other symbols stay as they are."""
    program = programs.which("c++filt")
    if program is None:
        raise BuildError("a C++ entry needs c++filt; install binutils")
    return programs.output(program, *symbols).splitlines()


def lowered(report: str, entry: str) -> str:
    """The entry's symbol in the machine code that ptxas reports on. The compiler itself identifies
    it: the template arguments of the mark are the entry's type and its address."""
    if entry != instrument.MARK:
        return entry
    symbols: list[str] = _ENTRY.findall(report)
    names = dict(zip(symbols, demangled(*symbols), strict=True)) if symbols else {}
    marks = [name for symbol, name in names.items() if instrument.MARK in symbol]
    if not marks:
        raise BuildError("nvcc generated no code for the entry")
    for symbol, name in names.items():
        plain = name[: -len(name[name.rindex("(") :])] if name.endswith(")") else name
        if instrument.MARK not in symbol and marks[0].endswith((f"&({name})>()", f"&{plain}>()")):
            return symbol
    raise BuildError(f"nvcc generated no code for {marks[0].partition('&')[2]}")
