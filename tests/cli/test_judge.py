"""`matbench.Judge` as a program uses it: verdicts, comparisons, and what is left afterwards."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import psutil
import pytest
from PIL import Image
from support import candidates
from support.kernels import GOOD_BODY, SLOW_BODY, kernel_text, saved
from support.optional import present, some
from support.paths import ROOT, programs
from support.scripted import device as scripted_device
from support.tables import compared

import matbench
from matbench import backends
from matbench.backends.protocol import UnavailableError
from matbench.cli.judge import AHEAD
from matbench.cli.verdicts import Comparisons
from matbench.model import DeviceInfo
from matbench.show import reasons

pytestmark = pytest.mark.usefixtures("few_sizes")

#: Fits only TILE = 8.
LAUNCH_OF_8 = """block = ["TILE", "TILE"]
grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
where = ["TILE == 8"]"""
#: A kernel file without front matter.
FOREIGN = GOOD_BODY.replace("ENTRY", "foreign").replace("TILE", "16")


@pytest.fixture(scope="module")
def judge(device: DeviceInfo) -> Iterator[matbench.Judge]:
    with matbench.Judge("64", backend=device.backend, max_time=0.01) as made:
        yield made


@pytest.fixture(scope="module")
def scripted() -> Iterator[matbench.Judge]:
    """A judge on the scripted device."""
    with scripted_device():
        judge = matbench.Judge("64", max_time=0.01)
    with judge:
        yield judge


def test_what_takes_too_long_is_not_tried_with_more_work() -> None:
    """The least work first, whatever the order that is asked for; less work is measured."""
    hangs = kernel_text().replace("{", "{\n#define HANGS K >= 33\n", 1)
    assert "HANGS" in hangs
    with scripted_device():
        judge = matbench.Judge("64,33,8", max_time=0.01, timeout=0.2)
    with judge:
        verdict = judge.run(hangs)
        assert [case.status for case in verdict.cases] == ["skipped", "failed", "measured"]
        late = "running took longer than 0.26 s and was stopped (see timeout)"
        assert verdict.reason == late
        assert reasons.outcome_reason(verdict.cases[0]) == (
            "not tried after the timeout at 33 (see timeout)"
        )


def test_times_of_several_sizes_are_added(scripted: matbench.Judge) -> None:
    verdict = scripted.run(kernel_text().replace("TILE = [8]", "TILE = [8, 16]"), sizes="64,33")
    medians = {size: [] for size in (64, 33)}  # type: dict[int, list[float]]
    for case in verdict.cases:
        medians[case.case.problem.N].append(present(case.median_ns))
    assert verdict.median_ns == min(medians[64]) + min(medians[33])


def test_the_worst_case_decides(scripted: matbench.Judge) -> None:
    """Wrong at one size, right at the other; failed front matter at one of two."""
    wrong = kernel_text(body="#define WRONG K == 33\n" + GOOD_BODY)
    verdict = scripted.run(wrong, sizes="64,33")
    assert verdict.status == "wrong"
    assert {case.status for case in verdict.cases} == {"wrong", "measured"}


def test_a_closed_judge_starts_no_process(device: DeviceInfo) -> None:
    with matbench.Judge("33", backend=device.backend) as judge:
        pass
    for call in (lambda: judge.run("tiled"), lambda: judge.compare("tiled", "tiled")):
        with pytest.raises(matbench.UsageError, match="this judge is closed"):
            call()


@pytest.mark.parametrize(
    ("called", "status"), [("__popc(x)", "skipped"), ("no_such_function(x)", "failed")]
)
def test_a_plain_kernel_that_needs_cuda_is_skipped_on_a_cpu(
    called: str, status: str, judge: matbench.Judge, device: DeviceInfo
) -> None:
    if device.kind == "gpu":
        pytest.skip("it runs on a GPU")
    text = (
        kernel_text()
        .partition("// ///\n")[2]
        .replace("float sum", f"int x = 1 + {called}; float sum")
    )
    found = judge.run(text)
    assert (found.status, found.cases) == (status, ())
    assert ("needs CUDA (`__popc`" in str(found.reason)) == (status == "skipped")
    needy = judge.run(text.replace(called, "1"), front_matter={"requires": ["cuda"]})
    assert (needy.status, needy.cases) == ("skipped", ())
    assert "cannot be built here: needs CUDA" in str(needy.reason)


def test_what_runs_nowhere_has_a_verdict_of_its_own(
    scripted: matbench.Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function of the CPU on a machine with a GPU, where candidates are built ahead, but without
    OpenCL."""
    lacking = Mock(side_effect=UnavailableError("no OpenCL CPU device"))
    monkeypatch.setattr(backends, "host_device", lacking)
    monkeypatch.setattr(scripted, "device", msgspec.structs.replace(scripted.device, kind="gpu"))
    [verdict] = scripted.run_all(["import numpy\ndef f(A, B): return A @ B\n"])
    assert verdict.status == "failed"
    assert "no OpenCL CPU device" in str(verdict.reason)


