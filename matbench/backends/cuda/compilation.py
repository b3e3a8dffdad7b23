"""Compiling with nvcc: the request, the machine code, and what ptxas reports about it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matbench import programs, temporary
from matbench.backends import building
from matbench.backends.building import first_error
from matbench.backends.cuda import symbols
from matbench.backends.protocol import UnavailableError, Variant
from matbench.cache import Cache
from matbench.errors import BuildError
from matbench.kernelfile import entry as entries
from matbench.kernelfile import includes, instrument
from matbench.model import Included, Kernel, Resources

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
    found = find()
    if found is None:
        raise UnavailableError(
            "nvcc is missing",
            "put the bin folder of a CUDA toolkit on PATH, or without a toolkit: "
            "matbench doctor --install",
        )
    if os.name == "posix" and not (os.environ.get("NVCC_CCBIN") or programs.which("g++")):
        raise UnavailableError("nvcc needs a host compiler", "install g++")
    release = re.search(r"release \d+\.\d+, V([\d.]+)", _output(str(found), "--version"))
    return Nvcc(str(found), release[1] if release else "unknown")


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
    """The folders of NVIDIA's wheels."""
    found = importlib.util.find_spec("nvidia")
    return list(map(Path, (found and found.submodule_search_locations) or ()))


@cache
def architectures() -> frozenset[str]:
    """The compute capabilities that nvcc compiles for: `90`, `100`."""
    return frozenset(re.findall(r"compute_(\d+)", _output(nvcc().path, "--list-gpu-arch")))


@cache
def header_folders() -> tuple[Path, ...]:
    """The toolkit's header folders."""
    top = root(nvcc().path)
    return (top / "include", top / "include" / "cccl") if top else ()


def root(nvcc: str | Path) -> Path | None:
    """The folder of the toolkit, as nvcc reports it; its path may be that of a script."""
    asked = (str(nvcc), "--dryrun", "--preprocess", "-x", "cu", os.devnull)
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stderr
    top = re.search(r"^#\$ TOP=(.+)$", said, re.MULTILINE)
    return Path(top[1].strip()) if top else None


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


class Request(NamedTuple):
    """A request to nvcc: a text and options, for one architecture (`90`, `90a`).

    `entry` is its name in the machine code, or, for a C++ entry, the mark that reveals its name.
    `headers` are the user's files that it includes, as they are now; None if it also includes files
    that are neither the user's nor the toolkit's and so can change without notice.
    """

    text: str
    entry: str
    options: tuple[str, ...]
    architecture: str
    include_folders: tuple[str, ...] = ()
    headers: tuple[Included, ...] | None = ()

    @property
    def virtual_and_real(self) -> tuple[str, str]:
        """The values of `-arch` and `-code`."""
        return f"compute_{self.architecture}", f"sm_{self.architecture}"


def request(
    kernel: Kernel, params: dict[str, int], variant: Variant, capability: tuple[int, int]
) -> Request:
    """The request for one build of a kernel."""
    if variant == "plain":
        text, entry = instrument.plain_unit(kernel, params), entries.of(kernel).last_name
        entry = entry if kernel.is_extern_c else instrument.MARK
    else:
        wrap = instrument.clocked_unit if variant == "clocked" else instrument.staggered_unit
        text, entry = wrap(kernel, params), "matbench_entry"
    macros = entries.macros(kernel, params)
    # With -lineinfo, the sanitizer and profilers can name source lines.
    options = ["-lineinfo", "-Xptxas", "-v", *(f"-D{n}={v}" for n, v in macros.items())]
    if kernel.std is not None:
        options.append(f"-std={kernel.std}")
    major, minor = capability
    exact = (
        r.removeprefix("sm_")
        for r in kernel.requires
        if r.startswith(f"sm_{major}") and r[-1] in "af"
    )
    own = includes.again(kernel)
    return Request(
        text,
        entry,
        tuple(options),
        next(exact, f"{major}{minor}"),
        # Without extra folders, no header can shadow the toolkit's.
        tuple(map(str, includes.folders(kernel))) if own else (),
        None if _includes_others(kernel, own) else own,
    )


def settings_in_force() -> list[str]:
    """The environment variables that change what is built, as `NAME=VALUE`."""
    return building.settings(*_SETTINGS)


def _includes_others(kernel: Kernel, own: Sequence[Included]) -> bool:
    """Whether it includes headers besides its `own`, the toolkit's and C++'s (`<cstdint>`)."""
    texts = (kernel.source, *includes.texts(own))
    operands = {operand for text in texts for operand in includes.operands(text)}
    known = {header.name for header in own}
    names = {includes.name_in(operand) for operand in operands} - known
    return bool(operands and settings_in_force()) or not all(map(_is_compilers, names))


