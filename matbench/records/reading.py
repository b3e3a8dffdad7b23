"""Reads record files, also torn, older and hostile ones.

A file is a line of environment followed by one line per outcome, and again for every run that was
added to it. An array of the same objects, as `--format json` prints it, can be read too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from matbench.errors import UsageError
from matbench.records.checking import contradiction
from matbench.records.environment import SCHEMA, Environment
from matbench.records.outcome import Outcome
from matbench.records.tuning import TuningRecord
from matbench.records.upgrading import UPGRADES, upgrade

MAX_FILE_BYTES = 256 * 1024**2
MAX_LINE_BYTES = 16 * 1024**2
_FIRST_BYTES = b'{"type":"environment",'


class Contents(NamedTuple):
    """What a file holds. `whole_bytes` end with its last whole record; `note` says what follows."""

    environments: list[Environment]
    outcomes: list[Outcome]
    whole_bytes: int
    note: str | None
    is_array: bool


class RecordError(ValueError):
    """A line that is no record; the message says why."""


class _TornError(RecordError):
    """A line that is no JSON, as the end of a write that was interrupted is not."""


class _Head(msgspec.Struct, frozen=True):
    type: str
    schema: int | None = None


_HEAD = msgspec.json.Decoder(_Head)
_PLAIN = msgspec.json.Decoder(dict[str, Any])
_RECORD = msgspec.json.Decoder(Environment | Outcome | TuningRecord)


def read(path: Path, notes: list[str] | None = None) -> tuple[list[Environment], list[Outcome]]:
    """The environments and outcomes of a file, in its order, upgraded to the current schema.

    A torn last line is left out, and `notes` says so. `UsageError` names the file and the line
    that is no record. Nothing in the file is executed, and no path in it is opened.
    """
    contents = scan(path)
    if contents.note and notes is not None:
        notes.append(contents.note)
    return contents.environments, contents.outcomes


def scan(path: Path) -> Contents:
    """All that a file holds; `UsageError` as for `read`."""
    reader = _Reader(path)
    end, note = 0, None
    try:
        with path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                reader.number += 1
                if len(line) > MAX_LINE_BYTES:
                    reader.refuse(f"longer than {MAX_LINE_BYTES:,} bytes; not a record")
                if end + len(line) > MAX_FILE_BYTES:
                    raise UsageError(f"{path}: larger than {MAX_FILE_BYTES:,} bytes; split it")
                try:
                    reader.take(line)
                except _TornError as error:
                    if line.endswith(b"\n") or not reader.may_have_begun(line):
                        reader.refuse(f"not a record: {error}; fix or remove the line")
                    note = f"{path}:{reader.number}: not written to its end, so left out"
                    break
                except RecordError as error:
                    reader.refuse(f"not a record: {error}; fix or remove the line")
                end += len(line)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    return Contents(reader.environments, reader.outcomes, end, note, reader.is_array)


def decode(line: bytes, schema: int = SCHEMA) -> Environment | Outcome:
    """One line of a file as a record of the current schema; a `RecordError` says what it is not."""
    with _refusals():
        record: Environment | Outcome | TuningRecord
        if schema == SCHEMA:
            record = _RECORD.decode(line)
            if isinstance(record, TuningRecord):  # what `tune` prints
                record = record.outcome
        else:
            record = msgspec.convert(_upgraded(line, schema), Environment | Outcome)
        # The decoder takes the last of two values without a word. Numbers need no reading here.
        json.loads(line, object_pairs_hook=_without_repeats, parse_int=str, parse_float=str)
        wrong = contradiction(record) if isinstance(record, Outcome) else None
        if wrong is not None:
            raise RecordError(wrong)
        return record


def _upgraded(line: bytes, schema: int) -> dict[str, Any]:
    plain = _PLAIN.decode(line)
    try:
        return upgrade(plain, schema)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise RecordError(f"no outcome of schema {schema}") from None


@contextmanager
def _refusals() -> Iterator[None]:
    """Whatever decoding raises, as a `RecordError` of one line."""
    try:
        yield
    except (msgspec.ValidationError, json.JSONDecodeError, RecordError) as error:
        raise RecordError(_one_line(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _TornError(_one_line(error)) from None
    except RecursionError:
        raise RecordError("nested too deeply") from None


def _one_line(error: Exception) -> str:
    return f"{' '.join(str(error).split()):.200}"


def _without_repeats(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        names = Counter(name for name, _ in pairs)
        raise RecordError(f"{names.most_common(1)[0][0]!r:.60} occurs twice")


class _Reader:
    """Takes the lines of one file; each environment gives the schema of the lines after it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.is_array = False
        self.schema: int | None = None
        self.environments: list[Environment] = []
        self.outcomes: list[Outcome] = []

    def refuse(self, reason: str) -> NoReturn:
        raise UsageError(f"{self.path}:{self.number}: {reason}") from None

    def may_have_begun(self, line: bytes) -> bool:
        """Whether matbench can have begun this line: the first of a file tells by its start."""
        start = line[: len(_FIRST_BYTES)]
        return self.schema is not None or start == _FIRST_BYTES[: len(start)]

    def take(self, line: bytes) -> None:
        if self.number == 1 and line.strip() == b"[":
            self.is_array = True
            return
        if not line.strip() or (self.is_array and line.strip() == b"]"):
            return
        if self.is_array:
            line = line.rstrip().removesuffix(b",")
        record = decode(line, self._schema_of(line))
        if isinstance(record, Environment):
            self.environments.append(record)
        else:
            self.outcomes.append(record)

    def _schema_of(self, line: bytes) -> int:
        with _refusals():
            head = _HEAD.decode(line)
        if head.type == "environment":
            self.schema = self._known(head.schema)
        if self.schema is None:
            raise RecordError("no line of environment comes before it")
        return self.schema

    def _known(self, schema: int | None) -> int:
        if schema is not None and schema > SCHEMA:
            self.refuse(
                f"written by a newer matbench (schema {schema}, this one reads up to {SCHEMA}); "
                "upgrade matbench-cuda"
            )
        if schema is None or schema not in (*UPGRADES, SCHEMA):
            raise RecordError(f"there is no schema {schema}")
        return schema
