"""The benchmarks start, and their parts that need no clock are right."""

from __future__ import annotations

import importlib
import json
import math
import re
import runpy
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.devices import gpu
from support.kernels import own_file, saved
from support.nvcc import compile_cubin, find_nvcc
from support.paths import ROOT
from support.repository import git
from support.toml import table

from matbench.bench.session import Session
from matbench.kernelfile import catalogue, sweep
from matbench.model import Conditions, DeviceInfo, Kernel, Problem

FOLDER = ROOT / "benchmarks"
SHARED = {"common", "mutants_drawn", "mutants_plugin"}
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a benchmark as it is imported when it runs."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def tiled() -> Kernel:
    return catalogue.load(own_file("tiled"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_tells_what_it_measures(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = FOLDER / f"{name}.py"
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 0
    assert "--output" in capsys.readouterr().out
    assert f"`{name}.py`" in (FOLDER / "README.md").read_text(encoding="utf-8")


# -- common --------------------------------------------------------------------------------------


def test_a_bar_is_met_or_not(load: Any) -> None:
    figure, values = load("common").Figure, (1.0, 2.0, 3.0, math.nan)
    most, least = ([figure("x", one, "s", 2.0, way).met for one in values] for way in (False, True))
    assert (most, least) == ([True, True, False, False], [False, True, True, False])
    assert figure("x", 1.0, "s", None, False).met is None


def test_figures_are_kept(load: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = load("common")
    output = tmp_path / "found.json"
    info = gpu(name="Some GPU", driver="580")
    findings = common.Findings("some", Namespace(output=output), info)
    findings.conditions += [Conditions(sm_mhz=1980), Conditions(sm_mhz=1900, throttled=("Heat",))]
    findings.figures += [
        common.Figure("a share", 0.0123, "share", 0.01),
        common.Figure("unknown", math.inf, "s", 1.0),
    ]
    findings.worst("apart", {False: [0.001, 0.002], True: []}, {False: 0.01, True: 0.03})
    findings.close()
    printed = capsys.readouterr().out
    for words in ("Some GPU", "driver 580", "0.0123", "1900", "1980", "Heat"):
        assert words in printed
    kept = json.loads(output.read_text(encoding="utf-8"))
    assert [figure["met"] for figure in kept["figures"]] == [False, False, True]
    assert kept["figures"][1]["value"] is None
    assert kept["environment"]["devices"][0]["name"] == "Some GPU"


@pytest.mark.parametrize(("n", "short"), [(256, True), (257, False)])
def test_cases_are_short(n: int, short: bool, load: Any, device: DeviceInfo, tiled: Kernel) -> None:
    case = sweep.case(tiled, Problem(8, n, 8), {"TILE": 8}, device)
    assert load("common").is_short(case) is short


# -- against_nvbench -----------------------------------------------------------------------------


def test_nvbench_is_compared_with_the_center_of_the_same_kind(
    load: Any, device: DeviceInfo, tiled: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    common, against = load("common"), load("against_nvbench")
    cases = sweep.cases([tiled], [Problem(1000, 1000, 1000)], {"TILE": (8, 16)}, device)
    findings = common.Findings("x", Namespace(output=None), device)
    ours = {"tiled TILE=8 n=1000": [[100.0, 101.0, 140.0]], "tiled TILE=16 n=1000": []}
    theirs = {"tiled TILE=8 n=1000": [[100.5, 100.5, 100.5]], "tiled TILE=16 n=1000": [[1.0]]}
    against.compare(findings, cases, ours, theirs)
    medians, means = (findings.tables[title] for title in findings.tables)
    assert medians[0]["ratio"] == pytest.approx(101 / 100.5)
    assert means[0]["ratio"] == pytest.approx((341 / 3) / 100.5)
    assert medians[1]["ratio"] == "NOT MEASURED"
    assert [figure.met for figure in findings.figures] == [False, False]


# -- the others ----------------------------------------------------------------------------------


def test_the_slowed_twin_spins(load: Any, tiled: Kernel, tmp_path: Path, session: Session) -> None:
    twin = catalogue.load(saved(tmp_path / "twin.cu", load("verdicts").slowed(tiled, 321)))
    assert (twin.name, twin.entry, twin.launch) == ("tiled-slowed", "tiled", tiled.launch)
    assert "spin_step < 321;" in twin.source
    case = sweep.case(twin, Problem(33, 31, 35), {"TILE": 8}, session.backend.info)
    assert session.measure(case).status == "measured"


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc, or no gcc and g++ for it")
def test_the_slowed_twin_compiles_as_cuda(load: Any, tiled: Kernel, tmp_path: Path) -> None:
    path = saved(tmp_path / "twin.cu", load("verdicts").slowed(tiled, 321))
    plain = compile_cubin(own_file("tiled"), "sm_90")
    assert compile_cubin(path, "sm_90") != plain


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


def test_a_mutant_is_noticed_by_a_passing_test(clone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = clone.root / "sums.py"
    fails = {"unstable": "", "first": "4 * x", "second": "3 * x"}

    def failed(tests: dict[str, float], limit_s: float = 0.0) -> str | None:
        return next((test for test in tests if fails[test] in source.read_text()), None)

    monkeypatch.setattr(clone, "failed", failed)
    for product, test in (("3 * x", "second"), ("4 * x", "first"), ("x * 2", None)):
        mutant = Namespace(file="sums.py", code=f"def doubled(x): return {product}\n")
        assert clone.noticed(mutant, dict.fromkeys(fails, 1.0)) == test
    assert git(clone.root, "status", "--short") == ""


def test_mutants_are_drawn_from_folders_that_there_are(load: Any) -> None:
    text = (FOLDER / "mutants_drawn.py").read_text(encoding="utf-8")
    places = re.findall(r'^    "(matbench/.*)",$', text, re.MULTILINE)
    assert len(places) > 5
    assert [place for place in places if not [*ROOT.glob(place)]] == []
    mutants = load("mutants")
    text = (ROOT / mutants.PROCESS).read_text(encoding="utf-8")
    assert [text.count(statement) for statement in mutants.TASK] == [1, 1]


def test_mutants_that_are_set_aside_change_files_that_there_are() -> None:
    files = {mutant["file"] for mutant in table(FOLDER / "mutants.toml")["mutant"]}
    assert [file for file in files if not (ROOT / file).is_file()] == []


# -- judges --------------------------------------------------------------------------------------


def test_the_page_on_judges_shows_the_rules_of_the_benchmark(load: Any) -> None:
    judges = load("judges")
    shown = json.loads((ROOT / "results" / "cpu-judges.json").read_bytes())
    assert shown["rules"] == json.loads(msgspec.json.encode([*judges.RULES, *judges.VERIFY]))
    assert {row["rule"] for row in shown["verdicts"]} == {rule["name"] for rule in shown["rules"]}
    assert {row["judged"] for row in shown["verdicts"]} == {judges.DRAWN}
    sources = [rule.source for rule in judges.RULES]
    assert [source for source in sources if not re.fullmatch("[0-9a-f]{40}", source[2])] == []


@pytest.mark.parametrize("number", range(9))
def test_judges_tell_float64_sums_from_those_of_other_inputs(number: int, load: Any) -> None:
    """And `verify` accepts every honest result, of each rule's operands."""
    judges = load("judges")
    rule = msgspec.structs.replace([*judges.RULES, *judges.VERIFY][number], K=128)
    found = {row["result"]: row for row in judges.verdicts(rule, side=16, drawn=1)}
    assert found["float64 sums"]["accepted"] == 1
    assert found["the result of other inputs"]["accepted"] == 0
    assert found["operands of 4 bits"]["verified"] == 0
    assert [row["result"] for row in found.values() if row["honest"] and not row["verified"]] == []
    assert sum(row["honest"] for row in found.values()) == 7


@pytest.mark.long
def test_verdicts_of_a_judge_are_those_that_the_page_shows(load: Any) -> None:
    judges = load("judges")
    [rule] = [rule for rule in judges.RULES if rule.name == "kernelbot"]
    shown = json.loads((ROOT / "results" / "cpu-judges.json").read_bytes())["verdicts"]
    assert judges.verdicts(rule) == [row for row in shown if row["rule"] == rule.name]