def test_candidates_are_read_a_few_ahead(scripted: matbench.Judge) -> None:
    read: list[str] = []

    def written() -> Iterator[str]:
        while True:
            read.append(f"none{len(read)}.cu")
            yield read[-1]

    verdicts = scripted.run_all(written())
    assert [next(verdicts).kernel for _ in range(3)] == read[:3]
    assert len(read) == AHEAD + 2


def test_a_plain_file_is_adopted(judge: matbench.Judge, tmp_path: Path, device: DeviceInfo) -> None:
    path = saved(tmp_path / "foreign.cu", FOREIGN)
    for candidate in (path, FOREIGN):
        assert judge.run(candidate).status == "measured"
    assert [*tmp_path.iterdir()] == [path]
    with matbench.Judge("64", backend=device.backend, adopt=False) as plain:
        assert (
            plain.run(path).reason
            == f"{path}: front matter is missing (block, grid); see docs/kernels.md"
        )


#: Those that the usual tests adopt.
SOON = ("leading-dimension-b", "factors")


@pytest.mark.parametrize("name", some(candidates.FAULTY, *SOON))
def test_a_table_that_fits_measures_no_faulty_kernel(name: str, judge: matbench.Judge) -> None:
    """Each is right at some sizes, or computes some product."""
    text, told = candidates.FAULTY[name]
    verdict = judge.run(text)
    is_unusable = told in ("", "none of the calls")
    assert verdict.status in (("wrong", "failed") if is_unusable else ("wrong",)), verdict
    assert told in present(verdict.reason)
    assert verdict.median_ns is None


@pytest.mark.parametrize("name", some(candidates.RIGHT, *SOON))
def test_a_right_kernel_is_measured_in_any_style(name: str, judge: matbench.Judge) -> None:
    verdict = judge.run(candidates.RIGHT[name], sizes="64,17,33x15x65")
    assert (verdict.status, verdict.reason) == ("measured", None)
    assert verdict.median_ns is not None
    assumed = ('reads = ["C"]',) if name == "factors" else ()
    assert present(verdict.adoption).assumed == assumed


def test_a_contract_says_what_is_asked_for(judge: matbench.Judge) -> None:
    text, _ = candidates.FAULTY["b-transposed"]
    asked = {"transpose": "NT"}
    for verdict in (judge.run(text, contract=asked), judge.run(text, front_matter=asked)):
        assert (verdict.status, verdict.reason) == ("measured", None)
        assert present(verdict.adoption).table["transpose"] == "NT"
    assert judge.run(text, front_matter={"transpose": "NN"}).status == "wrong"
    adds, _ = candidates.FAULTY["adds-to-c"]
    assert judge.run(adds, contract={"beta": 1.0}).status == "measured"
    both = judge.run(candidates.RIGHT["factors"], contract={"beta": 1.0})
    assert {case.case.problem.beta for case in both.cases} == {1.0}


