"""A file that one process at a time appends to: each write reaches the disk whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path

import filelock

from matbench.errors import UsageError


class LockedFile:
    """A file open for appending, and locked against other runs until it is closed.

    `UsageError`, with `hint`, if it cannot be written or is still locked by another run after
    `wait_s`. A link is followed; a pipe or a device is refused. A file that was created here and
    stays empty is removed on closing. For a file of matbench's `own`, the folder is created.
    """

    def __init__(
        self, path: Path, *, hint: str = "name another file", wait_s: float = 0, own: bool = False
    ) -> None:
        with ExitStack() as undo, _refusals(path, hint):
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
            lock.acquire(timeout=wait_s)
            undo.callback(_unlock, lock)
            is_new = not self._target.exists()
            if is_new:
                undo.callback(self._remove_if_empty)
            self._file = FileIO(self._target, "a+")
            undo.callback(lambda: self._file.close())
            if is_new:
                _sync_folder(folder)
            self._undo = undo.pop_all()

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


@contextmanager
def _refusals(path: Path, hint: str) -> Iterator[None]:
    """Turns what keeps a file from being opened into a `UsageError`."""
    try:
        yield
    except filelock.Timeout as error:
        # A lock that cannot be created times out like one that is held.
        reason = f"cannot be written: no file can be created in {path.resolve().parent}; {hint}"
        if Path(error.lock_file).exists():
            reason = f"another run is writing to it; wait until it ends or {hint}"
        raise UsageError(f"{path}: {reason}") from None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links or a NUL, say
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be written: {why}; {hint}") from None


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
