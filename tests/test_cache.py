"""The cache: entries come back intact or not at all; bounded, and private to the user."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.disk import full_after
from support.optional import present
from support.paths import programs

from matbench import files as folders
from matbench.cache import DEFAULT_LIMIT_BYTES, Cache
from matbench.errors import UsageError

#: The cache while tests are collected, when matbench's own kernels are loaded.
COLLECTED_WITH = os.environ["MATBENCH_CACHE_DIR"]


def test_collecting_tests_leaves_the_users_cache_alone() -> None:
    assert os.devnull == COLLECTED_WITH


def entry(cache: Cache) -> Path:
    """The one file that the cache holds."""
    [path] = cache.folder.iterdir()
    return path


def kept(cache: Cache, key: str) -> bytes | None:
    found = cache.get(key)
    return None if found is None else bytes(found)


def test_what_was_kept_comes_back(cache: Cache) -> None:
    assert kept(cache, "key") is None
    cache.put("key", b"value")
    cache.put("other", memoryview(b""))
    assert kept(cache, "key") == b"value"
    assert kept(cache, "other") == b""
    assert kept(Cache(cache.folder), "key") == b"value"
    cache.put("key", b"new")
    assert kept(cache, "key") == b"new"


def test_a_key_names_no_file_outside(cache: Cache) -> None:
    for key in ("../../escape", "/etc/passwd", "a\0b", "", "x" * 10_000, "naïve ☃"):
        cache.put(key, key.encode())
        assert kept(cache, key) == key.encode()
    assert [path.name for path in cache.folder.parent.iterdir()] == ["cache"]


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_damaged_entry_is_made_anew(cache: Cache, value: bytes, data: st.DataObject) -> None:
    cache.clear()
    cache.put("key", value)
    path = entry(cache)
    whole = path.read_bytes()
    kind = data.draw(st.sampled_from(["flipped", "truncated", "longer", "empty", "other"]))
    where = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(
        {
            "flipped": whole[:where] + bytes([whole[where] ^ 1]) + whole[where + 1 :],
            "truncated": whole[:where],
            "longer": whole + b"\0",
            "empty": b"",
            "other": b"\x80\x04cos\nsystem\n" * 10,  # a pickle stays bytes
        }[kind]
    )
    assert cache.get("key") is None
    assert not path.exists()
    assert bytes(cache.get_or_make("key", lambda: value)) == value
    assert kept(cache, "key") == value


def test_damage_anywhere_in_data_is_seen(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matbench.cache._PART_BYTES", 16)
    value = bytes(range(100))
    cache.put("key", value)
    assert kept(cache, "key") == value
    path = entry(cache)
    whole = path.read_bytes()
    flipped = [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole))]
    exchanged = whole[:32] + whole[48:64] + whole[32:48] + whole[64:]
    for damaged in (*flipped, exchanged, whole[:-4], whole + b"\0"):
        path.write_bytes(damaged)
        assert cache.get("key") is None


def test_an_entry_of_another_key_is_dropped(cache: Cache) -> None:
    cache.put("key", b"value")
    path = entry(cache)
    other = path.read_bytes()
    cache.clear()
    cache.put("other", b"another value")
    entry(cache).write_bytes(other)
    assert cache.get("other") is None
    assert list(cache.folder.iterdir()) == []


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


#: What can be in the place of a file. Reading some of it would never end.
NO_ENTRIES: dict[str, Callable[[Path], None]] = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to a folder": lambda path: path.symlink_to("."),
    "huge file": sparse,
}


@pytest.mark.parametrize("make", NO_ENTRIES.values(), ids=NO_ENTRIES)
def test_an_entry_that_is_no_file_is_replaced(cache: Cache, make: Callable[[Path], None]) -> None:
    cache.put("key", b"value")
    path = entry(cache)
    path.unlink()
    make(path)
    assert bytes(cache.get_or_make("key", lambda: b"value")) == b"value"
    assert kept(cache, "key") == b"value"
    assert not path.is_symlink()


@pytest.mark.parametrize("make", NO_ENTRIES.values(), ids=NO_ENTRIES)
def test_what_is_no_file_is_in_nobodys_way(cache: Cache, make: Callable[[Path], None]) -> None:
    cache.put("key", b"value")
    for name in ("a" * 64 + ".bin", "a" * 32 + ".cubin"):
        make(cache.folder / name)
    cache.drop(".cubin", b"damaged")
    assert cache.size_bytes() >= 37
    assert cache.clear() >= 37
    assert all(path.is_dir() and not path.is_symlink() for path in cache.folder.iterdir())


def test_those_used_longest_ago_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit_bytes=1000)
    now = time.time()
    for age, key in enumerate("dcba"):
        cache.put(key, bytes(200))
        path = max(cache.folder.iterdir(), key=lambda p: p.stat().st_mtime)
        os.utime(path, (now - 1000 - age, now - 1000 - age))
    assert cache.get("a") is not None  # the oldest, but used again just now
    cache.put("e", bytes(200))
    assert {key for key in "abcde" if cache.get(key) is not None} == set("acde")
    assert cache.size_bytes() <= 1000


def test_what_pycuda_keeps_there_counts_too(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit_bytes=1000)
    cache.put("a", bytes(100))
    now = time.time()
    used, unused = "1" * 32 + ".cubin", "2" * 32 + ".cubin"
    for age, name in enumerate((used, unused)):
        path = cache.folder / name
        path.write_bytes(bytes([age]) * 400)
        os.utime(path, (now - 10 - 1000 * age, now - 2000))  # read, and never written again
    assert cache.size_bytes() == 932
    cache.put("b", bytes(200))
    assert {path.name for path in cache.folder.glob("*.cubin")} == {used}
    cache.drop(".cubin", bytes(400) + b"more")
    assert cache.size_bytes() == 764
    cache.drop(".cubin", bytes(400))
    assert cache.size_bytes() == 364
    assert cache.clear() == 364


def test_it_never_holds_more_than_its_limit(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit_bytes=5000)
    for size in (10, 1000, 4000, 4968, 4969, 1, 2500, 2500, 100_000):
        cache.put(f"key {size}", bytes(size))
        assert cache.size_bytes() <= 5000
        on_disk = sum(path.stat().st_size for path in cache.folder.iterdir())
        assert on_disk == cache.size_bytes()
    assert kept(cache, "key 100000") is None
    assert DEFAULT_LIMIT_BYTES == 2 * 1024**3
    assert Cache(tmp_path / "cache").limit_bytes == DEFAULT_LIMIT_BYTES


def test_small_entries_fill_it_no_more(tmp_path: Path) -> None:
    held = []
    for number in range(600):  # each by an object of its own, as other processes do
        cache = Cache(tmp_path / "cache", limit_bytes=50_000)
        cache.put(str(number), bytes(100))
        held += [cache.size_bytes()] if number % 20 == 19 else []
    assert 45_000 < max(held) <= 50_000
    assert kept(cache, "599") == bytes(100)


def test_clearing_frees_everything(cache: Cache) -> None:
    cache.put("a", bytes(100))
    cache.put("b", bytes(100))
    (cache.folder / "tmpleft_over.part").write_bytes(bytes(50))
    held = cache.size_bytes()
    assert held == 2 * 132 + 50
    theirs = cache.folder / "thesis.tex"  # the variable may name any folder
    theirs.touch()
    assert cache.clear() == held
    assert list(cache.folder.iterdir()) == [theirs]
    assert cache.size_bytes() == 0
    assert cache.clear() == 0


def test_an_unused_cache_has_no_folder(cache: Cache) -> None:
    assert (cache.size_bytes(), cache.clear()) == (0, 0)
    assert not cache.folder.exists()


# -- ownership -----------------------------------------------------------------------------------


def test_a_new_folder_is_the_users_alone(cache: Cache) -> None:
    cache.put("key", b"value")
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    assert entry(cache).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_fill_is_refused(cache: Cache, mode: int) -> None:
    cache.put("key", b"value")
    cache.folder.chmod(mode)
    uses: list[Callable[[], object]]
    uses = [lambda: cache.get("key"), lambda: cache.put("key", b"")]
    for use in uses:
        with pytest.raises(UsageError) as refused:
            use()
        assert str(refused.value) == (
            f"cache folder {cache.folder}: other users can write to it; "
            "run `chmod 700` on it or set MATBENCH_CACHE_DIR to another folder"
        )


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(cache: Cache) -> None:
    cache.put("key", b"value")
    os.chown(cache.folder, 12345, 12345)
    with pytest.raises(UsageError, match="other users can write to it"):
        cache.get("key")


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(tmp_path / "mine"))
    assert Cache().folder == tmp_path / "mine"
    monkeypatch.delenv("MATBENCH_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert Cache().folder == tmp_path / "matbench"


# -- when things go wrong ------------------------------------------------------------------------


def test_a_full_disk_keeps_nothing_and_breaks_nothing(cache: Cache) -> None:
    cache.put("before", b"value")
    with full_after(1000):
        assert bytes(cache.get_or_make("key", lambda: bytes(5000))) == bytes(5000)
    assert kept(cache, "key") is None
    assert kept(cache, "before") == b"value"
    assert len(list(cache.folder.iterdir())) == 1


WRITER = programs(__file__)["writes to the cache"]


def test_several_processes_share_it(tmp_path: Path) -> None:
    environment = {**os.environ, "MATBENCH_CACHE_DIR": str(tmp_path / "shared")}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER], env=environment, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for writer in writers:
        _, said = writer.communicate(timeout=60)
        assert writer.returncode == 0, said.decode()
    cache = Cache(tmp_path / "shared")
    entries = set(cache.folder.iterdir())
    for turn in range(20):
        cache.get(str(turn))
    assert set(cache.folder.iterdir()) == entries  # a damaged one would have been dropped


# -- temporary folders -----------------------------------------------------------------------------


def test_a_folder_goes_with_its_block(temporary: Path) -> None:
    with pytest.raises(ZeroDivisionError), folders.temporary_folder() as folder:
        (folder / "file").write_text("text")
        assert list(temporary.iterdir()) == [folder]
        raise ZeroDivisionError
    assert not list(temporary.iterdir())


def test_a_folder_of_a_killed_process_goes_with_the_next_run(temporary: Path) -> None:
    script = "import os, time\nfrom matbench.files import temporary_folder\n"
    script += (
        "with temporary_folder() as folder:\n    print(folder, flush=True)\n    time.sleep(60)"
    )
    killed, alive = (
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    left, used = (Path(present(process.stdout).readline().strip()) for process in (killed, alive))
    (left / "file").write_text("text")
    killed.kill()
    killed.communicate()
    target = temporary / "matbench-my-own-cache"
    target.mkdir()
    (target / "file").write_text("text")
    (temporary / "matbench-aaaaaaaa.tmp").symlink_to(target)
    (young := temporary / "matbench-bbbbbbbb.tmp").mkdir()
    for folder in (left, used, target):
        os.utime(folder, (0, 0))
    with folders.temporary_folder() as own:
        assert {*temporary.iterdir()} == {
            used,
            target,
            young,
            own,
            temporary / "matbench-aaaaaaaa.tmp",
        }
    assert (target / "file").exists()
    alive.kill()
    alive.communicate()


def test_no_temporary_folder_is_told(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "missing"))
    with pytest.raises(UsageError) as refused, folders.temporary_folder():
        pass
    assert str(refused.value) == (
        "no temporary folder can be created: No such file or directory; "
        "set TMPDIR to another folder"
    )
