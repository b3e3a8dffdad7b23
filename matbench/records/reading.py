"""Reads record files, including torn and hostile ones.

A file has a line of environment followed by one line per outcome, for each run that wrote to it.
An array of the same objects, as printed by `--format json`, can be read too.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from matbench.errors import UsageError
from matbench.records.encoding import RecordError, TornError, decode
from matbench.records.environment import SCHEMA, Environment
from matbench.records.outcome import Outcome

MAX_LINE_BYTES = 16 * 1024**2
_MOST_NOTES = 10
_FIRST_BYTES = b'{"type":"environment",'

#: What commands find out about kernels, beside outcomes.
Finding = msgspec.Struct
Record = Environment | Outcome | Finding
#: A finding with the outcomes that it is about.
Pair = tuple[Finding, list[Outcome]]


class RecordSet:
    """Records by what they are.

    `findings` are records about outcomes, such as comparisons, each with its outcomes; `records`
    are all but environments, in their order.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.environments: list[Environment] = []
        self.outcomes: list[Outcome] = []
        self.findings: list[Pair] = []
        self.records: list[Outcome | Finding] = []
        self._last: list[Outcome] = []  # of the record before
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        if isinstance(record, Environment):
            self.environments.append(record)
            return
        about = (getattr(record, name, None) for name in ("outcome", "baseline", "candidate"))
        outcomes = [part for part in (record, *about) if isinstance(part, Outcome)]
        self.records.append(record)
        self.outcomes += outcomes
        self._last = outcomes[-1:] or self._last
        if not isinstance(record, Outcome):
            # `blocks` prints the outcome first; other records say of which case they are.
            before = [] if hasattr(record, "case") else self._last
            self.findings.append((record, outcomes or before))


class Contents(RecordSet):
    """The contents of a file, in its order; `UsageError` if matbench did not write it.

    A line that is no record is ignored. Nothing in the file is executed, and no path in it is
    opened. `whole_bytes` is the length without a torn last line; `notes` name the lines that are
    ignored.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.whole_bytes = 0
        self.notes: list[str] = []
        self.is_array = False
        self._path = path
        self._number = 0
        try:
            with path.open("rb") as file:
                while line := file.readline(MAX_LINE_BYTES + 1):
                    self._number += 1
                    self._take(line)
                    while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                        line = file.readline(MAX_LINE_BYTES + 1)  # the rest of it
                        self.whole_bytes += len(line)
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None

    def _take(self, line: bytes) -> None:
        text, where = line.strip(), f"{self._path}:{self._number}"
        if text == b"[" and self._number == 1:
            self.is_array = True
        elif text and not (text == b"]" and self.is_array):
            given = text.removesuffix(b",") if self.is_array else line
            try:
                if len(given) > MAX_LINE_BYTES:
                    raise RecordError(f"longer than {MAX_LINE_BYTES:,} bytes")
                head = decode(given)
                if head.type == "environment" and head.schema != SCHEMA:
                    raise UsageError(
                        f"{where}: written by another version of matbench: its records have schema "
                        f"{head.schema}, those of this version schema {SCHEMA}; read it with that "
                        "version"
                    )
                if head.type != "environment" and not self.environments:
                    raise RecordError("no environment line before it")
                self.add(decode(given, head.type))
            except RecordError as error:
                # The start of a file's first line shows whether matbench wrote it.
                start = line[: len(_FIRST_BYTES)]
                is_ours = self.environments or _FIRST_BYTES.startswith(start)
                if isinstance(error, TornError) and not line.endswith(b"\n") and is_ours:
                    self.notes.append(f"{where}: incomplete line ignored")
                    return
                if not self.environments:
                    reason = f"not a record: {error}; fix or remove the line"
                    raise UsageError(f"{where}: {reason}") from None
                self._last = []
                self.notes.append(f"{where}: not a record, ignored: {error}")
                if len(self.notes) > _MOST_NOTES:
                    self.notes[_MOST_NOTES:] = [f"{self._path}: more lines are ignored"]
        self.whole_bytes += len(line)
