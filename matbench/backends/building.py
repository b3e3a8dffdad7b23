"""What building a kernel needs, whichever compiler does it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

from matbench.kernelfile import signature
from matbench.model import Kernel

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_INCLUDED = re.compile(INCLUDE.pattern + r"[ \t]*(.*)", re.MULTILINE)
_ERROR = re.compile(r"(?:^|\s)(?:error|fatal)\b[^:]*:")


def includes_own_files(kernel: Kernel) -> bool:
    """Whether it includes files that do not come with the compiler and so can change any time."""
    folder = Path(kernel.path).parent
    return any(
        not name.startswith("<") or (folder / name[1:].partition(">")[0]).is_file()
        for name in _INCLUDED.findall(signature.without_comments(kernel.source))
    )


@contextmanager
def temporary_files_removed() -> Iterator[None]:
    """Remove what Python code leaves among temporary files in this block.

    PyCUDA and PyOpenCL leave the source behind when it does not compile.
    """
    usual = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="matbench-") as folder:
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = usual


def first_error(output: str) -> str:
    """A compiler's first error with the source line and caret below it, or all that it said."""
    lines = [line.rstrip() for line in output.splitlines()]
    for number, line in enumerate(lines):
        if _ERROR.search(line):
            shown = takewhile(lambda below: below[:1].isspace(), lines[number + 1 :])
            return "\n".join([line.strip(), *shown])
    return "\n".join([line for line in lines if line][:20])
