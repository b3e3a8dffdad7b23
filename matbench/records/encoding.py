"""Records as JSON: what is not known is null, and a number that is not finite is not known."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterable
from functools import cache
from math import isfinite
from numbers import Real
from typing import Any, TypeVar

import msgspec

from matbench.records.environment import Environment
from matbench.records.outcome import Outcome, Timing

T = TypeVar("T", bound=msgspec.Struct)

#: What JSON may hold as it is, but ends lines for some readers or commands some terminals.
_UNSEEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def finite(record: T) -> T:
    """The record as it is written: numbers that are not finite become unknown, with a note.

    The note stands with the samples, or else with the outcome, that the numbers belong to. Samples
    are left out one by one; a pair of bounds is unknown as a whole.
    """
    return _finite(record)[0]


def _finite(record: T) -> tuple[T, list[str]]:
    """The record without what is not finite, and what that was unless its own notes say so."""
    changes: dict[str, Any] = {}
    lost: list[str] = []
    for name in record.__struct_fields__:
        value = getattr(record, name)
        known, told = _finite_value(value, name in _of_any_length(type(record)))
        if known is not value:
            changes[name] = known
            lost += (f"{name}{more}" for more in told)
    if isinstance(record, Timing) and "samples_ns" in changes:
        # They were those of all samples, and are not computed here from those that remain.
        changes |= {"median_ns": None, "interval_ns": None}
    if lost and hasattr(record, "notes"):
        note = f"not finite, so recorded as unknown: {', '.join(lost)}"
        changes["notes"], lost = (*record.notes, note), []
    return (msgspec.structs.replace(record, **changes) if changes else record), lost


def _finite_value(value: Any, of_any_length: bool) -> tuple[Any, list[str]]:
    """A field's value without what is not finite, and how a note goes on after the field's name.

    A value that is finite throughout comes back itself.
    """
    if isinstance(value, msgspec.Struct):
        known, lost = _finite(value)
        return known, [f".{more}" for more in lost]
    if _not_finite(value):
        return None, [f" ({float(value)})"]
    if not isinstance(value, tuple) or _all_finite(value):
        return value, []
    if any(map(_not_finite, value)):
        lost = sorted({str(float(item)) for item in value if _not_finite(item)})
        kept = tuple(item for item in value if not _not_finite(item)) if of_any_length else None
        return kept, [f" ({', '.join(lost)})"]
    if not any(isinstance(item, msgspec.Struct) for item in value):
        return value, []
    items = [_finite_value(item, False) for item in value]
    if all(known is item for (known, _), item in zip(items, value, strict=True)):
        return value, []
    lost = [f"[{index}]{more}" for index, (_, told) in enumerate(items) for more in told]
    return tuple(known for known, _ in items), lost


def _all_finite(values: tuple[Any, ...]) -> bool:
    """Whether these are numbers, thousands of samples say, and all of them finite."""
    try:
        return all(map(isfinite, values))
    except TypeError:
        return False


def _not_finite(value: Any) -> bool:
    return isinstance(value, float | Real) and not isinstance(value, int) and not isfinite(value)


@cache
def _of_any_length(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The fields of a record that hold any number of values."""
    hints = typing.get_type_hints(kind)
    return frozenset(name for name, hint in hints.items() if Ellipsis in typing.get_args(hint))


def line(record: msgspec.Struct) -> str:
    """One line of JSON, without its end."""
    plain = _without_nan(msgspec.to_builtins(finite(record), enc_hook=_number))
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # File names that are not UTF-8 reach argv and messages as lone surrogates.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _without_nan(value: Any) -> Any:
    """Null for what no note can tell: settings, and records without notes."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    return [_without_nan(item) for item in value] if isinstance(value, list | tuple) else value


def _number(value: Any) -> int | float:
    """NumPy's scalars as Python's."""
    number = value.item() if hasattr(value, "item") else None
    if not isinstance(number, int | float):
        raise TypeError(f"cannot record a {type(value).__name__}")
    return number


def array(records: Iterable[msgspec.Struct]) -> str:
    """Records as one JSON array, an object a line."""
    return "[\n" + ",\n".join(map(line, records)) + "\n]"


def to_json(environments: Iterable[Environment], outcomes: Iterable[Outcome]) -> str:
    """The objects of a record file as one JSON array."""
    return array([*environments, *outcomes])
