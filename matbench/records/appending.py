"""A file that one process at a time adds to: each write is on disk, as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from io import FileIO
from pathlib import Path

import filelock

from matbench.errors import UsageError


class LockedFile:
    """A file open for appending, and locked against other runs until it is closed.

    `UsageError` when it cannot be written, with `hint`, or when another run still holds it after
    `wait_s`. A link is followed. What is no regular file, as a pipe or a terminal, has no lock
    and counts as empty. A file that was made here and stays empty is removed on closing.
    """

    def __init__(
        self,
        path: Path,
        *,
        hint: str = "name another file",
        wait_s: float = 0,
        make_folder: bool = False,
    ) -> None:
        self.path = path
        self._lock: filelock.BaseFileLock | None = None
        self._file: FileIO | None = None
        self._is_new = False
        try:
            if make_folder:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.is_dir():
                raise UsageError(f"{path}: is a folder; name a file in it")
            self.is_regular = path.is_file() or not path.exists()
            self._target = path.resolve() if self.is_regular else path
            if not self._target.parent.is_dir():
                raise UsageError(f"{path}: no folder {self._target.parent}; make it, or {hint}")
            if self.is_regular:
                self._acquire(hint, wait_s)
                self._is_new = not self._target.exists()
            self._file = FileIO(self._target, "a+" if self.is_regular else "a")
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
            self.close()
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{path}: cannot be written: {reason}; {hint}") from None
        except BaseException:
            self.close()
            raise

    def _acquire(self, hint: str, wait_s: float) -> None:
        name = self._target.with_name(f".{self._target.name}.lock")
        lock = filelock.FileLock(name)
        try:
            lock.acquire(timeout=wait_s)
        except filelock.Timeout:
            # A lock that cannot be made times out like one that is held.
            if name.exists():
                reason = "another run is writing to it; wait for its end or " + hint
            else:
                reason = f"cannot be written: no file can be made in {name.parent}; {hint}"
            raise UsageError(f"{self.path}: {reason}") from None
        self._lock = lock

    @property
    def _open(self) -> FileIO:
        assert self._file is not None, "closed"
        return self._file

    @property
    def size(self) -> int:
        """Its bytes; 0 for what is no regular file."""
        return os.fstat(self._open.fileno()).st_size if self.is_regular else 0

    def append(self, lines: bytes) -> None:
        """All of `lines` or, with an `OSError`, nothing; they begin on a line of their own."""
        size = self.size
        if size:
            self._open.seek(size - 1)
            if self._open.read(1) != b"\n":
                lines = b"\n" + lines
        try:
            left = memoryview(lines)
            while left:
                left = left[self._open.write(left) :]
            if self.is_regular:
                os.fsync(self._open.fileno())
        except OSError:
            with suppress(OSError):
                self.truncate(size)
            raise

    def truncate(self, size: int) -> None:
        """Cut what follows the first `size` bytes."""
        self._open.truncate(size)

    def replace(self, lines: bytes) -> None:
        """Hold `lines` alone; with an `OSError` what was there before.

        It is written to a file beside this one, which then takes its place.
        """
        if not self.is_regular:
            self.append(lines)
            return
        handle, name = tempfile.mkstemp(dir=self._target.parent, prefix=f".{self._target.name}.")
        os.close(handle)
        old, self._file = self._open, FileIO(name, "a+")
        try:
            shutil.copymode(self._target, name)
            self.append(lines)
            Path(name).replace(self._target)
        except BaseException:
            self._file.close()
            self._file = old
            Path(name).unlink(missing_ok=True)
            raise
        old.close()

    def close(self) -> None:
        """Unlock it; closing twice does no harm."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._is_new:
            # By what it holds, not by what was counted: Ctrl-C may have come in between.
            with suppress(OSError):
                if not self._target.stat().st_size:
                    self._target.unlink()
        if self._lock is not None:
            # While it is still held: another run that waits for it sees that it is gone.
            with suppress(OSError):
                if sys.platform != "win32":
                    Path(self._lock.lock_file).unlink()
            self._lock.release()
            self._lock = None
