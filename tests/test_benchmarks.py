"""The benchmarks start, and their parts that need no clock are right."""

from __future__ import annotations

import importlib
import json
import math
import os
import pkgutil
import struct
import subprocess
import sys
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.nvcc import compile_cubin, find_nvcc
from support.paths import ROOT
from support.repository import git

from matbench.errors import UsageError
from matbench.kernelfile import catalogue, sweep
from matbench.measure.outcomes import not_measured
from matbench.measure.samples import Samples
from matbench.measure.session import Session
from matbench.model import Conditions, DeviceInfo, Kernel, Problem

FOLDER = ROOT / "benchmarks"
SHARED = {"common", "fuzz_inputs", "mutants_drawn", "mutants_plugin"}
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a benchmark as it is imported when it runs."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def tiled() -> Kernel:
    return catalogue.load(catalogue.kernels_folder() / "tiled.cu")


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_tells_what_it_measures(name: str) -> None:
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--output" in done.stdout
    assert f"`{name}.py`" in (FOLDER / "README.md").read_text(encoding="utf-8")


# -- common --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "bar", "at_least", "met"),
    [
        (1.0, 2.0, False, True),
        (3.0, 2.0, False, False),
        (3.0, 2.0, True, True),
        (1.0, 2.0, True, False),
        (2.0, 2.0, False, True),
        (math.nan, 2.0, False, False),
        (math.nan, 2.0, True, False),
        (None, 2.0, False, False),
        (1.0, None, False, None),
    ],
)
def test_a_bar_is_met_or_not(
    value: float | None, bar: float | None, at_least: bool, met: bool | None, load: Any
) -> None:
    assert load("common").Figure("x", value, "s", bar, at_least).met is met


