"""The kernels of a file without front matter, with what is known of the file around them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matbench.errors import MatbenchError, UsageError
from matbench.kernelfile import front_matter, includes, signature
from matbench.kernelfile.signature import Function
from matbench.kernelfile.unpacking import unpacked
from matbench.model import Kernel

#: How many files beside a header are looked at for launches, and how much of each.
_MOST_BESIDE = 200
_MOST_TEXT = 200_000


class ForeignKernel(NamedTuple):
    """A kernel to adopt: one `__global__` function of a file.

    `bare` is the file's text, `source` the same after the headers if these define the function, and
    `beside` are the texts of files that include it. `given` are keys of its table.
    """

    bare: str
    path: Path
    source: str
    function: Function
    beside: str = ""
    given: Mapping[str, Any] = {}

    def load(self, table: Mapping[str, Any]) -> Kernel:
        """The kernel with a table; `UsageError` if that is not valid."""
        keys = {"name": "adopted", **self.given, **table}
        return front_matter.parse(self.bare.encode(), str(self.path), self.path, None, keys)


def subjects(
    bare: str, path: Path, entry: str | None, given: Mapping[str, Any]
) -> list[ForeignKernel]:
    """The kernels to adopt: the one that is named `entry`, or all."""
    try:
        source = unpacked(bare)
        if not signature.functions(source):
            headers = includes.find_includes(bare, path, given.get("include_dirs", ()))
            source = unpacked("\n".join([*includes.texts(headers), bare]))
        functions = signature.functions(source)
    except signature.SourceError as error:
        raise UsageError(f"{path}:{error.line or 1}: {error}") from None
    beside = _including(path)
    chosen = _chosen(functions, entry, path)
    return [ForeignKernel(bare, path, source, function, beside, given) for function in chosen]


def _including(path: Path) -> str:
    """The texts of the files, beside a header and in the folder above, that include it."""
    texts, file = [], path.resolve()
    for folder in (file.parent, file.parent.parent) if file.suffix != ".cu" else ():
        with contextlib.suppress(OSError):
            others = [one for one in folder.iterdir() if one.suffix in (".cu", ".cuh", ".cpp")]
            for other in sorted(others)[:_MOST_BESIDE]:
                with contextlib.suppress(OSError, MatbenchError):
                    text = other.read_text(encoding="utf-8", errors="replace")[:_MOST_TEXT]
                    included = includes.find_includes(text, other) if "<<<" in text else ()
                    if any(Path(header.path).resolve() == file for header in included):
                        texts.append(text)
    return "\n".join(texts)


def _chosen(functions: list[Function], entry: str | None, path: Path) -> list[Function]:
    if not functions:
        raise UsageError(f"{path}: no `__global__` function; is it a kernel file?")
    if entry is None:
        return functions
    matches = [f for f in functions if entry in (f.name, f.name.rpartition("::")[2])]
    if not matches:
        there = ", ".join(dict.fromkeys(function.name for function in functions))
        raise UsageError(f"--entry {entry!r}: not in {path}; it has: {there:.200}")
    return matches[:1]
