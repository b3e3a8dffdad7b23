"""How a history is shown, as a table and as a chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.histories import Simulated, searched
from support.records import environment

from matbench.features.charts import drawing
from matbench.features.history import view
from matbench.features.history.search import HistorySearch


def history(*times: float, bisect: bool = False) -> HistorySearch:
    return searched(Simulated(times), bisect=bisect)[1]


def table(search: HistorySearch) -> list[tuple[Any, ...]]:
    """Commit, the version it was compared with if that is not the one above, status, emphasis."""
    [section] = view.report(search, [environment()], len(search.steps)).sections
    at = [column.title for column in section.columns].index("against")
    return [(row.cells[0], row.cells[at], row.status, row.best) for row in section.rows]


def test_rows_say_what_was_compared_with_what() -> None:
    assert table(history(1.0, 0, 0.5, 1.0)) == [
        ("0", "–", "", False), ("1", "–", "wrong", False), ("2", "0", "FASTER", False),
        ("3", "–", "SLOWER", True),
    ]  # fmt: skip
    found = table(history(*[1.0] * 6, 2.0, 2.0, bisect=True))
    assert ("6", "–", "SLOWER", True) in found
    assert found[0] == ("0", "–", "", False)
    assert len(found) < 8


def test_a_verdict_is_that_of_the_margin() -> None:
    """5% is SAME by a margin of 10%."""
    report = view.report(history(1.0, 1.05), [environment()], 2)
    assert [row.status for row in report.sections[0].rows] == ["", "SAME"]


def test_long_subjects_are_cut() -> None:
    search = history(1.0, 1.5)
    search.steps[1].subject = "x" * 33
    search.steps[0].subject = "y" * 32
    [section] = view.report(search, [environment()], 2).sections
    at = [column.title for column in section.columns].index("subject")
    assert [row.cells[at] for row in section.rows] == ["y" * 32, f"{'x' * 31}…"]
    assert view.answer(search)[1].endswith("x" * 33)


def test_the_chart_shows_the_time_as_a_multiple_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(drawing, "draw", lambda *arguments: drawn.append(arguments))
    view.draw(history(1.0, 1.3, 0, 0.65, 1.3), tmp_path / "x.svg", "title")
    [(_, spec, title, lines)] = drawn
    assert title == "title"
    assert lines[0] == "These commits made it slower by more than 10%:"
    points = spec["data"]["values"]
    assert [point["label"] for point in points] == ["0", "1", "3", "4"]
    assert [point["value"] for point in points] == pytest.approx([1, 1.3, 0.65, 1.3], rel=0.08)
    assert [point["marked"] for point in points] == [False, True, False, True]
    assert all(point["low"] <= point["value"] <= point["high"] for point in points)
    assert points[3]["low"] > 1.1 * points[2]["value"]
