"""Records as JSON, and back: unknown values and numbers that are not finite are null."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from math import isfinite
from pkgutil import resolve_name
from typing import Any

import msgspec

from matbench.records import KINDS

#: Legal in JSON, but a line end to some readers or a control character to some terminals.
_UNSEEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class RecordError(ValueError):
    """A line that is not a record; the message says why."""


class TornError(RecordError):
    """A line that is not JSON, perhaps because its write was interrupted."""


class Head(msgspec.Struct, frozen=True):
    """What all records have: what they are, by their tags; environments also have a schema."""

    type: str
    schema: int | None = None


def line(record: msgspec.Struct | dict[str, Any]) -> str:
    """One line of JSON, without a newline."""
    plain = msgspec.to_builtins(record, enc_hook=lambda number: number.item())  # NumPy's
    text = json.dumps(_finite(plain), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # File names that are not UTF-8 appear in argv and messages as lone surrogates.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def array(records: Iterable[msgspec.Struct | dict[str, Any]]) -> str:
    """Records as one JSON array, an object per line."""
    return "[\n" + ",\n".join(map(line, records)) + "\n]"


def _finite(value: Any) -> Any:
    """Plain data in which numbers that are not finite are unknown."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def decode(line: bytes, kind: str | None = None) -> Any:
    """One line of a file as a record of that kind, or else its `Head`; `RecordError` if it is
    none, in one line."""
    if kind not in (None, *KINDS):
        raise RecordError(f"a record of another kind: {kind!r}")
    try:
        return _decoder(kind).decode(line)
    except (msgspec.DecodeError, ValueError) as error:
        wrong = RecordError if isinstance(error, msgspec.ValidationError) else TornError
        raise wrong(f"{' '.join(str(error).split()):.200}") from None
    except RecursionError:
        raise RecordError("nested too deeply") from None


@cache
def _decoder(kind: str | None) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(Head if kind is None else resolve_name(KINDS[kind]))
