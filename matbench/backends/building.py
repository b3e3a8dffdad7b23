"""Helpers for building a kernel, whichever the compiler."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import msgspec

from matbench import temporary
from matbench.cache import Cache
from matbench.errors import BuildError
from matbench.kernelfile import includes, opencl_c
from matbench.kernelfile.revision import revision
from matbench.model import Kernel

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_ERROR = re.compile(r"(?:^|\s)(?:error|fatal)\b[^:]*:")


def includes_own_files(kernel: Kernel) -> bool:
    """Whether it includes files that do not belong to the compiler and so can change any time."""
    return bool(kernel.includes) or any(
        not name.startswith("<") or _is_own(kernel, name[1:].partition(">")[0])
        for name in includes.operands(kernel.source)
    )


def _is_own(kernel: Kernel, name: str) -> bool:
    return bool(kernel.file) and any(
        (folder / name).is_file() for folder in includes.folders(kernel)
    )


def opencl_unit(
    cache: Cache, kernel: Kernel, params: Mapping[str, int], clock: str | None
) -> opencl_c.Unit:
    """The kernel as OpenCL C, from the cache unless it includes files, which can change."""
    if kernel.includes:
        return opencl_c.unit(kernel, params, clock)
    key = repr((revision(), kernel.path, kernel.source, kernel.entry, params, clock))
    kept = cache.get_or_make(key, lambda: msgspec.json.encode(opencl_c.unit(kernel, params, clock)))
    return msgspec.json.decode(kept, type=opencl_c.Unit)


@contextmanager
def temporary_files_removed() -> Iterator[None]:
    """Remove temporary files that Python code in this block leaves behind.

    PyCUDA and PyOpenCL leave the source behind if it does not compile.
    """
    usual = tempfile.tempdir
    with temporary.folder() as folder:
        tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = usual


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Change the working folder, because compilers search it for headers first."""
    before = os.open(".", os.O_RDONLY)
    try:
        try:
            os.chdir(folder)
        except OSError as error:
            raise BuildError(f"cannot change to folder {folder}: {error.strerror}") from None
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def first_error(output: str) -> str:
    """A compiler's first error with the source line and caret below it, or its whole output."""
    lines = [line.rstrip() for line in output.splitlines()]
    for number, line in enumerate(lines):
        if _ERROR.search(line):
            shown = takewhile(lambda below: below[:1].isspace(), lines[number + 1 :])
            return "\n".join([line.strip(), *shown])
    return "\n".join([line for line in lines if line][:20])
