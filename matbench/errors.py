"""The errors that matbench raises: bad input, and failures of a case."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: A compiler or an exception may say megabytes.
_LONGEST = 2000
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_CUT = re.compile(r"… \(([0-9]+) more characters\)")


def readable(text: str) -> str:
    """A reason or a note: cut, and without control characters except newlines and tabs."""
    if len(text) > _LONGEST:
        rest = text[_LONGEST - 40 :]
        more = len(_CUT.sub("", rest)) + sum(map(int, _CUT.findall(rest)))
        text = f"{text[: _LONGEST - 40]}… ({more} more characters)"
    return "".join(
        c if c.isprintable() or c in "\n\t" else " " if c.isspace() else "\ufffd" for c in text
    )


class MatbenchError(Exception):
    """An error with a message for the user; the base class of matbench's errors."""

    def __init__(self, message: str, *more: object) -> None:
        super().__init__(readable(message), *more)


class UsageError(MatbenchError):
    """Bad input: one line that says what is wrong, where, and how to fix it.

    It may quote files and names, which cannot break the line or control the terminal. `paste` are
    lines to show below it, to be pasted into a file.
    """

    def __init__(self, message: str, paste: Sequence[str] = ()) -> None:
        super().__init__(_on_one_line(message))
        self.paste = tuple(map(_on_one_line, paste))


class NotAdoptedError(UsageError):
    """No call of a kernel without front matter is right: the table of the `closest`, if there is
    one. `is_lacking`: it cannot be built here, because the device lacks what it needs."""

    def __init__(
        self, message: str, closest: dict[str, Any] | None = None, *, is_lacking: bool = False
    ) -> None:
        super().__init__(message)
        self.closest, self.is_lacking = closest, is_lacking


def _on_one_line(text: str) -> str:
    return readable(text).replace("\n", " ").replace("\t", " ")


def listed(words: Iterable[str], last_word: str = "or") -> str:
    """`a, b or c`, for a message."""
    *others, last = words
    return f"{', '.join(others)} {last_word} {last}" if others else last


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    """The known name that is most like this one, as a question; or else what to say instead."""
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else otherwise


class CaseError(MatbenchError):
    """A case could not be built or run; the sweep goes on. `fatal`: the device context is lost."""

    def __init__(self, reason: str, fatal: bool = False) -> None:
        super().__init__(reason)
        self.reason = str(self)
        self.fatal = fatal


class BuildError(CaseError):
    """The kernel did not compile; the reason is the compiler's message."""


class LackingError(BuildError):
    """This machine lacks what the case needs, so that it is skipped."""


class ResultError(CaseError):
    """A function ran, and returned something else than was asked for, so that the case is wrong."""


class OutOfMemoryError(CaseError):
    """The device or the host has not enough memory."""


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Whatever reading `what` raises is a `UsageError`, unless no process can do anything."""
    try:
        yield
    except Exception as error:
        if isinstance(error, UsageError) or type(error) is MatbenchError:
            raise
        raise UsageError(f"{what}: {type(error).__name__}: {explanation(error)}") from error


def explanation(error: BaseException) -> str:
    """What went wrong, with the limit or the folder to change if that is the cause."""
    said = getattr(error, "strerror", None) or message_of(error) or "out of memory"
    number = getattr(error, "errno", None)
    if number == errno.EMFILE:
        said += "; raise `ulimit -n`"
    elif number == errno.EAGAIN or "start new thread" in said:
        said += "; raise `ulimit -u`, or `ulimit -v` if memory is limited"
    elif isinstance(error, FileNotFoundError) and not _has_working_folder():
        return "the working folder no longer exists; change to another one"
    where = getattr(error, "filename", None)
    return f"{where}: {said}" if where else said


def message_of(error: BaseException) -> str:
    """What an error says, without colours; its class may be a kernel's."""
    try:
        return _COLOUR.sub("", str(error))
    except BaseException:
        return "its message cannot be read"


def _has_working_folder() -> bool:
    try:
        return bool(Path.cwd())
    except FileNotFoundError:
        return False
