"""The store of tuned parameters: the latest of each counts; no line is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import filelock
import msgspec
import pytest
from support.disk import full_after
from support.paths import ROOT
from support.record_files import only
from support.records import device, winner

from matbench.errors import UsageError
from matbench.features.tune import stored
from matbench.features.tune.stored import Store
from matbench.model import Problem
from matbench.records import encoding


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "new" / "tuned.jsonl")


def test_the_latest_of_each_counts(store: Store) -> None:
    assert store.winners() == []
    first, other, again = winner(8), winner(9), winner(8, median_ns=2.0)
    assert all(map(store.keep, (first, other, again)))
    assert store.winners() == [other, again]
    assert len(store.path.read_bytes().splitlines()) == 3
    assert only(store.path.parent) == ["tuned.jsonl"]


def test_an_unfinished_search_replaces_only_an_unfinished_one(store: Store) -> None:
    doubtful, better = winner(complete=False), winner(complete=False, median_ns=2.0)
    assert store.keep(doubtful)
    assert store.keep(better)
    assert store.winners() == [better]
    finished = winner(median_ns=3.0)
    assert store.keep(finished)
    assert not store.keep(doubtful)
    assert store.winners() == [finished]
    # Also if two searches end at the same time.
    with store.path.open("a") as file:
        file.write(encoding.line(doubtful) + "\n")
    assert store.winners() == [finished]


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": "other"},
        {"sha256": "1" * 64},
        {"backend": "cuda"},
        {"device": "Another Processor"},
        {"problem": Problem(8, 8, 9)},
        {"problem": Problem(8, 8, 8, workload="dot")},
    ],
)
def test_another_source_device_or_size_is_another(store: Store, change: dict[str, Any]) -> None:
    store.keep(winner())
    store.keep(winner(**change))
    assert len(store.winners()) == 2


def test_inputs_and_seeds_are_not_told_apart(store: Store) -> None:
    store.keep(winner())
    store.keep(winner(problem=Problem(8, 8, 8, "signed", 7), median_ns=2.0))
    assert store.winners() == [winner(median_ns=2.0)]


def test_what_other_versions_wrote_is_read_or_stays(store: Store) -> None:
    known = json.loads(msgspec.json.encode(winner(8)))
    newer = known | {"problem": {"M": 9, "N": 9, "K": 9}, "more": [1, 2]}
    lines = [
        json.dumps(known | {"schema": 2}).encode(),
        json.dumps({name: known[name] for name in known if name != "schema"}).encode(),
        json.dumps({name: known[name] for name in known if name != "params"}).encode(),
        json.dumps(known | {"problem": {"M": 0, "N": 8, "K": 8}}).encode(),
        json.dumps(known | {"type": "outcome"}).encode(), b'{"kernel": 1}', b"\xff{not a line",
        b"[" * 5000, json.dumps(newer).encode(),
    ]  # fmt: skip
    store.path.parent.mkdir()
    store.path.write_bytes(b"\n".join(lines))
    assert store.winners() == [winner(9)]
    added = winner(8, median_ns=2.0)
    assert store.keep(added)
    assert store.winners() == [winner(9), added]
    written = store.path.read_bytes().splitlines()
    assert written == [*lines, encoding.line(added).encode()]


def test_a_torn_last_line_costs_only_itself(store: Store) -> None:
    store.keep(winner(8))
    store.keep(winner(9))
    store.path.write_bytes(store.path.read_bytes()[:-20])
    assert store.winners() == [winner(8)]
    store.keep(winner(10))
    assert store.winners() == [winner(8), winner(10)]


def test_the_same_size_comes_first_then_the_nearest(store: Store) -> None:
    for size in (8, 32, 33):
        store.keep(winner(size))
    store.keep(winner(32, sha256="1" * 64))
    store.keep(winner(32, device="Another Processor"))
    store.keep(winner(32, backend="cuda"))

    def sizes(problem: Problem) -> list[int]:
        return [one.problem.N for one in store.nearest("0" * 64, device(), problem)]

    assert sizes(Problem(32, 32, 32, "signed", 3)) == [32, 33, 8]
    assert sizes(Problem(36, 36, 36)) == [33, 32, 8]
    assert sizes(Problem(4, 4, 32)) == [8, 32, 33]
    assert sizes(Problem(2**62, 2**62, 2**62)) == [33, 32, 8]
    assert store.nearest("2" * 64, device(), Problem(8, 8, 8)) == []


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    for attempt in (Store.require, lambda store: store.keep(winner())):
        with pytest.raises(UsageError) as raised:
            attempt(Store(tmp_path / "file" / "state" / "tuned.jsonl"))
        text = str(raised.value)
        assert "file/state/tuned.jsonl: cannot be " in text or "the winner cannot be stored" in text
        assert "MATBENCH_STATE_DIR" in text
        assert "Errno" not in text
    (tmp_path / "tuned.jsonl").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        Store(tmp_path / "tuned.jsonl").require()


def test_to_require_it_changes_nothing(store: Store) -> None:
    store.require()
    assert only(store.path.parent) == []
    store.keep(winner())
    before = store.path.read_bytes()
    store.require()
    assert store.path.read_bytes() == before


def test_a_full_disk_is_told_and_costs_no_earlier_winner(store: Store) -> None:
    store.keep(winner(8))
    before = store.path.read_bytes()
    with full_after(len(before)):
        for attempt in (store.require, lambda: store.keep(winner(9))):
            with pytest.raises(
                UsageError, match=r"tuned\.jsonl: the winner cannot be stored: File too"
            ):
                attempt()
    assert store.path.read_bytes() == before


def test_two_searches_at_once_lose_no_winner(store: Store) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "sys.path.append('tests')\n"
        "from support.records import winner\n"
        "from matbench.features.tune.stored import Store\n"
        "for size in range(1, 21):\n"
        "    Store(Path(sys.argv[1])).keep(winner(size, kernel=sys.argv[2]))\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", script, store.path, name], cwd=ROOT)
        for name in ("one", "two", "three")
    ]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    assert len(store.winners()) == 60
    assert only(store.path.parent) == ["tuned.jsonl"]


def test_a_store_that_another_holds_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_WAIT_S", 0)
    store.keep(winner())
    with (
        filelock.FileLock(store.path.with_name(".tuned.jsonl.lock")),
        pytest.raises(UsageError, match="another run is writing to it"),
    ):
        store.keep(winner())


def test_by_default_it_is_in_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(tmp_path))
    assert Store().path == tmp_path / "tuned.jsonl"