def test_figures_are_printed_and_kept(
    load: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = load("common")
    output = tmp_path / "found.json"
    info = DeviceInfo("cuda", 0, "Some GPU", "gpu", "580", "nvcc 13", {})
    findings = common.Findings("some", Namespace(output=output), info)
    findings.conditions += [Conditions(sm_mhz=1980), Conditions(sm_mhz=1900, throttled=("Heat",))]
    findings.figures += [
        common.Figure("a share", 0.0123, "share", 0.01),
        common.Figure("unknown", math.inf, "s", 1.0),
    ]
    findings.worst("apart", {False: [0.001, 0.002], True: []}, {False: 0.01, True: 0.03})
    findings.close()
    printed = capsys.readouterr().out
    for words in ("Some GPU", "driver 580", "1.23%", "≤ 1%", "1,900 to 1,980 MHz SM clock", "Heat"):
        assert words in printed
    kept = json.loads(output.read_text(encoding="utf-8"))
    assert [figure["met"] for figure in kept["figures"]] == [False, False, True]
    assert kept["figures"][1]["value"] is None
    assert kept["environment"]["devices"][0]["name"] == "Some GPU"


def test_cases_and_outcomes_are_short_alike(load: Any, device: DeviceInfo, tiled: Kernel) -> None:
    for n, short in ((256, True), (257, False)):
        [case] = sweep.cases([tiled], [Problem(8, n, 8)], {"TILE": (8,)}, device)
        skipped = not_measured(case, device, "skipped", "for this test")
        assert load("common").is_short(case) is load("common").is_short(skipped) is short


# -- against_nvbench -----------------------------------------------------------------------------


def test_nvbench_is_compared_with_the_center_of_the_same_kind(
    load: Any, device: DeviceInfo, tiled: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    common, against = load("common"), load("against_nvbench")
    cases = sweep.cases([tiled], [Problem(1000, 1000, 1000)], {"TILE": (8, 16)}, device)
    findings = common.Findings("x", Namespace(output=None), device)
    ours = {"tiled T=8 n=1000": [[100.0, 101.0, 140.0]], "tiled T=16 n=1000": []}
    theirs = {"tiled T=8 n=1000": [[100.5, 100.5, 100.5]], "tiled T=16 n=1000": [[1.0]]}
    against.compare(findings, cases, ours, theirs)
    medians, means = (findings.tables[title] for title in findings.tables)
    assert medians[0]["ratio"] == pytest.approx(101 / 100.5)
    assert means[0]["ratio"] == pytest.approx((341 / 3) / 100.5)
    assert (medians[0]["met"], means[0]["met"]) == ("yes", "NO")
    assert medians[1]["met"] == "NOT MEASURED"
    assert [figure.met for figure in findings.figures] == [False, False]


def test_nvbench_samples_are_read_in_ns(load: Any, tmp_path: Path) -> None:
    pytest.importorskip("cuda.bench", reason="NVBench is not installed")
    samples = (0.001, 0.002, 0.0015)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "0.bin").write_bytes(struct.pack("<3f", *samples))
    described = [
        {"name": "filename", "type": "string", "value": "bin/0.bin"},
        {"name": "size", "type": "int64", "value": "3"},
    ]
    axis = {"name": "case", "type": "int64", "flags": ""}
    state = {
        "name": "Device=0 case=7",
        "axis_values": [{"name": "case", "type": "int64", "value": "7"}],
        "summaries": [{"tag": "nv/json/bin:nv/cold/sample_times", "data": described}],
    }
    values = [{"input_string": "7", "description": "", "value": 7}]
    result = {
        "devices": [],
        "benchmarks": [
            {"name": "product", "axes": [{**axis, "values": values}], "states": [state]}
        ],
    }
    target = tmp_path / "nvbench.json"
    target.write_text(json.dumps(result))
    found = load("against_nvbench").read_samples(target)
    assert found == {7: pytest.approx([1e6, 2e6, 1.5e6])}


# -- the others ----------------------------------------------------------------------------------


def test_spread_of_medians(load: Any) -> None:
    whole, middle = load("repeatability").spread([100.0, 101.0, 102.0, 103.0, 104.0])
    assert whole == pytest.approx(0.04)
    assert middle == pytest.approx(2 / 102)


def test_the_slowed_twin_is_the_kernel_with_a_spin(
    load: Any, tiled: Kernel, tmp_path: Path, session: Session
) -> None:
    path = tmp_path / "twin.cu"
    path.write_text(load("verdicts").slowed(tiled.source, "tiled", 321), encoding="utf-8")
    twin = catalogue.load(path)
    assert (twin.name, twin.entry, twin.launch) == ("tiled-slowed", "tiled", tiled.launch)
    assert "clock64() + 321;" in twin.source
    case = sweep.case(twin, Problem(33, 31, 35), {"TILE": 8}, session.backend.info)
    assert session.measure(case).outcome.status == "measured"


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc, or no gcc and g++ for it")
def test_the_slowed_twin_compiles_as_cuda(load: Any, tiled: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "twin.cu"
    path.write_text(load("verdicts").slowed(tiled.source, "tiled", 321), encoding="utf-8")
    plain = compile_cubin(catalogue.kernels_folder() / "tiled.cu", "sm_90")
    assert compile_cubin(path, "sm_90") != plain


def test_hostile_cases_are_spread_over_the_good_ones(load: Any) -> None:
    good, hostile = ["a", "b", "c"], [1, 2, 3, 4]
    mixed = load("hostile").interleaved(good, hostile)
    assert mixed == ["a", 1, "b", 2, "c", 3, 4]


def test_the_harness_leaves_out_what_bare_means(
    load: Any, device: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    common, harness = load("common"), load("harness")
    cases = common.cases(["tiled"], "9", device)
    parts, verified, compare = {}, {True: 0, False: 0}, Samples.compare
    for bare in (True, False):
        watch = common.Stopwatch()

        def counted(samples: Samples, *arguments: Any, which: bool = bare) -> None:
            verified[which] += 1
            compare(samples, *arguments)

        monkeypatch.setattr(Samples, "compare", counted)
        with ExitStack() as stack:
            assert harness.in_process(stack, watch, device, cases, bare=bare) == len(cases)
        parts[bare] = watch
    assert parts[True].calls == parts[False].calls
    assert verified[True] == 0
    assert verified[False] > 10 * len(cases)
    assert parts[True].calls["sampling"] == len(cases)


def test_each_moment_of_a_command_counts_once(load: Any, tmp_path: Path) -> None:
    """In nanoseconds: the command waits from 40 to 60 and from 70 to 90."""
    harness = load("harness")
    own = [(20, 30, "imports"), (30, 40, "other"), (40, 60, "waiting"), (60, 70, "display")]
    own += [(70, 90, "waiting"), (90, 95, "records")]
    worker = [(45, 52, "device"), (52, 58, "inputs"), (58, 65, "other"), (65, 80, "checks")]
    compiler = [(0, 100, "imports")]
    for pid, lines in enumerate((own, worker, compiler)):
        text = "".join(f"{begin} {end} {part}\n" for begin, end, part in lines)
        (tmp_path / f"{pid}.txt").write_text(text)
    parts = harness.parts_of(*harness.recorded(tmp_path), 10, 100)
    assert {part: round(1e9 * seconds) for part, seconds in parts.items() if seconds} == {
        "Python's start and end": 15,
        "imports": 10,
        "other": 10,
        "worker: start": 5,
        "worker: device": 7,
        "worker: inputs": 6,
        "display": 10,
        "worker: checks": 10,
        "between the processes": 12,
        "records": 5,
    }
    [*_, whole, rest] = harness.wall_time_table({"warm": [(9e-8, parts)]})
    assert whole == {"part": "all", "warm cache": pytest.approx(9e-8)}
    assert rest == {"part": "all but the kernels", "warm cache": pytest.approx(9e-8)}


def test_the_probe_sees_what_a_command_does(load: Any, tmp_path: Path) -> None:
    harness = load("harness")
    arguments = ["tiled", "--sizes", "9", "--set", "TILE=8", "--backend", "opencl"]
    cache = Path(os.environ["MATBENCH_CACHE_DIR"])
    run, parts = harness.profiled([*arguments, "--max-time", "0.01"], cache)
    assert [outcome.status for outcome in run.outcomes] == ["measured"]
    assert sum(parts.values()) == pytest.approx(run.wall_s)
    assert set(parts) == set(harness.PARTS)
    # While the worker does these, the command may still do something itself.
    meanwhile = {"start", "imports", "device", "limits of the device"}
    never = {part.removeprefix("worker: ") for part, seconds in parts.items() if not seconds > 0}
    assert never <= meanwhile


def test_the_probe_names_functions_that_there_are(load: Any) -> None:
    """Otherwise a part would be missing from the table."""
    probe = load("probe.sitecustomize")
    for part, names in probe.PARTS.items():
        assert part in {name.removeprefix("worker: ") for name in load("harness").PARTS} | {
            "waiting"
        }
        for name in names:
            assert callable(pkgutil.resolve_name(name))


def test_the_fuzzer_tells_clean_errors_from_others(load: Any, tmp_path: Path) -> None:
    fuzz = load("fuzz")
    found = fuzz.Findings()

    def attempt(folder: Path, drawn: str) -> None:
        if drawn.startswith("clean"):
            raise UsageError("say it better")
        if drawn.startswith("crash"):
            raise KeyError("some name")

    for drawn in ("clean", "right", "crash, long", "crash"):
        found.attempt(attempt, tmp_path, drawn)
    assert (found.inputs, found.refused) == (4, 1)
    [((kind, _), (count, shortest, message))] = found.found.items()
    assert kind.startswith("KeyError at test_benchmarks.py")
    assert (count, shortest, message) == (2, "'crash'", "'some name'")


@pytest.mark.parametrize("target", ["front matter", "expressions", "sizes", "settings"])
def test_every_target_of_the_fuzzer_is_tried(target: str, load: Any, tmp_path: Path) -> None:
    fuzz = load("fuzz")
    found = fuzz.Findings()
    fuzz.fuzz(target, 0, 20, found, tmp_path)
    assert found.inputs >= 20
    assert found.found == {}


@pytest.fixture
def clone(load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of a project with one module and three tests, two of which fail."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "sums.py").write_text("def doubled(x): return 2 * x\n")
    (project / "test_sums.py").write_text(
        "from sums import doubled\n"
        "def test_never(): assert False\n"
        "def test_always(): pass\n"
        "def test_doubled(): assert doubled(3) == 5\n"
    )
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "sums")
    monkeypatch.setattr(load("mutants"), "ROOT", project)
    return load("mutants").Clone(tmp_path / "clones")


def test_tests_run_in_the_given_order_until_one_fails(clone: Any) -> None:
    always, doubled, never = (
        f"test_sums.py::test_{name}" for name in ("always", "doubled", "never")
    )
    assert clone.failed({always: 1.0, doubled: 1.0, never: 1.0}) == doubled


def test_a_mutant_is_noticed_by_a_test_that_passes_without_it(
    clone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = clone.root / "sums.py"
    fails = {"unstable": "", "first": "4 * x", "second": "3 * x"}

    def failed(tests: dict[str, float], limit_s: float = 0.0) -> str | None:
        return next((test for test in tests if fails[test] in source.read_text()), None)

    monkeypatch.setattr(clone, "failed", failed)
    for product, test in (("3 * x", "second"), ("4 * x", "first"), ("x * 2", None)):
        mutant = Namespace(file="sums.py", code=f"def doubled(x): return {product}\n")
        assert clone.noticed(mutant, dict.fromkeys(fails, 1.0)) == test
    assert git(clone.root, "status", "--short") == ""
