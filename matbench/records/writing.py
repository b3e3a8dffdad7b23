"""Writes a record file, flushing each outcome to disk at once.

However a run ends, its file can be read and resumed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from matbench.errors import MatbenchError, UsageError
from matbench.records import encoding
from matbench.records.appending import LockedFile
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome
from matbench.records.reading import Contents, Finding, RecordError, decode

Mode = Literal["new", "force", "resume"]


class RecordWriter:
    """Appends outcomes to one file, flushing each to disk.

    `new` rejects a file that is not empty, `resume` adds to it (or creates it), and `force`
    replaces it once the first outcome is written. Entering raises a `UsageError` if the file cannot
    be written or is locked by another run. `environments`, `outcomes` and `findings` are the
    earlier contents of a resumed file, `notes` say what was repaired in it.

    With `best_effort` no error is raised: `error` keeps the first, and recording ends. The folder
    of a file that is matbench's `own` is created.
    """

    def __init__(
        self,
        path: Path,
        environment: Environment,
        mode: Mode = "new",
        *,
        best_effort: bool = False,
        own: bool = False,
    ) -> None:
        self.path = path
        self.environment = environment
        self.mode = mode
        self.best_effort = best_effort
        self.own = own or best_effort
        self.environments: list[Environment] = []
        self.outcomes: list[Outcome] = []
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.written = 0
        self.error: MatbenchError | None = None
        self._file: LockedFile | None = None

    def __enter__(self) -> RecordWriter:
        try:
            self._open()
        except BaseException as error:
            self.__exit__()
            if not self.best_effort or not isinstance(error, MatbenchError):
                raise
            self.error = error
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        self._file = LockedFile(self.path, own=self.own)
        if not self._file.size or self.mode == "force":
            return
        if self.mode == "new":
            raise UsageError(
                f"{self.path}: already exists; use --force to replace it, or --resume to continue "
                "it"
            )
        contents = Contents(self.path)
        if contents.is_array:
            raise UsageError(f"{self.path}: cannot append to a JSON array; name another file")
        self.environments, self.outcomes = contents.environments, contents.outcomes
        self.findings = [finding for finding, _ in contents.findings]
        self.notes = contents.notes
        if contents.whole_bytes < self._file.size:  # a torn last line
            try:
                self._file.truncate(contents.whole_bytes)
            except OSError as error:
                raise UsageError(f"{self.path}: cannot be repaired: {error.strerror}") from None

    def write(self, outcome: Outcome | Finding) -> None:
        """Append an outcome or finding; `MatbenchError` if it cannot be written or is not valid."""
        if self.error is not None:
            return
        assert self._file is not None, "not entered"
        try:
            data = f"{encoding.line(outcome)}\n".encode()
            decode(data)  # one unreadable line would make the whole file unreadable
            if not self.written:
                data = f"{encoding.line(self.environment)}\n".encode() + data
            if self.mode == "force" and not self.written:
                self._file.replace(data)
            else:
                self._file.append(data)
            self.written += 1
        except (OSError, RecordError) as error:
            if isinstance(error, RecordError):
                reason = f"an outcome contradicts itself: {error}"
            else:
                hint = "fix that, or name another file"
                if self.written:
                    kept = f"it holds {self.written} outcomes of this run"
                    hint = f"{kept}; fix that and continue with --resume {self.path}"
                reason = f"cannot be written: {error.strerror}; {hint}"
            refused = MatbenchError(f"{self.path}: {reason}")
            if not self.best_effort:
                raise refused from None
            self.error = refused
