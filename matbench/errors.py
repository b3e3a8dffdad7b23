"""The errors that matbench raises: bad input, and failures of a case."""

from __future__ import annotations

from collections.abc import Sequence


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
