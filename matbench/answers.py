"""What a process that runs a user's code answers: a value or an error, as data of a known type."""

from __future__ import annotations

from typing import Any

import msgspec

from matbench import errors
from matbench.errors import CaseError, explanation, message_of, readable

_ERRORS = [name for name in vars(errors) if name.endswith("Error")]


class _Answer(msgspec.Struct, frozen=True):
    """What a task returned, or the number of its error's kind, and its words."""

    value: msgspec.Raw = msgspec.Raw(b"\xc0")  # None
    error: int | None = None
    reason: str = ""
    fatal: bool = False


def of_value(value: Any) -> bytes:
    """The answer of a task in this process that returned a value."""
    return msgspec.msgpack.encode(
        _Answer(msgspec.Raw(msgspec.msgpack.encode(value, enc_hook=_plain)))
    )


def of_error(error: BaseException, process: str) -> bytes:
    """The answer of a task that raised an error; what only a bug or a kernel raises is fatal, and
    its words name the process."""
    kind, said, fatal = type(error), message_of(error), getattr(error, "fatal", False)
    if kind.__module__ not in ("matbench.errors", "matbench.backends.protocol"):
        said = f"{process} raised {kind.__name__}: {explanation(error)}"
        kind, fatal = CaseError, True
    name = next(one.__name__ for one in kind.__mro__ if one.__name__ in _ERRORS)
    answer = _Answer(error=_ERRORS.index(name), reason=readable(said), fatal=fatal)
    return msgspec.msgpack.encode(answer)


def decoded(data: bytes, kind: Any) -> Any:
    """The value of that kind, or the error, in an answer; `ValueError`: it is none."""
    try:
        answer = msgspec.msgpack.decode(data, type=_Answer)
        if answer.error is None:
            return msgspec.msgpack.decode(answer.value, type=kind, dec_hook=_array)
        error: Exception = getattr(errors, _ERRORS[answer.error])(answer.reason)
    except (msgspec.MsgspecError, IndexError, ValueError) as wrong:
        raise ValueError(f"{type(wrong).__name__}: {wrong}") from None
    if isinstance(error, CaseError):
        error.fatal = answer.fatal
    return error


def _array(kind: Any, data: Any) -> Any:
    """An array of NumPy, from what `_plain` makes of it."""
    import numpy as np

    dtype, shape, values = data
    return np.frombuffer(values, dtype).reshape(shape)


def _plain(value: Any) -> Any:
    """An array of NumPy, or a number, as plain data."""
    return (value.dtype.str, value.shape, value.tobytes()) if value.shape else value.item()
