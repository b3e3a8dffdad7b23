"""What can go wrong, as matbench raises it: the user's errors, and a case's."""

from __future__ import annotations

from collections.abc import Sequence


class MatbenchError(Exception):
    """An error with a message for the user; the base of all that matbench raises itself."""


class UsageError(MatbenchError):
    """Bad input: one line that says what is wrong, where, and how to fix it.

    It may quote files and names: nothing in them breaks the line or commands a terminal. Below it,
    lines to `paste` into a file may show what would be right.
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
    """The device or the host does not have the memory that was asked for."""
