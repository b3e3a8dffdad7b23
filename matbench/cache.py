"""The on-disk cache of references, compiled code, and what was read from kernel files.

Every entry has a checksum, of its key too, and is dropped if it does not match; nothing is
unpickled (the `diskcache` library unpickles, and is no longer maintained). A process that has run a
user's function stores none. PyCUDA keeps compiled code in the same folder. Only the user can write
to the folder; its size is bounded, and the least recently used entries are removed first.
"""

from __future__ import annotations

import functools
import hashlib
import mmap
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import platformdirs

from matbench import files
from matbench.errors import UsageError

DEFAULT_LIMIT_BYTES = 2 * 1024**3
_DIGEST_BYTES = hashlib.sha256().digest_size
#: What matbench and PyCUDA write; other files of the folder are somebody else's.
_ENTRY = re.compile(r"[0-9a-f]{32,64}\.(bin|cubin)|tmp\w+\.part|pycuda-\d+\.lock")
#: How often the folder is listed while its limit is written once.
_LISTINGS = 256
#: Larger data is divided for its digest.
_PART_BYTES = 8 * 1024**2
#: Whether this process has run a user's function, which may have changed what computes entries.
_is_sealed = False


def seal() -> None:
    """From now on, this process stores nothing."""
    global _is_sealed
    _is_sealed = True


@functools.cache
def revision() -> str:
    """The hash of the code that reads kernel files: `kernelfile`, and what it imports."""
    here = Path(__file__).parent
    own = sorted([*here.glob("kernelfile/*.py"), *here.glob("*/device_code/*"), *here.glob("*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in own)).hexdigest()


def kept(key: str, make: Callable[[], bytes]) -> bytes | memoryview:
    """What this revision reads from a source, named by `key`; kept if the cache can be used."""
    try:
        return Cache().get_or_make(f"{revision()} {key}", make)
    except UsageError:  # of the cache's folder, or else of the source
        return make()


def digest(data: bytes | memoryview, key: str = "") -> bytes:
    """SHA-256 of data and, if it is an entry of the cache, of its key; for large data that of its
    parts' digests, which several cores compute."""
    parts = [data[i : i + _PART_BYTES] for i in range(0, len(data), _PART_BYTES)]
    if len(parts) <= 1:
        own = hashlib.sha256(data).digest()
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor() as at_once:
            digests = at_once.map(lambda part: hashlib.sha256(part).digest(), parts)
            own = hashlib.sha256(b"".join(digests)).digest()
    return hashlib.sha256(own + key.encode()).digest() if key else own


class Cache:
    """A bounded, checksummed store of byte strings under string keys.

    It is in `MATBENCH_CACHE_DIR`, or else in the user's cache folder on this platform.
    """

    def __init__(self, folder: Path | None = None, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        usual = os.environ.get("MATBENCH_CACHE_DIR") or platformdirs.user_cache_dir("matbench")
        self.folder = folder or Path(usual)
        self.limit_bytes = limit_bytes

    def prepare(self, key: str = "") -> Path:
        """Create the folder, or refuse one that other users can write to; returns the file of an
        entry there."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            state = self.folder.stat()
        except OSError as error:
            raise self.unusable(error) from None
        if state.st_uid != os.getuid() or state.st_mode & 0o022:
            raise UsageError(
                f"cache folder {self.folder}: other users can write to it; "
                "run `chmod 700` on it or set MATBENCH_CACHE_DIR to another folder"
            )
        return self.folder / (hashlib.sha256(key.encode()).hexdigest() + ".bin")

    def unusable(self, error: OSError) -> UsageError:
        found = isinstance(error, FileExistsError | NotADirectoryError)
        reason = "not a folder" if found else f"cannot be written: {error.strerror}"
        return UsageError(
            f"cache folder {self.folder}: {reason}; set MATBENCH_CACHE_DIR to another folder"
        )

    def get(self, key: str) -> memoryview | None:
        """The bytes stored under `key`; None if there are none or they are damaged."""
        path, data = self.prepare(key), memoryview(b"")
        try:
            with files.opened(path) as file:
                os.utime(file.fileno())
                size = os.fstat(file.fileno()).st_size
                if 0 < size <= self.limit_bytes:  # in memory only where it is read
                    data = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
        except OSError:
            return None
        if digest(data[_DIGEST_BYTES:], key) != data[:_DIGEST_BYTES]:
            with suppress(OSError):
                path.unlink()
            return None
        return data[_DIGEST_BYTES:]

    def put(self, key: str, value: bytes | memoryview) -> None:
        """Store `value`, unless it is larger than the whole cache, the disk is full, or a function
        of a user has run in this process."""
        if _is_sealed:
            return
        target, part = self.prepare(key), None
        size = len(value) + _DIGEST_BYTES
        if size > self.limit_bytes:
            return
        # Listing takes long, and many processes write: an entry in so many bytes, chosen by its
        # name, makes room.
        if int(target.name[:8], 16) * self.limit_bytes < size * 2**32 * _LISTINGS:
            self._make_room(size)
        try:
            with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".part", delete=False) as file:
                part = Path(file.name)
                file.write(digest(value, key))
                file.write(value)
            with suppress(OSError):
                target.rmdir()  # an empty folder is the only thing that is not replaced
            part.replace(target)
        except OSError:
            if part is not None:
                part.unlink(missing_ok=True)

    def drop(self, suffix: str, content: bytes) -> None:
        """Remove files ending in `suffix` with this `content`, which turned out to be damaged."""
        for path in self.folder.glob(f"*{suffix}"):
            with suppress(OSError):
                with files.opened(path) as file:
                    is_damaged = file.read(len(content) + 1) == content
                if is_damaged:
                    path.unlink()

    def get_or_make(
        self, key: str, make: Callable[[], bytes | memoryview], *, keep: bool = True
    ) -> memoryview:
        """The entry; if it is missing, or not to `keep`, it is made, and stored if it is."""
        found = self.get(key) if keep else None
        if found is None:
            found = memoryview(make())
            if keep:
                self.put(key, found)
        return found

    def _entries(self) -> list[tuple[float, int, str]]:
        found = []
        with suppress(FileNotFoundError), os.scandir(self.folder) as listed:
            for file in listed:
                if not _ENTRY.fullmatch(file.name) or file.is_dir(follow_symlinks=False):
                    continue
                with suppress(OSError):
                    state = file.stat(follow_symlinks=False)
                    # PyCUDA does not update the time stamps of files that it reads.
                    used = max(state.st_mtime, state.st_atime)
                    found.append((used, state.st_size, file.path))
        return sorted(found)

    def _make_room(self, size: int) -> None:
        """Remove the least recently used entries until a 16th is free for what others write."""
        entries = self._entries()
        total = sum(entry[1] for entry in entries) + size
        for _, entry_size, path in entries:
            if total <= self.limit_bytes * 15 // 16:
                break
            with suppress(OSError):
                Path(path).unlink()
            total -= entry_size

    def size_bytes(self) -> int:
        return sum(size for _, size, _ in self._entries())

    def clear(self) -> int:
        """Remove every entry; returns the number of bytes freed."""
        freed = 0
        try:
            for _, size, path in self._entries():
                Path(path).unlink(missing_ok=True)
                freed += size
        except OSError as error:
            raise self.unusable(error) from None
        return freed
