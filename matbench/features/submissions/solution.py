"""Solutions of flashinfer-bench and SOL-ExecBench: `solution.json`, with the text of its files."""

from __future__ import annotations

import atexit
import codecs
import functools
import re
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

import msgspec

from matbench import files
from matbench.errors import UsageError
from matbench.kernelfile import catalogue, python_file

#: Files that PyTorch compiles, and loads as a module.
_COMPILED = (".cu", ".cpp", ".cc", ".cxx")
_LOADED = """import pathlib
from torch.utils.cpp_extension import load
here = pathlib.Path({folder!r})
(here / "built").mkdir(exist_ok=True)
options = {options!r}
module = load(
    name={name!r}, sources=[str(here / name) for name in {sources!r}],
    extra_include_paths=[str(here)], build_directory=str(here / "built"),
    extra_cflags=options.get("cflags", []), extra_ldflags=options.get("ld_flags", []),
    extra_cuda_cflags=options.get("cuda_cflags", ["-O3"]),
)
"""
#: What PyTorch needs of them, and a text that uses it.
_BOUND = re.compile(r"\bPYBIND11_MODULE\b|\bTORCH_LIBRARY\w*\b")
_TORCH = re.compile(r"^\s*(?:import|from)\s+(?:torch|triton)\b", re.MULTILINE)


class _Source(msgspec.Struct):
    """Without `content`, it is a file beside the solution."""

    path: str
    content: str | None = None


class _Spec(msgspec.Struct):
    entry_point: str
    languages: list[str] = []
    destination_passing_style: bool = True
    compile_options: dict[str, list[str]] | None = None


class _Solution(msgspec.Struct):
    name: str
    definition: str
    spec: _Spec
    sources: list[_Source]


class Unpacked(msgspec.Struct, frozen=True):
    """A solution whose files are in a folder: the `file` to run and its text, the function to
    `call` in it, whether that `fills_C`, the name of the `definition`, and the form."""

    file: Path
    text: str
    call: str
    fills_C: bool
    definition: str
    form: str


def unpacked(data: bytes, path: Path) -> Unpacked:
    """The solution in the data of a JSON file; `UsageError`: what is wrong."""
    try:
        found = msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8), type=_Solution)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: no solution: {error}") from None
    entry, _, call = found.spec.entry_point.partition("::")
    texts = {source.path: _text(source, path) for source in found.sources}
    if entry not in texts or not call.isidentifier():
        raise UsageError(
            f"{path}: entry_point {found.spec.entry_point!r:.60}: must be FILE::FUNCTION, with one "
            f"of its sources: {', '.join(texts)}"
        )
    folder = _folder((data, *texts.values()))
    for name, text in texts.items():
        try:
            files.write_below(folder, name, text.encode())
        except OSError as error:
            told = f"{path}: sources: {name!r:.60} cannot be written: {error.strerror}"
            raise UsageError(told) from None
    file, text, call = _called(found, folder, texts, path)
    if any(map(_TORCH.search, texts.values())):
        text += "\nimport torch\n"
    form = "SOL-ExecBench's form" if found.spec.languages else "flashinfer-bench's form"
    fills_C = found.spec.destination_passing_style
    return Unpacked(file, text, call, fills_C, found.definition, form)


def _called(
    found: _Solution, folder: Path, texts: dict[str, str], path: Path
) -> tuple[Path, str, str]:
    """The file that is run, its text, and what is called in it: the entry point's file, or one that
    loads it."""
    entry, _, call = found.spec.entry_point.partition("::")
    at = PurePosixPath(entry)
    if at.suffix == ".py":
        python_file.tree(texts[entry], f"{path}: {entry}")
        if not re.search(rf"\b{call}\b|\bimport[ (]*\*", texts[entry]):
            raise UsageError(f"{path}: {entry}: has no {call}, its entry_point")
        if len(at.parts) == 1:
            return folder / entry, texts[entry], call
        loads = f"import {'.'.join(at.with_suffix('').parts)} as module\n"
    elif at.suffix not in _COMPILED:
        raise UsageError(f"{path}: {entry}: matbench runs Python, C++ and CUDA")
    elif any(map(_BOUND.search, texts.values())):
        sources = [name for name in texts if Path(name).suffix in _COMPILED]
        name, options = re.sub(r"\W", "_", f"of_{found.name}"), found.spec.compile_options or {}
        loads = _LOADED.format(folder=str(folder), name=name, sources=sources, options=options)
    else:
        raise UsageError(
            f"{path}: no source has a PYBIND11_MODULE; matbench loads C++ and CUDA with PyTorch"
        )
    return folder / "submission_loads.py", loads, f"module.{call}"


def _text(source: _Source, path: Path) -> str:
    """The text of a source; `UsageError` if it has none, or leads out of its folder."""
    place = PurePosixPath(source.path)
    if place.is_absolute() or ".." in place.parts or not place.name or "\0" in source.path:
        raise UsageError(f"{path}: sources: {source.path!r:.60} is not a path inside its folder")
    if source.content is not None:
        return source.content
    beside = path.parent / source.path
    return catalogue.read(beside, str(beside)).decode("utf-8-sig", errors="replace")


@functools.cache
def _folder(of: tuple[bytes | str, ...]) -> Path:
    """A folder for its files, which is removed at the end."""
    held = ExitStack()
    atexit.register(held.close)
    return held.enter_context(files.temporary_folder())
