"""Records as JSON: unknown values and numbers that are not finite are null."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from math import isfinite
from numbers import Real
from typing import Any, TypeVar

import msgspec

from matbench.records.outcome import Timing

T = TypeVar("T", bound=msgspec.Struct)

#: Legal in JSON, but a line end to some readers or a control character to some terminals.
_UNSEEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def finite(record: T) -> T:
    """The record as it is written: numbers that are not finite become unknown, with a note.

    The note is added to the samples, or else to the outcome, that the numbers belong to. Samples
    are dropped one by one; a pair of bounds becomes unknown as a whole.
    """
    result: T = _finite(record, "", [])
    return result


def _finite(value: Any, place: str, lost: list[str]) -> Any:
    """The value without numbers that are not finite; their places are added to `lost`."""
    if isinstance(value, msgspec.Struct):
        notes = getattr(value, "notes", None)
        unknown: list[str] = lost if notes is None else []
        above = f"{place}." if place and notes is None else ""
        names = value.__struct_fields__
        fields = {name: _finite(getattr(value, name), above + name, unknown) for name in names}
        if notes is not None and unknown:
            note = f"not finite, so recorded as unknown: {', '.join(unknown)}"
            fields["notes"] = (*notes, note)
        if isinstance(value, Timing) and len(fields["samples_ns"]) < len(value.samples_ns):
            # They were those of all samples; this module does not compute statistics.
            fields |= {"median_ns": None, "interval_ns": None, "rounds": ()}
        return type(value)(**fields)
    if isinstance(value, dict):
        return {name: _finite(item, f"{place}.{name}", lost) for name, item in value.items()}
    numbers = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(number, Real) for number in numbers):
        is_several = isinstance(value, tuple)
        return tuple(_finite(item, place, lost) for item in value) if is_several else value
    # An integer may be too large for a float.
    kept = tuple(n for n in numbers if isinstance(n, int) or isfinite(n))
    if len(kept) == len(numbers):
        return value
    lost.append(f"{place} ({', '.join(sorted({str(n) for n in numbers if n not in kept}))})")
    return kept if place == "samples_ns" else None


def line(record: msgspec.Struct | dict[str, Any]) -> str:
    """One line of JSON, without a newline."""
    known = _finite(record, "", [])
    plain = msgspec.to_builtins(known, enc_hook=lambda number: number.item())  # NumPy's
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # File names that are not UTF-8 appear in argv and messages as lone surrogates.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def array(records: Iterable[msgspec.Struct]) -> str:
    """Records as one JSON array, an object per line."""
    return "[\n" + ",\n".join(map(line, records)) + "\n]"
