"""Watching a file: what counts as a save, and what a version is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import scripted, warm
from support.kernels import GOOD_BODY, KernelWriter, saved

from matbench.bench.options import Deadlines, Options
from matbench.features.watch import versions
from matbench.features.watch.versions import Saves, WatchedVersions
from matbench.features.watch.view import line
from matbench.kernelfile import sweep
from matbench.model import Case, Kernel, Problem
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Outcome
from matbench.worker.comparing import Bench, Contender
from matbench.worker.worker import WorkerPool


def test_only_other_content_is_a_save(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    saves = Saves(path)
    assert saves.new() is None
    path.write_text("one", encoding="utf-8")
    assert saves.new() == b"one"
    saves.see()
    assert saves.new() is None
    path.touch()
    assert saves.new() is None
    path.write_text("two", encoding="utf-8")
    assert saves.new() == b"two"
    path.unlink()
    assert saves.new() is None


def test_unfinished_files_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "mine.cu", "")
    saves = Saves(path)
    assert saves.new() is None
    path.write_text("who", encoding="utf-8")
    # While it waits to see whether the file is stable, the editor continues.
    writing = SimpleNamespace(sleep=lambda _: path.write_text("whole", encoding="utf-8"))
    monkeypatch.setattr(versions, "time", writing)
    assert saves.new() is None
    assert saves.new() == b"whole"


class NotedBench(Bench):
    """Remembers what it measures and compares."""

    def __init__(self, pool: WorkerPool) -> None:
        super().__init__(pool, scripted.DEVICE)
        self.measured: list[str] = []
        self.compared: list[tuple[str, str]] = []

    def measure(self, case: Case) -> Outcome:
        self.measured.append(case.kernel.name)
        return super().measure(case)

    def compare(self, baseline: Contender, candidate: Contender) -> ComparisonRecord:
        self.compared.append((baseline.label, candidate.label))
        return super().compare(baseline, candidate)


@pytest.fixture
def bench(scripted_device: None) -> Iterator[NotedBench]:
    with warm.workers(), WorkerPool(Options(blocks=False), Deadlines()) as pool:
        yield NotedBench(pool)


PROBLEM = Problem(64, 64, 64)


def content(path: Path, more: str = "") -> bytes:
    """The file with more code at its end."""
    return path.read_bytes() + more.encode()


def watched(bench: NotedBench, path: Path, tiles: tuple[int, ...] = (32,)) -> WatchedVersions:
    def cases(kernel: Kernel) -> list[Case]:
        return sweep.cases([kernel], [PROBLEM], {"TILE": tiles}, bench.device)

    return WatchedVersions(bench, path, cases)


def test_versions_stand_for_their_best(write_kernel: KernelWriter, bench: NotedBench) -> None:
    path = write_kernel(body="#define TAKES 1e6 / TILE\n" + GOOD_BODY)
    watch = watched(bench, path, tiles=(8, 32, 16))
    list(watch.look(path.read_bytes()))
    [best] = watch.versions[-1].contenders.values()
    assert bench.measured == ["mine"] * 3
    assert best.case.params == {"TILE": 32}


#: More code, with which a kernel is wrong.
WRONG = "#define WRONG 1\n"


def test_a_wrong_version_is_not_compared(write_kernel: KernelWriter, bench: NotedBench) -> None:
    path = write_kernel()
    watch = watched(bench, path)
    for more in ("", WRONG, "struct New;"):
        assert bench.compared == []
        list(watch.look(content(path, more)))
    first, wrong, last = (version.wrong for version in watch.versions)
    assert wrong.startswith("mine TILE=32 at 64 is wrong: reference: 4,096 of 4,096 elements")
    assert (first, last) == ("", "")
    assert bench.compared == [("version 1", "version 3")]
    [compared] = watch.versions[-1].comparisons.values()
    assert (compared.baseline_name, compared.candidate_name) == ("version 1", "version 3")


def test_what_has_the_same_code_is_untimed(write_kernel: KernelWriter, bench: NotedBench) -> None:
    path = write_kernel()
    watch = watched(bench, path)

    def same(content: bytes) -> str:
        before = len(bench.measured)
        list(watch.look(content))
        assert bool(watch.versions[-1].same_as) == (len(bench.measured) == before)
        return watch.versions[-1].same_as

    first = content(path)
    assert same(first) == ""
    assert same(first + b"// a word\n\n/* or\ntwo */") == "version 1"
    assert same(first.replace(b"    ", b"\t")) == "version 1"
    assert line(watch.versions[-1]).endswith(": the same code as version 1: not timed again")
    assert same(content(path, WRONG)) == ""
    assert same(content(path, WRONG)) == "", "what is wrong is said again"
    assert same(first) == "version 1", "the last that was right"
    assert same(first.replace(b"TILE = [8]", b"TILE = [8, 16]")) == ""
    assert same(first + b"#define A 1\nstruct New;") == ""
    assert same(first + b"#define A 1 struct New;") == ""
    assert len(bench.compared) == 3
    lined = first + b"static int line = __LINE__;"
    assert same(lined) == ""
    assert same(lined.replace(b"static", b"\nstatic")) == ""


def test_included_headers_are_timed(write_kernel: KernelWriter, bench: NotedBench) -> None:
    path = write_kernel()
    header = path.with_name("tiles.h")
    watch = watched(bench, path)
    for words in ("", "struct Tile;"):
        header.write_text(words)
        list(watch.look(b'#include "tiles.h"\n' + content(path)))
    assert bench.measured == ["mine"] * 2
