"""Solutions of flashinfer-bench and SOL-ExecBench: `solution.json`, with the text of its files."""

from __future__ import annotations

import atexit
import functools
import re
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

import msgspec

from matbench import temporary
from matbench.errors import UsageError

_FORM = "flashinfer-bench's form"
#: Files that PyTorch compiles, and loads as a module.
_COMPILED = (".cu", ".cpp", ".cc", ".cxx")
_LOADED = """import pathlib
from torch.utils.cpp_extension import load
here = pathlib.Path({folder!r})
module = load(name={name!r}, sources=[str(here / name) for name in {sources!r}],
              extra_include_paths=[str(here)], extra_cuda_cflags=["-O3"])
"""


class _Source(msgspec.Struct):
    path: str
    content: str


class _Spec(msgspec.Struct):
    entry_point: str
    languages: list[str] = []
    destination_passing_style: bool = True


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


def unpacked(data: bytes, path: Path) -> Unpacked | None:
    """The solution in the data of a JSON file; None if it is something else. `UsageError`: what is
    wrong."""
    try:
        found = msgspec.json.decode(data, type=_Solution)
    except msgspec.MsgspecError as error:
        try:
            is_one = "sources" in msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        except msgspec.MsgspecError:
            is_one = False
        if is_one:
            raise UsageError(f"{path}: no solution: {error}") from None
        return None
    entry, _, call = found.spec.entry_point.partition("::")
    texts = {source.path: source.content for source in found.sources}
    for name in texts:
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts or not place.name:
            raise UsageError(f"{path}: sources: {name!r:.60} is not a path inside its folder")
    if entry not in texts or not call.isidentifier():
        raise UsageError(
            f"{path}: entry_point {found.spec.entry_point!r:.60}: must be FILE::FUNCTION, with one "
            f"of its sources: {', '.join(texts)}"
        )
    folder = _folder(data)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    file, text = folder / entry, texts[entry]
    if file.suffix in _COMPILED:
        sources = [name for name in texts if Path(name).suffix in _COMPILED]
        module = re.sub(r"\W", "_", found.name)
        text = _LOADED.format(folder=str(folder), name=module, sources=sources)
        file, call = folder / "submission_loads.py", f"module.{call}"
    elif file.suffix != ".py":
        raise UsageError(f"{path}: {entry}: matbench runs Python, C++ and CUDA")
    form = "SOL-ExecBench's form" if found.spec.languages else _FORM
    fills_C, of = found.spec.destination_passing_style, found.definition
    return Unpacked(file, text, call, fills_C, of, form)


@functools.cache
def _folder(data: bytes) -> Path:
    """A folder for its files, which is removed at the end."""
    held = ExitStack()
    atexit.register(held.close)
    return held.enter_context(temporary.folder())
