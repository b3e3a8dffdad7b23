"""Charts of speed and error over n say what they show and what they omit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.ladder import LADDER, timed
from support.pictures import needs_matplotlib, picture, texts, words

from matbench.errors import UsageError
from matbench.model import Problem
from matbench.records.outcome import Accuracy, Claims, Outcome
from matbench.show.pictures import chart


@needs_matplotlib
def test_a_chart_says_what_it_shows_and_what_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    chart.draw(LADDER, path, "H200 <&> $x$")
    svg = path.read_text(encoding="utf-8")
    said = words(svg)
    for word in ("fast", "slow", "library", "GFLOP/s", "largest relative error", "H200 <&> $x$"):
        assert word in said
    assert "1 case of another shape is not shown" in said
    assert "broken" not in said and "thin" not in said
    chart.draw(LADDER, path, "H200 <&> $x$")
    assert path.read_text(encoding="utf-8") == svg
    # Other figures make another picture, even if its words are the same.
    assert chart.digest(LADDER) in svg
    assert chart.digest(LADDER[1:]) == chart.digest(LADDER)
    assert chart.digest([*LADDER, timed("slow", 1000, 9)]) not in svg
    chart.draw(LADDER, tmp_path / "chart.png", "")
    assert picture(tmp_path / "chart.png").shape[1] > 1000


@needs_matplotlib
def test_lines_with_claims_have_hollow_markers(tmp_path: Path) -> None:
    narrow = [timed("narrow", n, 1, claims=Claims(precision="tf32")) for n in (1000, 2000)]
    said = "hollow: with claims, so by weaker checks"
    assert said in words(drawn([*LADDER, *narrow], tmp_path / "c.svg"))
    assert said not in words(drawn(LADDER, tmp_path / "c.svg"))


def drawn(outcomes: list[Outcome], path: Path) -> str:
    chart.draw(outcomes, path, "")
    return path.read_text(encoding="utf-8")


def of(workload: str, n: int, milliseconds: float, **more: Any) -> Outcome:
    inputs = more.pop("inputs", "ramp")
    problem = Problem(1, n, 1, inputs=inputs, workload=workload)
    return timed("k", n, milliseconds, problem=problem, **more)


@needs_matplotlib
def test_a_chart_names_inputs_and_how_they_were_timed(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    assert "cold samples · uniform inputs" in words(drawn(LADDER, path))
    mixed = [*LADDER, timed("slow", 2000, 9, problem=Problem(2000, 2000, 2000, inputs="signed"))]
    said = words(drawn(mixed, path))
    assert "slow · signed inputs" in said and "slow · uniform inputs" in said
    assert "cold samples · " not in said


@needs_matplotlib
def test_large_sizes_are_powers_of_two_and_few(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    svg = drawn([of("dot", n, 1) for n in (33792, 2**20, 2**28)], path)
    named = texts(svg)
    assert {"33,792", "2²⁰", "2²⁸"} <= named
    assert not [text for text in named if "e+" in text]
    svg = drawn([of("dot", n, 1) for p in range(28) for n in (2**p, 2**p + 1)], path)
    assert 5 <= len([text for text in texts(svg) if re.fullmatch("2[⁰¹²³⁴⁵⁶⁷⁸⁹]+", text)]) <= 14
    svg = drawn([timed("a", 1000, 1), timed("a", 1024, 1), timed("a", 1025, 1)], path)
    assert {"1000", "1025"} <= texts(svg)


@needs_matplotlib
@pytest.mark.parametrize("ratio", [1.0, 1.001, 1.5, 7.0, 1e3, 1e9])
def test_speeds_can_be_read_however_near_they_are(tmp_path: Path, ratio: float) -> None:
    svg = drawn([timed("a", 1000, 10), timed("a", 1001, 10 / ratio)], tmp_path / "c.svg")
    numbers = {text for text in texts(svg) if re.fullmatch(r"[\d,.]+", text)} - {"1000", "1001"}
    assert len(numbers) >= 3


@needs_matplotlib
def test_exact_results_get_no_picture_of_errors(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    for outcomes in (
        [of("reverse", n, 1, error=None) for n in (2**10, 2**20)],
        [of("dot", n, 1, error=0.0) for n in (2**10, 2**20)],
    ):
        said = words(drawn(outcomes, path))
        assert "every result is exact" in said
        assert "relative error" not in said


@needs_matplotlib
def test_an_error_of_nothing_is_drawn_at_the_edge(tmp_path: Path) -> None:
    path = tmp_path / "c.svg"
    svg = drawn(LADDER, path)
    assert "an error of 0 is drawn at the bottom edge" in words(svg)
    unknown = Accuracy(None, None, None)
    untold = [o if o.max_rel_err else msgspec.structs.replace(o, accuracy=unknown) for o in LADDER]
    without = drawn(untold, path)
    assert "bottom edge" not in words(without)
    assert svg.count("<use") == without.count("<use") + 1


@needs_matplotlib
@pytest.mark.parametrize(("outcomes", "name", "told"), [
    ([], "c.svg", "nothing to draw"),
    ([LADDER[-1], LADDER[-2]], "c.svg", "nothing to draw"),
    (LADDER, "c.pdf", "must end in .svg or .png"),
    (LADDER, "no/c.svg", "no folder"),
    ([LADDER[0], timed("d", 8, 1, problem=Problem(1, 8, 1, workload="dot"))], "c.svg", "workload"),
])  # fmt: skip
def test_charts_that_cannot_be_drawn(
    outcomes: list[Outcome], name: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=told):
        chart.draw(outcomes, tmp_path / name, "")
    assert list(tmp_path.iterdir()) == []
