"""Writes a record file, flushing each outcome to disk at once, whole or not at all.

However a run ends, its file can be read and resumed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path
from typing import Literal

import filelock

from matbench.errors import MatbenchError, UsageError
from matbench.records import encoding
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


class LockedFile:
    """A file open for appending, and locked against other runs until it is closed.

    `UsageError` if it cannot be written or is locked by another run. A link is followed; a pipe or
    a device is refused. A file that was created here and stays empty is removed on closing. For a
    file of matbench's `own`, the folder is created.
    """

    def __init__(self, path: Path, *, own: bool = False) -> None:
        hint = "name another file"
        try:
            self._undo = self._opened(path, hint, own=own)
        except filelock.Timeout as error:
            # A lock that cannot be created times out like one that is held.
            reason = f"cannot be written: no file can be created in {path.resolve().parent}; {hint}"
            if Path(error.lock_file).exists():
                reason = f"another run is writing to it; wait until it ends or {hint}"
            raise UsageError(f"{path}: {reason}") from None
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links or a NUL, say
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"{path}: cannot be written: {why}; {hint}") from None

    def _opened(self, path: Path, hint: str, *, own: bool) -> ExitStack:
        """Opens and locks the file; the stack closes it."""
        with ExitStack() as undo:
            if own:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.is_dir():
                raise UsageError(f"{path}: is a folder; name a file in it")
            if path.exists() and not path.is_file():
                raise UsageError(f"{path}: is no ordinary file; {hint}")
            self._target = path.resolve()
            folder = self._target.parent
            if not folder.is_dir():
                raise UsageError(f"{path}: no folder {folder}; create it, or {hint}")
            lock = filelock.FileLock(folder / f".{self._target.name}.lock")
            lock.acquire(timeout=0)
            undo.callback(_unlock, lock)
            is_new = not self._target.exists()
            if is_new:
                undo.callback(self._remove_if_empty)
            self._file = FileIO(self._target, "a+")
            undo.callback(lambda: self._file.close())
            if is_new:
                _sync_folder(folder)
            return undo.pop_all()

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return os.fstat(self._file.fileno()).st_size

    def append(self, lines: bytes) -> None:
        """Append `lines` on a new line, completely or, with an `OSError`, not at all."""
        size = self.size
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
                    self.truncate(size)
            raise

    def truncate(self, size: int) -> None:
        """Cut off everything after the first `size` bytes."""
        self._file.truncate(size)

    def replace(self, lines: bytes) -> None:
        """Replace the contents with `lines`; an `OSError` leaves them unchanged.

        `lines` are written to a temporary file beside this one, which then replaces it.
        """
        handle, name = tempfile.mkstemp(dir=self._target.parent, prefix=f".{self._target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(lines)
                file.flush()
                os.fsync(handle)
            shutil.copymode(self._target, name)
            Path(name).replace(self._target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        self._file.close()
        self._file = FileIO(self._target, "a+")
        _sync_folder(self._target.parent)

    def close(self) -> None:
        """Unlock it; may be called twice."""
        self._undo.close()

    def _remove_if_empty(self) -> None:
        # Look at the file, not at a count of writes: Ctrl-C may have come in between.
        with suppress(OSError):
            if not self._target.stat().st_size:
                self._target.unlink()


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
        if sys.platform != "win32":
            Path(lock.lock_file).unlink()
    lock.release()