def test_sizes_that_a_contract_leaves_out_are_skipped(judge: matbench.Judge) -> None:
    text, _ = candidates.FAULTY["no-guard"]
    given = {"launch": {"where": ["M % 16 == 0", "N % 32 == 0"]}}
    verdict = judge.run(text, sizes="64,48", front_matter=given)
    assert (verdict.status, verdict.median_ns) == ("skipped", None)
    assert verdict.reason == "needs N % 32 == 0 (N = 48)"
    assert [case.status for case in verdict.cases] == ["measured", "skipped"]
    adoption = present(verdict.adoption)
    assert adoption.restricted == ("M % 16 == 0", "N % 16 == 0")
    assert adoption.warnings
    assert {adoption.notes} == {case.notes[: len(adoption.notes)] for case in verdict.cases}


def test_one_set_of_constants_may_not_fit(scripted: matbench.Judge) -> None:
    verdict = scripted.run(
        kernel_text(launch=LAUNCH_OF_8), front_matter={"sweep": {"TILE": [8, 16]}}
    )
    assert {case.status for case in verdict.cases} == {"measured", "skipped"}
    assert (verdict.status, verdict.reason) == ("measured", None)


def test_given_keys_are_part_of_the_table_that_is_found(judge: matbench.Judge) -> None:
    given = {"launch": {"block": [32, 4]}}
    verdict = judge.run(candidates.NAIVE, sizes="64,17x33x5", front_matter=given)
    assert (verdict.status, verdict.reason) == ("measured", None)
    assert present(verdict.cases[0].case.launch).block == (32, 4, 1)
    swapped = judge.run(candidates.NAIVE, front_matter={"args": ["B", "A", "C", "M", "N", "K"]})
    assert swapped.status == "wrong"


def test_front_matter_and_an_entry_can_be_given(judge: matbench.Judge) -> None:
    both = FOREIGN + FOREIGN.replace("foreign", "other").replace("k < K", "k < K - 1")
    launch = {"block": [16, 16], "grid": ["ceil_div(N, 16)", "ceil_div(M, 16)"]}
    for entry, status in (("foreign", "measured"), ("other", "wrong")):
        found = judge.run(both, entry=entry, front_matter={"launch": launch})
        assert found.status == status, found.reason
    assert judge.run(both, entry="other").status == "failed"  # no call of it is right


def test_two_kernels_are_compared_in_turns(scripted: matbench.Judge) -> None:
    fast, slow = kernel_text(), kernel_text(body=SLOW_BODY)
    found = scripted.compare(fast, slow, max_time=2)
    assert found.verdict == "SLOWER"
    assert present(found.ratios[0]) > 2
    assert [record.baseline.case.problem.N for record in found.records] == [64]
    assert scripted.compare(slow, fast, max_time=2).verdict == "FASTER"
    hosted = scripted.compare("numpy", fast)
    assert hosted.reason == "numpy runs only on the host; use `matbench run`"


def test_numbers_are_taken_as_if_written(device: DeviceInfo) -> None:
    numbers: dict[str, Any] = {"sizes": 17, "alpha": 2.0, "beta": 1, "batch": 1, "device": 0}
    with matbench.Judge(**numbers, backend=device.backend) as judge:
        for size in (17, 33):
            sizes: Any = size if size != 17 else None
            [case] = judge.run("numpy", sizes=sizes).cases
            problem = case.case.problem
            assert (problem.N, problem.alpha, problem.beta) == (size, 2, 1)


def test_sizes_that_disagree_leave_it_undecided() -> None:
    slower, same = compared(), compared(1.0, verdict="SAME")
    for records, verdict in (
        ((slower, slower), "SLOWER"),
        ((same, slower), "UNDECIDED"),
        ((slower, same), "UNDECIDED"),
        ((), None),
    ):
        assert Comparisons(records=records).verdict == verdict


@pytest.mark.long
def test_many_kernels_have_their_verdicts(benchmarked: Any, device: DeviceInfo) -> None:
    given = benchmarked(20)
    assert Counter(one.status for one in given).keys() == {"measured", "wrong", "failed"}
    with matbench.Judge("64", backend=device.backend, timeout=1, max_time=0.01) as judge:
        verdicts = list(judge.run_all(one.text for one in given))
    assert [verdict.status for verdict in verdicts] == [one.status for one in given]


