"""The available kernels: their files, names and order, and which of them are baselines."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from matbench import cache, files, workloads
from matbench.errors import UsageError, refusing, suggestion
from matbench.kernelfile import compiled, front_matter, python_file, tables
from matbench.kernelfile.front_matter import Reader
from matbench.kernelfile.host_file import BaselineReader, HostReader
from matbench.model import NUMPY, Group, Kernel


def kernels_folder() -> Path:
    """The folder of the kernels that come with matbench: in the wheel, or beside the package."""
    inside = Path(__file__).parents[1] / "kernels"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "kernels"


#: Those of kernels, and of headers that others include.
_SUFFIXES = (".cu", ".cuh", ".py")


def builtin() -> list[Kernel]:
    """The kernels that come with matbench, shown as `kernels/FOLDER/NAME.cu`."""
    found, folder = [], kernels_folder()
    for path in sorted(path for path in folder.rglob("*.*") if path.suffix in _SUFFIXES):
        shown = f"kernels/{path.relative_to(folder).as_posix()}"
        found.append((read(path, shown), shown, path))
    return _parsed(tuple(found))


@functools.cache
def _parsed(given: tuple[tuple[bytes, str, Path], ...]) -> list[Kernel]:
    """The kernels of these files, with what each is shown as; they include no others. They are kept
    in the cache: most commands take less time than parsing all."""
    digest = hashlib.sha256(msgspec.msgpack.encode(given, enc_hook=str)).hexdigest()

    def parsed() -> bytes:
        kernels = [parse(data, path, shown) for data, shown, path in given if path.suffix != ".cuh"]
        return msgspec.msgpack.encode(kernels)

    return msgspec.msgpack.decode(cache.kept(f"kernels {digest}", parsed), type=list[Kernel])


def load(path: Path, shown_as: str | None = None, given: Mapping[str, Any] | None = None) -> Kernel:
    """One kernel file with its front matter, in it or beside it; `given` keys take precedence."""
    file = Path(python_file.split(str(path))[0])
    return parse(read(file, shown_as or str(file)), path, shown_as, given)


def parse(
    data: bytes, path: Path, shown_as: str | None = None, given: Mapping[str, Any] | None = None
) -> Kernel:
    """The kernel of a file that holds `data`."""
    file = Path(python_file.split(str(path))[0])
    shown = shown_as or str(file)
    is_baseline = file.resolve().parent == kernels_folder().resolve() / "baselines"
    with refusing(shown):
        if file.suffix == ".py":
            kernel = python_file.parse(data, path, given, shown)
            own = {"kind": NUMPY, "group": "baseline"} if is_baseline else {}
            return msgspec.structs.replace(kernel, **own)
        reader: type[Reader] = BaselineReader if is_baseline else HostReader
        if file.suffix in front_matter.COMPILED:
            reader = compiled.CompiledReader
        return front_matter.parse(data, shown, path, _beside(path, shown_as), given, reader)


def _beside(path: Path, shown_as: str | None) -> tables.Beside | None:
    """The table in a file of its own beside a kernel file, if there is one."""
    beside = path.with_suffix(".toml")
    if not beside.is_file() or beside == path:
        return None
    try:
        text = read(beside, str(beside))[: front_matter.MAX_FILE_BYTES].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{beside}: not UTF-8 text; is it front matter?") from None
    return tables.Beside(shown_as or str(beside), text.replace("\r\n", "\n"))


def read(path: Path, shown: str) -> bytes:
    """The content of a regular file, up to one byte more than is accepted of a kernel file."""
    try:
        with files.opened(path) as file:
            is_text = path.suffix not in front_matter.COMPILED
            return file.read(front_matter.MAX_FILE_BYTES + 1 if is_text else 2**27)
    except IsADirectoryError:
        raise UsageError(f"{shown}: a folder without *.cu files") from None
    except OSError as error:
        raise UsageError(f"{shown}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{shown}: cannot be read: its path contains a NUL byte") from None


def require_no_disguise(kernel: Kernel) -> None:
    """Refuse a file whose kernel would count as one of matbench's baselines."""
    is_claimed = kernel.group == "baseline"
    if is_claimed and all(kernel.sha256 != own.sha256 for own in builtin()):
        raise UsageError(f'{kernel.path}: group = "baseline" is reserved for matbench; remove it')


