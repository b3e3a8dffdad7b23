"""Watching a file: what counts as a save, and what a version is compared with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from support.kernels import KernelWriter

from matbench.analysis.statistics import ComparisonPlan, compare_samples
from matbench.bench.outcomes import compared, not_measured
from matbench.features.watch import versions
from matbench.features.watch.versions import Saves, WatchedVersions
from matbench.features.watch.view import line
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import CaseRecord, Outcome, Timing
from matbench.worker.comparing import Bench

pytestmark = pytest.mark.usefixtures("plainly_compared")


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


def test_a_file_that_is_being_written_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.cu"
    path.write_text("", encoding="utf-8")
    saves = Saves(path)
    # While it waits to see whether the file is stable, the editor continues.
    writing = SimpleNamespace(sleep=lambda _: path.write_text("whole", encoding="utf-8"))
    monkeypatch.setattr(versions, "time", writing)
    assert saves.new() is None
    assert saves.new() == b"whole"


class PlainWorker:
    """Times from a table of names; remembers the comparisons."""

    def __init__(self, device: DeviceInfo, times: dict[str, float]) -> None:
        self.device = device
        self.times = times
        self.wrong = False
        self.measured: list[str] = []
        self.compared: list[tuple[str, str]] = []

    def build_ahead(self, cases: object) -> None:
        pass

    def worker(self, device: DeviceInfo, kernel: Kernel) -> PlainWorker:
        return self

    def measure(self, case: Case) -> Outcome:
        self.measured.append(case.kernel.name)
        if self.wrong:
            return not_measured(case, self.device, "wrong", "reference: all of it")
        # Smaller tiles are slower, and no kernel's first parameters are its fastest.
        median_ns = self.times[case.kernel.name] * 32 / case.params.get("TILE", 32)
        timing = Timing(samples_ns=(median_ns,), median_ns=median_ns, seed="")
        record = CaseRecord.from_case(case, self.device)
        return Outcome(case=record, status="measured", hot=timing)

    def compare(
        self, first: Case, second: Case, plan: ComparisonPlan, seed: int
    ) -> ComparisonRecord:
        self.compared.append((first.kernel.name, second.kernel.name))
        sides = [self.times[case.kernel.name] for case in (first, second)]
        outcomes = [
            Outcome(case=CaseRecord.from_case(case, self.device), status="measured")
            for case in (first, second)
        ]
        comparison = compare_samples([sides[0]] * 20, [sides[1]] * 20)
        return compared(*outcomes, comparison=comparison)


PROBLEM = Problem(64, 64, 64)


def content(path: Path, more: str = "") -> bytes:
    """The file with more code at its end."""
    return path.read_bytes() + more.encode()


def watched(worker: PlainWorker, path: Path, tiles: tuple[int, ...] = (32,)) -> WatchedVersions:
    def cases(kernel: Kernel) -> list[Case]:
        return sweep.cases([kernel], [PROBLEM], {"TILE": tiles}, worker.device)

    return WatchedVersions(Bench(worker, worker.device), path, cases)  # type: ignore[arg-type]


def test_a_version_stands_for_its_fastest_tile(
    write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    worker = PlainWorker(device, {"mine": 100.0})
    path = write_kernel()
    watch = watched(worker, path, tiles=(8, 32, 16))
    list(watch.look(path.read_bytes()))
    [best] = watch.versions[-1].contenders.values()
    assert worker.measured == ["mine"] * 3
    assert best.case.params == {"TILE": 32}


def test_a_wrong_version_is_compared_with_nothing_and_is_no_version_before(
    write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    worker = PlainWorker(device, {"mine": 100.0})
    path = write_kernel()
    watch = watched(worker, path)
    for wrong, more in ((False, ""), (True, "struct Wrong;"), (False, "struct New;")):
        worker.wrong = wrong
        assert worker.compared == []
        list(watch.look(content(path, more)))
    assert [version.wrong for version in watch.versions] == [
        "", "mine TILE=32 at 64 is wrong: reference: all of it", "",
    ]  # fmt: skip
    assert worker.compared == [("mine", "mine")]
    compared = watch.versions[-1].comparisons.values()
    names = [(one.baseline_name, one.candidate_name) for one in compared]
    assert names == [("version 1", "version 3")]


def test_what_has_the_same_code_is_not_timed_again(
    write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    worker = PlainWorker(device, {"mine": 100.0})
    path = write_kernel()
    watch = watched(worker, path)

    def same(content: bytes) -> str:
        before = len(worker.measured)
        list(watch.look(content))
        assert bool(watch.versions[-1].same_as) == (len(worker.measured) == before)
        return watch.versions[-1].same_as

    first = content(path)
    assert same(first) == ""
    assert same(first + b"// a word\n\n/* or\ntwo */") == "version 1"
    assert same(first.replace(b"    ", b"\t")) == "version 1"
    assert line(watch.versions[-1]).endswith(": the same code as version 1: not timed again")
    worker.wrong = True
    assert same(first.replace(b"k < K", b"k < K - 1")) == ""
    assert same(first.replace(b"k < K", b"k < K - 1")) == "", "what is wrong is said again"
    assert same(first) == "version 1", "the last that was right"
    worker.wrong = False
    assert same(first.replace(b"TILE = [8]", b"TILE = [8, 16]")) == ""
    assert same(first + b"#define A 1\nstruct New;") == ""
    assert same(first + b"#define A 1 struct New;") == ""
    assert worker.compared == [("mine", "mine")] * 3
    lined = first + b"static int line = __LINE__;"
    assert same(lined) == ""
    assert same(lined.replace(b"static", b"\nstatic")) == ""


def test_what_includes_another_header_is_timed(
    write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    worker = PlainWorker(device, {"mine": 100.0})
    path = write_kernel()
    header = path.with_name("tiles.h")
    watch = watched(worker, path)
    for words in ("", "struct Tile;"):
        header.write_text(words)
        list(watch.look(b'#include "tiles.h"\n' + content(path)))
    assert worker.measured == ["mine"] * 2
