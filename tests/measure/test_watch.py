"""Watching a file: what counts as a save, and the rung that a version is compared with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from support.kernels import KernelWriter, kernel_text

from matbench.analysis.statistics import ComparisonPlan, compare_samples
from matbench.kernelfile import catalogue, sweep
from matbench.measure import watch
from matbench.measure.outcomes import Found, compared, not_measured
from matbench.measure.watch import Saves, Watch
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import CaseRecord, Outcome, Timing


def test_only_other_content_is_a_save(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    saves = Saves(path)
    assert saves.new() is None
    path.write_text("one", encoding="utf-8")
    assert saves.new() == b"one"
    saves.seen = b"one"
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
    monkeypatch.setattr(watch, "time", writing)
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

    def measure(self, case: Case) -> Found:
        self.measured.append(case.kernel.name)
        if self.wrong:
            return Found(not_measured(case, self.device, "wrong", "reference: all of it"))
        # Smaller tiles are slower, and no kernel's first parameters are its fastest.
        median_ns = self.times[case.kernel.name] * 32 / case.params.get("TILE", 32)
        timing = Timing(samples_ns=(median_ns,), median_ns=median_ns)
        record = CaseRecord.of(case, self.device)
        return Found(Outcome(case=record, status="measured", hot=timing))

    def compare(
        self, first: Case, second: Case, plan: ComparisonPlan, seed: int
    ) -> ComparisonRecord:
        self.compared.append((first.kernel.name, second.kernel.name))
        sides = [self.times[case.kernel.name] for case in (first, second)]
        outcomes = [
            Outcome(case=CaseRecord.of(case, self.device), status="measured")
            for case in (first, second)
        ]
        comparison = compare_samples([sides[0]] * 20, [sides[1]] * 20)
        return compared(*outcomes, comparison=comparison)


PROBLEM = Problem(64, 64, 64)


def watched(
    worker: PlainWorker, path: Path, rungs: list[Kernel], tiles: tuple[int, ...] = (32,)
) -> Watch:
    def cases(kernel: Kernel) -> list[Case]:
        return sweep.cases([kernel], [PROBLEM], {"TILE": tiles}, worker.device)

    plan = ComparisonPlan()
    return Watch(worker, worker, path, rungs, cases, plan)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("own", "front", "expected"),
    [
        (1000.0, "", "naive-2d"), (150.0, "", "tiled"),
        (1000.0, 'precision = "tf32"', "thread-1d"), (150.0, 'precision = "tf32"', "thread-1d"),
    ],
)  # fmt: skip
def test_a_rung_with_claims_comes_after_those_that_are_held_to_as_much(
    own: float, front: str, expected: str, write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    """The next rung, thread-1d, has claims: it is only for versions that have claims too."""
    nearest = 600.0 if own == 1000.0 else 120.0
    times = {"thread-1d": nearest, "tiled": 100.0, "naive-2d": 500.0, "mine": own}
    rungs = [
        msgspec.structs.replace(kernel, error_constant=8.0 * (kernel.name == "thread-1d"))
        for kernel in catalogue.builtin()
        if kernel.name in times
    ]
    worker = PlainWorker(device, times)
    path = write_kernel(front=front)
    watch = watched(worker, path, rungs)
    list(watch.look(path.read_bytes()))
    list(watch.climb())
    assert worker.compared == [(expected, "mine")]


@pytest.mark.parametrize(
    ("own", "expected"),
    [(1000.0, "naive-2d"), (350.0, "thread-1d"), (150.0, "tiled"), (50.0, "tiled")],
)
def test_the_nearest_rung_is_the_slowest_not_yet_beaten(
    own: float, expected: str, write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    times = {"tiled": 100.0, "thread-1d": 300.0, "naive-2d": 500.0, "mine": own}
    worker = PlainWorker(device, times)
    path = write_kernel()
    watch = watched(worker, path, [k for k in catalogue.builtin() if k.name in times])
    list(watch.look(path.read_bytes()))
    assert worker.compared == []  # no version before, and no rung is measured
    assert watch.can_climb
    list(watch.climb())
    assert worker.compared == [(expected, "mine")]
    assert not watch.can_climb
    # The next version is compared with the one before, then the rung, without a new search.
    list(watch.look(path.read_bytes()))
    assert worker.compared[1:] == [("mine", "mine"), (expected, "mine")]
    [standing] = watch.versions[-1].standings.values()
    names = [(one.baseline_name, one.candidate_name) for one in standing.comparisons]
    assert names == [("version 1", "version 2"), (expected, "version 2")]
    assert standing.rung == expected


def test_a_version_stands_for_its_fastest_tile(
    write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    worker = PlainWorker(device, {"mine": 100.0})
    path = write_kernel()
    watch = watched(worker, path, [], tiles=(8, 32, 16))
    list(watch.look(path.read_bytes()))
    [standing] = watch.versions[-1].standings.values()
    assert worker.measured == ["mine"] * 3
    assert (standing.params, standing.median_ns) == ({"TILE": 32}, 100.0)


def test_a_wrong_version_is_compared_with_nothing_and_is_no_version_before(
    write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    worker = PlainWorker(device, {"mine": 100.0})
    path = write_kernel()
    watch = watched(worker, path, [])
    for wrong in (False, True, False):
        worker.wrong = wrong
        list(watch.look(path.read_bytes()))
    assert [version.wrong for version in watch.versions] == [
        "", "mine TILE=32 at 64 is wrong: reference: all of it", "",
    ]  # fmt: skip
    assert worker.compared == [("mine", "mine")]
    [standing] = watch.versions[-1].standings.values()
    assert standing.comparisons[0].baseline_name == "version 1"


def test_a_version_that_cannot_be_parsed_says_where(
    write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    worker = PlainWorker(device, {})
    path = write_kernel()
    watch = watched(worker, path, [])
    assert not watch.can_climb
    list(watch.look(kernel_text().replace("// block", "// blok").encode()))
    assert "unknown key `blok`" in watch.versions[-1].wrong
    assert worker.measured == []