def told_apart(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels of files; by its path is called one whose name that of another file has, or one
    of matbench's own, unless it is that one."""
    own = {kernel.sha256: kernel for kernel in builtin()}
    places: dict[str, set[tuple[str, str]]] = {}
    for kernel in kernels:
        require_no_disguise(kernel)
    for kernel in (*own.values(), *kernels):
        same = own.get(kernel.sha256, kernel)
        places.setdefault(kernel.name, set()).add((same.file or same.path, same.entry))
    named = []
    for kernel in kernels:
        if kernel.sha256 not in own and len(places[kernel.name]) > 1:
            name = f"./{kernel.path}" if kernel.path in places else kernel.path
            kernel = msgspec.structs.replace(kernel, name=name)
        named.append(kernel)
    return named


# `previous` in front matter makes a tree of kernels.


def line_to(kernel: Kernel, known: Mapping[str, Kernel]) -> list[Kernel]:
    """The kernels that lead to this one, from the first to itself; `UsageError` for a loop."""
    line = [kernel]
    while (before := known.get(line[0].previous or "")) is not None:
        line.insert(0, before)
        if before.name in {kernel.name for kernel in line[1:]}:
            names = " → ".join(kernel.name for kernel in line)
            raise UsageError(f"{kernel.path}: `previous` forms a cycle: {names}")
    return line


def check_previous(kernels: Iterable[Kernel], known: Mapping[str, Kernel]) -> None:
    """`UsageError` if `previous` names a kernel that is not known."""
    for kernel in kernels:
        if (name := kernel.previous) is not None and name not in known:
            hint = suggestion(name, known, "name its file, too")
            raise UsageError(f"{kernel.path}: no kernel {name!r} (previous); {hint}")


class Catalogue:
    """Kernels by name; `own` are those of files and folders by their paths."""

    def __init__(
        self, kernels: Iterable[Kernel], own: Mapping[str, list[Kernel]] | None = None
    ) -> None:
        # One file may be named twice, also by different paths; the last one counts.
        self.kernels = {kernel.name: kernel for kernel in kernels}
        self.own = own or {}
        for kernel in self.kernels.values():
            line_to(kernel, self.kernels)  # no loop

    def get(self, name: str) -> Kernel:
        """The kernel of that name, or a `UsageError` with the nearest one."""
        if name not in self.kernels:
            known: Iterable[str] = self.kernels
            if ".py:" in name:
                known = [name.replace(".py:", f".py{python_file.SEPARATOR}", 1)]
            elif os.path.exists(name):  # noqa: PTH110 - it never raises
                known = [f"./{name}"]
            hint = suggestion(name, known, "see `matbench kernels`")
            raise UsageError(f"no kernel {name!r}; {hint}")
        return self.kernels[name]

    def named(self, names: Iterable[str]) -> list[Kernel]:
        """The kernels that names and paths mean, those of a folder all; `UsageError` as `get`."""
        return [kernel for name in names for kernel in self.own.get(name) or [self.get(name)]]

    def group(self, name: Group | str, workload: str | None = workloads.DEFAULT) -> list[Kernel]:
        """The kernels of a group (`all`: of every group) and workload, branch by branch.

        To `ladder` belong all rungs, also those that are the tutorials', in their order.
        """
        every = [k for k in self.kernels.values() if workload in (None, k.workload)]
        if name == "ladder":
            rungs = [kernel for kernel in every if kernel.rung or kernel.group == name]
            return sorted(rungs, key=lambda kernel: kernel.rung or 0)
        members = [kernel for kernel in every if name in ("all", kernel.group)]
        return sorted(members, key=lambda kernel: [k.name for k in line_to(kernel, self.kernels)])

    def baselines(
        self, asked: Iterable[str], computed: Collection[str] = (workloads.DEFAULT,)
    ) -> list[Kernel]:
        """The kernels of `--baseline`: names or patterns (`cublas*`).

        Baselines of workloads other than those `computed` are refused.
        """
        every = {kernel.name: kernel for kernel in self.group("baseline", None)}
        known = {name: kernel for name, kernel in every.items() if kernel.workload in computed}
        chosen: dict[str, Kernel] = {}
        for pattern in asked:
            if not (names := fnmatch.filter(known, pattern)):
                there = ", ".join(known) or f"none for {', '.join(computed)}"
                other = every.get(pattern)
                wrong = f"it computes {other.workload}" if other else "no such baseline"
                raise UsageError(f"--baseline {pattern!r}: {wrong}; available: {there}")
            chosen |= {name: known[name] for name in names}
        return list(chosen.values())