def _is_compilers(name: str | None) -> bool:
    if name is None:  # a macro's
        return False
    return name.isidentifier() or any((folder / name).is_file() for folder in header_folders())


class Compiled(NamedTuple):
    """The machine code of a request, and what ptxas reports about its entry and its variables."""

    request: Request
    entry: str
    cubin: bytes
    given: Resources
    variable_bytes: int


def compiled(
    kernel: Kernel,
    params: dict[str, int],
    variant: Variant,
    capability: tuple[int, int],
    cache: Cache,
) -> Compiled:
    """One build of a kernel, from the cache if nothing that it depends on has changed.

    An instrumented build gets no more registers than the plain one, or fewer blocks might fit on a
    multiprocessor.
    """
    found = _compiled(request(kernel, params, variant, capability), cache)
    if variant != "plain" and found.given.registers is not None:
        plain = compiled(kernel, params, "plain", capability, cache).given.registers
        if plain is not None and found.given.registers > plain:
            options = (*found.request.options, f"-maxrregcount={plain}")
            return _compiled(found.request._replace(options=options), cache)
    return found


def _compiled(asked: Request, cache: Cache) -> Compiled:
    """What nvcc makes of a request; it runs only if that is not in the cache, or cannot be."""
    if asked.headers is None:
        made: bytes | memoryview = through_nvcc(asked)
    else:
        text = asked._replace(entry="")  # all entries of a text are compiled together
        key = repr(("nvcc", text, settings_in_force(), nvcc().release))
        made = cache.get_or_make(key, lambda: through_nvcc(asked))
    output, cubin = msgspec.msgpack.decode(made, type=tuple[bytes, bytes])
    report = output.decode(errors="replace")
    variables = sum(map(int, re.findall(r"(\d+) bytes gmem", report)))
    entry = symbols.lowered(report, asked.entry)
    return Compiled(asked, entry, cubin, reported(report, entry), variables)


def precompile(
    info: Any, kernel: Kernel, params: dict[str, int], cache: Cache, variants: Sequence[Variant]
) -> None:
    """Put these builds of a kernel into the cache; needs no context, so any process can do it."""
    if kernel.library is not None:
        return
    for variant in variants:
        try:
            compiled(kernel, params, variant, info.compute_capability, cache)
        except BuildError:  # for an instrumented build, the error comes again when it is needed
            if variant == "plain":
                raise


def compiled_resources(
    capability: tuple[int, int], kernel: Kernel, params: dict[str, int], cache: Cache
) -> Resources | None:
    """The resources that nvcc assigns a kernel for a compute capability; needs no GPU or PyCUDA.

    None if this nvcc does not know the capability.
    """
    if "{}{}".format(*capability) not in architectures():
        return None
    return compiled(kernel, params, "plain", capability, cache).given


def through_nvcc(asked: Request) -> bytes:
    """The output of nvcc and ptxas, and the machine code."""
    arch, code = asked.virtual_and_real
    folders = [f"-I{folder}" for folder in asked.include_folders]
    with temporary.folder() as empty:
        done = subprocess.run(
            [
                *(nvcc().path, "-cubin", *asked.options, "-arch", arch, "-code", code, *folders),
                *("-o", "made.cubin", "-x", "cu", "-"),
            ],
            input=asked.text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=empty,  # headers in the working folder would precede the toolkit's
            env={**os.environ, "TMPDIR": str(empty)},
            check=False,
        )
        if done.returncode != 0:
            raise BuildError(first_error(done.stdout.decode(errors="replace")))
        cubin = (empty / "made.cubin").read_bytes()
    return msgspec.msgpack.encode((done.stdout, cubin))


def try_out() -> None:
    """Compile an empty kernel; `BuildError` says why nvcc cannot."""
    oldest = min(architectures(), key=int, default="75")
    through_nvcc(Request("__global__ void nothing() {}\n", "nothing", (), oldest))


def reported(report: str, entry: str) -> Resources:
    """What ptxas reports about one entry; None for values that it does not mention."""
    of_entry = report.partition(f"entry function '{entry}'")[2].partition("entry function")[0]
    registers, spilled, shared = (
        int(found[1]) if (found := re.search(pattern, of_entry)) else None
        for pattern in (r"Used (\d+) registers", r"(\d+) bytes spill stores", r"(\d+) bytes smem")
    )
    if shared is None and registers is not None:
        shared = 0  # ptxas mentions only what is used
    return Resources(registers=registers, static_shared_bytes=shared, spilled_bytes=spilled)
