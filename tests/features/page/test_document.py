"""Pages without a browser: what they hold, and what they refuse."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support import record_files, records, tables
from support.browser import needs_page
from support.cli import Matbench
from support.golden import paged
from support.paths import ROOT

from matbench.analysis import gathering
from matbench.features.charts import cases
from matbench.features.page import document, findings, summary
from matbench.features.page.summary import Summary
from matbench.model import Problem
from matbench.records import reading
from matbench.records.outcome import Accuracy, Outcome

RESULTS = sorted((ROOT / "results").glob("*.jsonl"))
HOSTILE = "</script><img src=x onerror=alert(1)>\u2028&amp;"


def found_in(name: str) -> tuple[list[Any], list[Outcome]]:
    return record_files.read(ROOT / "results" / name)


def data_of(page: str) -> Any:
    _, _, data = page.partition('<script type="application/json" id="data">')
    return json.loads(data.partition("</script>")[0])


def square(kernel: str, n: int, ms: float, error: float = 1e-7, **changes: Any) -> Outcome:
    accuracy = Accuracy(error, error / 2, 0.1)
    problem = Problem(n, n, n)
    return tables.outcome(kernel, ms, problem=problem, accuracy=accuracy, **changes)


# The summary


def summaries(outcomes: list[Outcome], environments: list[Any]) -> list[Summary]:
    """What is said of each view, as the command makes them."""
    outcomes, environments = gathering.told_apart(outcomes, environments)
    devices = [device for environment in environments for device in environment.devices]
    ranked = cases.make_cases(outcomes, devices, {}).ranked
    return summary.make_summaries(ranked, environments)


def said(found: Summary) -> str:
    rows = found.winners.rows if found.winners is not None else ()
    lines = [found.sentence, *filter(None, [found.warning]), found.dates, *found.commands]
    return "\n".join([*lines, *(" | ".join(row.cells) for row in rows)])


def test_pages(file_regression: Any) -> None:
    """The sentence is about the largest square size of the most complete view."""
    gpu = tables.GPU
    about = records.environment(argv=("run", "a b", "--sizes", "64"))
    four = [square(name, 32, 1.0 + i) for i, name in enumerate("abcd")]
    three = [square(name, 64, ms) for name, ms in (("a", 1.0), ("b", 1.1), ("c", 3.0))]
    wrong = records.outcome("b", status="wrong", reason="no")
    found: dict[str, list[Outcome]] = {
        "a command that can be repeated": [],
        "half of the kernels at 64": [*four, square("a", 64, 9.0), square("b", 64, 10.0)],
        "less than half of them": [*four, square("a", 64, 9.0)],
        "many that cannot be told apart": [square(name, 64, 1.0) for name in "abcdef"],
        "two that cannot be told apart": [*three, square("a", 32, 0.2), square("c", 32, 0.1)],
        "right, not timed": [records.outcome("a", cold=None), records.outcome("b", cold=None)],
        "one wrong": [three[0], wrong],
        "all wrong": [wrong],
        "wrong in another view": [three[0], wrong, square("a", 64, 1.0, device=gpu)],
        "what ranks apart does not win": [
            square("plain", 64, 2.0, device=gpu),
            square("double", 64, 1.0, device=gpu, result="float64"),
            square("half", 64, 0.5, device=gpu, precision="float16"),
            square("cublas", 64, 0.9, device=gpu, group="baseline"),
        ],
    }
    environments, outcomes = found_in("h200-ladder.jsonl")
    pages = {"the ladder": summaries(outcomes, environments)}
    pages |= {name: summaries(outcomes, [about]) for name, outcomes in found.items()}
    texts = {name: "\n\n".join(map(said, page)) for name, page in pages.items()}
    file_regression.check(paged(texts), encoding="utf-8")


# Cases


def test_a_view_is_named_by_the_beginning_of_its_devices_uuid() -> None:
    environments, outcomes = found_in("h200-ladder.jsonl")
    outcomes, environments = gathering.told_apart(outcomes, environments)
    found = cases.make_cases(outcomes, environments[0].devices, {})
    assert found.views[0].label == "NVIDIA H200 (GPU-94fcd18e…) · matmul"


def test_awkward_sizes_stand_beside_round_ones() -> None:
    environments, outcomes = found_in("h200-ladder.jsonl")
    found = cases.make_cases(outcomes, environments[0].devices, {})
    beside = {case.n: case.beside for case in found.cases if case.n}
    assert beside == {
        256: None, 512: None, 1000: 1024, 1024: None, 2048: None, 4095: 4096, 4096: None, 8192: None
    }  # fmt: skip


def test_figures_are_those_of_the_tables() -> None:
    environments, outcomes = found_in("h200.jsonl")
    found = cases.make_cases(outcomes, environments[0].devices, {})
    titles = [column.title for column in cases.COLUMNS]
    assert all(len(case.text) == len(case.numbers) == len(titles) for case in found.cases)
    tiled = [case for case in found.cases if case.text[0] == "tiled" and case.n == 4096]
    [fastest] = [case for case in tiled if case.is_fastest]
    row = dict(zip(titles, fastest.text, strict=True))
    assert row["time"] == "15.74 ms"
    assert row["rate"] == "8.73 TFLOP/s"
    assert fastest.low <= 1 <= fastest.high
    work = {case.n: case.numbers[titles.index("size")] or 0 for case in found.cases if case.n}
    assert all(work.values()), "the table sorts sizes by their work"


def test_views_keep_apart_what_cannot_be_compared() -> None:
    environments, outcomes = found_in("h200-dot.jsonl")
    found = cases.make_cases(outcomes, environments[0].devices, {})
    labels = [view.label for view in found.views]
    assert labels[0].endswith("uniform inputs"), "the one with most sizes comes first"
    assert len(set(labels)) == len(labels) == 3
    assert all(case.view < len(labels) for case in found.cases)


def test_the_front_is_what_nothing_beats_twice() -> None:
    speeds = {
        "fast": (1.0, 1e-3), "as fast": (1.0, 1e-3), "exact": (9.0, 1e-9),
        "both worse": (9.5, 1e-2), "between": (3.0, 1e-6), "as exact, but slower": (4.0, 1e-6),
    }  # fmt: skip
    found = [square(name, 64, *speed) for name, speed in speeds.items()]
    for first in ("fast", "as fast"):  # of two equal ones
        shown = cases.make_cases(found, [], {}).cases
        assert {case.text[0] for case in shown if case.on_front} == {first, "between", "exact"}
        found[:2] = found[1::-1]


# Samples


def test_samples_are_microseconds() -> None:
    timing = records.timing(samples_ns=(1000.0, 2000.4, 1234.567))
    [case] = cases.make_cases([records.outcome(cold=timing)], [], {}).cases
    [series] = case.series
    assert (series.mode, series.values) == ("cold", [1.0, 2.0004, 1.2346])


# Findings


def test_comparisons_are_tables() -> None:
    compared = tables.compared(baseline_name="a", candidate_name="b")
    verdicts = findings.make_findings([(compared, [])], [])["verdicts"].html
    for part in ("h3>candidate b against baseline a</h3", "p>cuda · A GPU</p", "p>1 SLOWER</p"):
        assert f"<{part}>" in verdicts


def test_an_explanation_belongs_to_the_views_of_its_case() -> None:
    contents = reading.Contents(ROOT / "docs" / "examples" / "explain.json")
    [(explained, _)] = contents.findings
    shown = cases.make_cases(contents.outcomes, [], {}).ranked
    made = findings.make_findings([(explained, [])], shown)["explanations"].html
    assert made.startswith('<div data-views="0"><h3>tiled TILE=16 at 1000')


# The document


@needs_page
@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_every_committed_file_makes_a_page(path: Path) -> None:
    environments, outcomes = record_files.read(path)
    page = document.page(outcomes, environments)
    data = data_of(page)
    assert len(data["cases"]) == len(outcomes)
    assert data["sections"][0] == "summary"
    assert data["sections"][-1] == "results"
    assert "http-equiv" in page
    assert document.page(outcomes, environments) == page


@needs_page
def test_no_text_of_a_record_is_markup() -> None:
    outcomes = [
        square(HOSTILE, 64, 1.0, params={HOSTILE: 1}, notes=(HOSTILE,)),
        records.outcome(HOSTILE, status="wrong", reason=HOSTILE, device=HOSTILE),
    ]
    about = records.environment(argv=("run", HOSTILE), devices=(records.device(name=HOSTILE),))
    page = document.page(outcomes, [about])
    assert "<img src=x" not in page
    assert "onerror=alert(1)&gt;" in page
    assert page.count("</script>") == 3
    assert any("<img" in case["text"][0] for case in data_of(page)["cases"])


@needs_page
def test_an_empty_file_makes_a_page() -> None:
    assert data_of(document.page([], []))["sections"] == ["summary", "results"]


@needs_page
def test_500_cases_with_samples_stay_below_3_megabytes() -> None:
    draw = random.Random(1)
    params = {"BM": 128, "BN": 256, "BK": 8, "WM": 64, "WN": 64, "TM": 8}
    few = [
        square(
            f"kernel-{i % 50}", 64 * (1 + i // 50), 1.0, params=params | {"STAGES": i},
            cold=records.timing(samples_ns=tuple(draw.gauss(1e6, 1e4) for _ in range(400))),
            notes=("a note as long as they are",),
        )
        for i in range(500)
    ]  # fmt: skip
    assert len(document.page(few, [tables.environment()]).encode()) < 3e6


def test_json_in_a_script_tag() -> None:
    text = document.embedded({"a": "</script><!--\u2028 &", "share": 1e308 * 100})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--\ufffd &", "share": None}


# The command


@needs_page
@pytest.mark.parametrize(
    ("command", "section"), [("compare naive-2d --max-time 0.01", "verdicts"), ("blocks", "blocks")]
)
def test_findings_add_sections(
    command: str, section: str, matbench: Matbench, tmp_path: Path
) -> None:
    page = tmp_path / "p.html"
    matbench(*command.split(), "tiled", "--set", "TILE=8", "--sizes", "20", "--page", page)
    assert f'<a href="#{section}">' in page.read_text(encoding="utf-8")