@pytest.mark.usefixtures("scripted_device")
def test_builds_are_forgotten_so_that_memory_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    with matbench.Judge("33", max_time=0.01) as judge:
        judge.run("tiled")
        worker = judge.pool.worker(judge.device)
        assert worker.run(_builds) > 0
        monkeypatch.setattr("matbench.cli.judge._FORGET_AFTER", 2)
        judge.run("naive-2d")
        assert len(worker._warnings) == worker.run(_builds)
        assert judge.run("nowhere.cu").status == "failed"
        before = worker.run(_builds)
        judge.run("naive-2d")
        judge.run("thread-1d")
        assert worker.run(_builds) <= before


def _builds(session: Any) -> int:
    return len(session._built)


# -- as a program ----------------------------------------------------------------------------------


PROGRAMS = programs(__file__)


def program(text: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script without a guard for its main module."""
    file = saved(folder / "program.py", textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, str(file)], cwd=folder, capture_output=True, text=True, timeout=120,
        check=False, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.usefixtures("scripted_device")
def test_a_script_needs_no_guard_and_leaves_nothing(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    ran = program(PROGRAMS["a script without a guard"], tmp_path, TMPDIR=str(temporary))
    assert (ran.stdout, ran.stderr) == ("begun\nmeasured failed\n", "")
    assert list(temporary.iterdir()) == []
    assert not [p for p in psutil.process_iter(["cwd"]) if str(tmp_path) in (p.info["cwd"] or "")]


@pytest.mark.usefixtures("scripted_device")
def test_a_judge_that_is_gone_has_ended_its_process(tmp_path: Path) -> None:
    ran = program(PROGRAMS["a judge that is let go"].replace("FOREIGN", repr(FOREIGN)), tmp_path)
    assert ran.stdout == "failed 2\n0\n", ran.stderr  # no call of it is right on that device


def test_importing_it_loads_hardly_anything(tmp_path: Path) -> None:
    ran = program(PROGRAMS["what is imported"], tmp_path)
    assert ran.stdout == "[]\n[]\n"


def test_it_changes_nothing_of_click(tmp_path: Path) -> None:
    """A program may use click itself."""
    ran = program(PROGRAMS["click's own"], tmp_path)
    assert ran.stdout == "True\n", ran.stderr


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Judgement"):
        _ = matbench.Judgement


def examples() -> list[str]:
    """The Python of the page on judging from a program."""
    text = (ROOT / "docs" / "judge.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.long
def test_the_examples_of_the_page_run(tmp_path: Path, run_file: Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("altair")
    run_file.rename(tmp_path / "results.jsonl")
    (tmp_path / "mine.cu").write_text(kernel_text().replace("TILE = [8]", "TILE = [8, 16, 32]"))
    verdict, contract, best, chart = examples()
    ran = program(verdict, tmp_path)
    assert ran.stdout.startswith("measured None "), ran.stderr
    ran = program(contract, tmp_path)
    told = "computes C = A·B; asked for C = A·Bᵀ\nNone\n"
    assert ran.stdout == told, ran.stderr
    ran = program(best, tmp_path)
    assert re.fullmatch(r"(FASTER|SLOWER|SAME|UNDECIDED): \([\d.]+,\)\n", ran.stdout), ran.stderr
    ran = program(chart, tmp_path)
    assert "tiled" in ran.stdout, ran.stderr
    with Image.open(tmp_path / "speed.png") as picture:
        assert min(picture.size) > 100


# -- records ---------------------------------------------------------------------------------------


def test_records_are_typed_and_have_flat_rows(run_file: Path) -> None:
    records = matbench.read(run_file)
    rows = records.rows()
    assert len(rows) == len(records.outcomes) == 2
    assert len(records.environments) == 1
    assert {type(value) for row in rows for value in row.values()} <= {
        str, int, float, bool, type(None)
    }  # fmt: skip
    assert [row["params"] for row in rows] != ["", ""]
    assert {row["kernel"] for row in rows} == {"tiled"}
    assert [row["median_ns"] for row in rows] == sorted(
        present(outcome.median_ns) for outcome in records.outcomes
    )


@pytest.fixture
def run_file(matbench: Any, tmp_path: Path, scripted_device: None) -> Path:
    file = tmp_path / "out.jsonl"
    matbench("run", "tiled", "--set", "TILE=8,16", "--sizes", "33", "--output", file)
    return file
