"""Writes the parameters that won into `[sweep]` of a kernel's table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from matbench.errors import UsageError
from matbench.kernelfile import catalogue, front_matter, python_file, revision, tables
from matbench.kernelfile.tables import Table
from matbench.model import Kernel


def place(kernel: Kernel) -> Path:
    """The file with a kernel's table; `UsageError` if it cannot be written."""
    source = Path(kernel.file)
    if revision.named(kernel.path) is not None:
        raise UsageError(f"--write: {kernel.path} is of a revision; name the file")
    if source.resolve().is_relative_to(catalogue.kernels_folder().resolve()):
        copy = f"matbench kernels {kernel.name} > mine.cu"
        raise UsageError(f"--write: {kernel.name} comes with matbench; tune a copy: {copy}")
    beside = source.with_suffix(".toml")
    path = beside if beside.is_file() and not python_file.is_python(kernel.path) else source
    if path == source and not _table(kernel, path).is_fenced:
        raise UsageError(f"--write: {path} has no table; write one with [sweep]")
    if not (os.access(path, os.W_OK) and os.access(path.resolve().parent, os.W_OK)):
        raise UsageError(f"--write: {path} is not writable; make it so, or use --set")
    return path


def written(kernel: Kernel, path: Path, params: Mapping[str, int]) -> bytes:
    """The content of `path` with `params` as the only values in `[sweep]`; other lines stay."""
    import tomlkit

    table = _table(kernel, path)
    closing = "\n" if table.is_fenced else ""
    document = tomlkit.parse("\n".join(table.lines) + closing)
    sweep = document.setdefault("sweep", tomlkit.table())
    for name, value in params.items():
        sweep[name] = [value]
    lines = path.read_bytes().decode().split("\n")
    first = table.first_line - 1
    old = lines[first : first + len(table.lines)]
    kept = dict(zip(table.lines, old, strict=True))
    start = "" if path.suffix == ".toml" else "# " if path.suffix == ".py" else "// "
    end = "\r" if lines[0].endswith("\r") else ""
    lines[first : first + len(old)] = [
        kept.get(line, f"{start}{line}".rstrip() + end)
        for line in tomlkit.dumps(document).removesuffix(closing).split("\n")
    ]
    return "\n".join(lines).encode()


def _table(kernel: Kernel, path: Path) -> Table:
    source = front_matter.decoded(catalogue.read(path, str(path)), str(path))
    if path.suffix == ".toml":
        return Table(str(path), "", tables.Beside(str(path), source), {})
    if path.suffix == ".py":
        source = python_file.place_of(kernel)[1]
    return Table(str(path), source, None, {})
