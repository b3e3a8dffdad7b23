"""The errors that matbench raises: bad input, and failures of a case."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from pathlib import Path


class MatbenchError(Exception):
    """An error with a message for the user; the base class of matbench's errors."""


class UsageError(MatbenchError):
    """Bad input: one line that says what is wrong, where, and how to fix it.

    It may quote files and names, which cannot break the line or control the terminal. `paste` are
    lines to show below it, to be pasted into a file.
    """

    def __init__(self, message: str, paste: Sequence[str] = ()) -> None:
        super().__init__(_printable(message))
        self.paste = tuple(map(_printable, paste))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)


def listed(words: Iterable[str], last_word: str = "or") -> str:
    """`a, b or c`, for a message."""
    *others, last = words
    return f"{', '.join(others)} {last_word} {last}" if others else last


class CaseError(MatbenchError):
    """A case could not be built or run; the sweep goes on. `fatal`: the device context is lost."""

    def __init__(self, reason: str, fatal: bool = False) -> None:
        super().__init__(reason, fatal)
        self.reason = reason
        self.fatal = fatal

    def __str__(self) -> str:
        return self.reason


class BuildError(CaseError):
    """The kernel did not compile; the reason is the compiler's message."""


class OutOfMemoryError(CaseError):
    """The device or the host has not enough memory."""


def explanation(error: BaseException) -> str:
    """What went wrong, with the limit or the folder to change if that is the cause."""
    said = getattr(error, "strerror", None) or str(error) or "out of memory"
    number = getattr(error, "errno", None)
    if number == errno.EMFILE:
        said += "; raise `ulimit -n`"
    elif number == errno.EAGAIN or "start new thread" in said:
        said += "; raise `ulimit -u`, or `ulimit -v` if memory is limited"
    elif isinstance(error, FileNotFoundError) and not _has_working_folder():
        return "the working folder no longer exists; change to another one"
    where = getattr(error, "filename", None)
    return f"{where}: {said}" if where else said


def _has_working_folder() -> bool:
    try:
        return bool(Path.cwd())
    except FileNotFoundError:
        return False
