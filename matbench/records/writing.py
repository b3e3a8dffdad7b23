"""Writes a record file, flushing each outcome to disk at once, whole or not at all.

However a run ends, its file can be read and resumed.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, dataclass, field
from io import FileIO
from pathlib import Path
from typing import Literal

import filelock

from matbench import files
from matbench.errors import MatbenchError, UsageError
from matbench.records.encoding import RecordError, decode, line
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome
from matbench.records.reading import Contents, Finding

Mode = Literal["new", "force", "resume"]


@dataclass(eq=False)
class RecordWriter:
    """Appends outcomes to one file, flushing each to disk; it is locked against other runs.

    `new` rejects a file that is not empty, `resume` adds to it (or creates it), and `force`
    replaces it once the first outcome is written. Entering raises a `UsageError` if the file cannot
    be written or is locked by another run. A link is followed; a pipe or a device is refused. A
    file that was created here and stays empty is removed. `environments`, `outcomes` and `findings`
    are the earlier contents of a resumed file, `notes` say what was repaired in it, or
    that there is nothing in it.

    With `best_effort` no error is raised: `error` keeps the first, and recording ends. The folder
    of a file that is matbench's `own` is created.
    """

    path: Path
    environment: Environment
    mode: Mode = "new"
    _: KW_ONLY
    best_effort: bool = False
    own: bool = False
    environments: list[Environment] = field(default_factory=list, init=False)
    outcomes: list[Outcome] = field(default_factory=list, init=False)
    findings: list[Finding] = field(default_factory=list, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    written: int = field(default=0, init=False)
    error: MatbenchError | None = field(default=None, init=False)
    _undo: ExitStack = field(default_factory=ExitStack, init=False)

    def __enter__(self) -> RecordWriter:
        try:
            with ExitStack() as undo:
                self._open(undo)
                self._undo = undo.pop_all()
        except MatbenchError as error:
            if not self.best_effort:
                raise
            self.error = error
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _open(self, undo: ExitStack) -> None:
        hint = "name another file"
        try:
            self._lock(undo, hint)
        except filelock.Timeout as error:
            # A lock that cannot be created times out like one that is held.
            folder = self.path.resolve().parent
            reason = f"cannot be written: no file can be created in {folder}; {hint}"
            if Path(error.lock_file).exists():
                reason = f"another run is writing to it; wait until it ends or {hint}"
            raise UsageError(f"{self.path}: {reason}") from None
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links or a NUL, say
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"{self.path}: cannot be written: {why}; {hint}") from None
        size = os.fstat(self._file.fileno()).st_size
        if not size and self.mode == "resume":
            self.notes = [f"{self.path}: has no records to continue; all cases are measured"]
        if not size or self.mode == "force":
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
        if contents.whole_bytes < size:  # a torn last line
            try:
                self._file.truncate(contents.whole_bytes)
            except OSError as error:
                raise UsageError(f"{self.path}: cannot be repaired: {error.strerror}") from None

    def _lock(self, undo: ExitStack, hint: str) -> None:
        """Open and lock the file; the stack closes it."""
        if self.own or self.best_effort:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.path.is_dir():
            raise UsageError(f"{self.path}: is a folder; name a file in it")
        if self.path.exists() and not self.path.is_file():
            raise UsageError(f"{self.path}: is no ordinary file; {hint}")
        self._target = self.path.resolve()
        folder = self._target.parent
        if not folder.is_dir():
            raise UsageError(f"{self.path}: no folder {folder}; create it, or {hint}")
        lock = filelock.FileLock(folder / f".{self._target.name}.lock")
        lock.acquire(timeout=0)
        undo.callback(_unlock, lock)
        is_new = not self._target.exists()
        if is_new:
            undo.callback(_remove_if_empty, self._target)
        self._file = FileIO(self._target, "a+")
        undo.callback(lambda: self._file.close())
        if is_new:
            _sync_folder(folder)

    def write(self, outcome: Outcome | Finding) -> None:
        """Append an outcome or finding; `MatbenchError` if it cannot be written or is not valid."""
        if self.error is not None:
            return
        try:
            data = f"{line(outcome)}\n".encode()
            # One unreadable line would make the whole file unreadable.
            decode(data, decode(data).type)
            if not self.written:
                data = f"{line(self.environment)}\n".encode() + data
            if self.mode == "force" and not self.written:
                files.replace(self._target, data)
                self._file.close()
                self._file = FileIO(self._target, "a+")
                _sync_folder(self._target.parent)
            else:
                self._append(data)
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

    def _append(self, lines: bytes) -> None:
        """Append `lines` on a new line, completely or, with an `OSError`, not at all."""
        size = self._file.seek(0, os.SEEK_END)
        if size:
            self._file.seek(size - 1)
            if self._file.read(1) != b"\n":
                lines = b"\n" + lines
        left = memoryview(lines)
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except BaseException as error:
            with suppress(OSError):
                if left or isinstance(error, OSError):  # else Ctrl-C while it was flushed
                    self._file.truncate(size)
            raise


def _remove_if_empty(path: Path) -> None:
    # Look at the file, not at a count of writes: Ctrl-C may have come in between.
    with suppress(OSError):
        if not path.stat().st_size:
            path.unlink()


def _sync_folder(folder: Path) -> None:
    """Flush a file's new name to disk, on systems that can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _unlock(lock: filelock.BaseFileLock) -> None:
    # Delete the lock file while it is locked: a run that waits for it then sees that it is gone.
    with suppress(OSError):
        Path(lock.lock_file).unlink()
    lock.release()
