"""Helpers for building a kernel, whichever the compiler."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

from matbench import files
from matbench.errors import BuildError
from matbench.kernelfile import includes
from matbench.model import Kernel

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_WARNING = re.compile(
    r"^(?P<file>.+?)[:(](?P<line>\d+)(?:\)|:\d+)?: warning(?: #[\w-]+)?: (?P<said>.*)$",
    re.MULTILINE,
)
#: The most warnings of a kernel that are shown, and those that explain no mistake.
_MOST_WARNINGS = 2
_UNUSED = re.compile(r"\bunused\b|never (?:referenced|used)")
_ERROR = re.compile(r"(?:^|\s)(?:error|fatal)\b[^:]*:")


def includes_own_files(kernel: Kernel) -> bool:
    """Whether it includes files that do not belong to the compiler and so can change any time."""
    folders = includes.folders(kernel) if kernel.file else ()
    return bool(kernel.includes) or any(
        not name.startswith("<")
        or any((folder / name[1:].partition(">")[0]).is_file() for folder in folders)
        for name in includes.operands(kernel.source)
    )


#: Held while the working folder is another: all threads of a process share it.
_moving = threading.RLock()


@contextmanager
def apart() -> Iterator[Path]:
    """Work in a private folder, which takes all temporary files and is removed afterwards.

    Compilers, linkers and OpenCL runtimes look for libraries, headers and settings in the working
    folder, which may be anyone's. PyCUDA and PyOpenCL leave a source behind that does not compile.
    """
    with files.temporary_folder() as folder, _moving:
        usual = tempfile.tempdir
        # A descriptor leads back even if the folder was deleted.
        before = os.open(".", getattr(os, "O_PATH", os.O_RDONLY))
        try:
            os.chdir(folder)
            tempfile.tempdir = str(folder)
            yield folder
        finally:
            tempfile.tempdir = usual
            os.chdir(before)
            os.close(before)


def settings(*prefixes: str) -> list[str]:
    """The environment variables with these prefixes, as `NAME=VALUE`."""
    given = sorted(os.environ.items())
    return [f"{name}={value}" for name, value in given if value and name.startswith(prefixes)]


def run(command: Sequence[str], folder: Path, text: str = "") -> bytes:
    """What a compiler says that runs in this folder, with a text as its standard input.

    `BuildError`: its first error. Headers in the working folder would precede the toolkit's.
    """
    done = subprocess.run(
        command,
        input=text.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        check=False,
    )
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace")
        missing = re.search(r"cannot find -l([\w.+-]+)", said)
        raise BuildError(f"link: no library {missing[1]}" if missing else first_error(said))
    return done.stdout


def warnings_of(output: str, kernel: Kernel) -> tuple[str, ...]:
    """What a compiler warns of in the kernel's own files, with the line of each."""
    own = {Path(name).name for name in (kernel.path, *(i.name for i in kernel.includes))}
    found = (
        f"{name}:{match['line']}: {match['said']}"
        for match in _WARNING.finditer(output)
        if (name := Path(match["file"]).name) in own and not _UNUSED.search(match["said"])
    )
    return tuple(dict.fromkeys(found))[:_MOST_WARNINGS]


def first_error(output: str) -> str:
    """A compiler's first error with the source line and caret below it, or its whole output."""
    lines = [line.rstrip() for line in output.splitlines()]
    for number, line in enumerate(lines):
        if _ERROR.search(line):
            shown = takewhile(lambda below: below[:1].isspace(), lines[number + 1 :])
            return "\n".join([line.strip(), *shown])
    return "\n".join([line for line in lines if line][:20])
