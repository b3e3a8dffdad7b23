"""Tables of outcomes: sections, rows and notes, and what they omit."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from support import any_record
from support.tables import (
    made,
    outcome,
    shown,
    timing,
)

from matbench.analysis import repetitions
from matbench.analysis.ranking import Ranked
from matbench.records import resuming
from matbench.records.outcome import Outcome
from matbench.show import outcomes
from matbench.show.formats import text


@given(
    found=st.lists(any_record.outcomes(), max_size=4), width=st.sampled_from((None, 120, 40, 10))
)
def test_whatever_the_outcomes_the_best_was_measured_on_that_device(
    found: list[Outcome], width: int | None
) -> None:
    table = outcomes.report(found, [])
    for ranked in table.rows():
        assert isinstance(ranked, Ranked)
        if ranked.best or ranked.times_slowest is not None:
            assert ranked.outcome.status == "measured"
            assert ranked.outcome.median_ns is not None
            assert ranked.outcome.median_ns > 0
    kept = repetitions.merged(resuming.without_retried(found))
    measured = sum(one.status == "measured" for one in kept)
    assert table.footer.startswith("no" if not found else str(measured))
    shown(table, width)
    shown(outcomes.report(found, [], fastest=True), 40)


def test_json_has_the_records_as_they_are() -> None:
    """No note that follows from samples, and attempts that failed."""
    drifting = timing(1, samples_ns=tuple(1e6 * (1 + n / 500) for n in range(30)))
    table = made(outcome("x", status="failed", reason="killed"), outcome("x", 2, cold=drifting))
    assert "drifting" in text(table, "csv")
    assert "drifting" not in text(table, "json")
    assert len(json.loads(text(table, "json"))) == 3
