"""Searches: the best candidates in tables, all of them in records."""

from __future__ import annotations

import json
from typing import Any

from support.records import timing
from support.tables import environment, line_of, outcome, rows, shown

from matbench.features.tune import view as tuning
from matbench.records.comparison import Comparison
from matbench.records.outcome import Claims
from matbench.records.tuning import SearchSpace, TuningRecord
from matbench.show.formats import text

SPACE = SearchSpace(combinations=30_000, drawn=20_000, candidates=15, refused=3, merged=2)


def candidate(tile: int, ms: float, **changes: Any) -> TuningRecord:
    fields: dict[str, Any] = {
        "outcome": outcome("tiled", ms, params={"TILE": tile}),
        "round": 1,
        "tried": 14,
        "space": SPACE,
        "median_ratio": ms / 4,
    }
    return TuningRecord(**(fields | changes))


TURNS = Comparison(0.5, (0.49, 0.51), "FASTER", 1, (24, 24), "")
SEARCH = [
    candidate(32, 2, is_best=True, comparison=TURNS),
    *(candidate(n, 2 + n / 10) for n in range(1, 13)),
    candidate(16, 4, is_default=True, median_ratio=1.0),
]


def test_the_winner_comes_first_and_the_default_is_shown() -> None:
    page = shown(tuning.report(SEARCH, [environment()]))
    assert "tiled" in page.splitlines()[0]
    assert (
        "size 1000: 14 of 15 candidates tried; 3 of 20,000 combinations excluded, "
        "2 duplicates of another launch; sampled from 30,000"
    ) in page
    winner = line_of(page, "TILE=32 ")
    assert "2.00 × faster" in winner
    assert "1.96 to 2.04 × faster" in winner
    assert winner.endswith("winner")
    assert line_of(page, "TILE=16 ").endswith("default")
    assert "TILE=9 " in page
    assert "TILE=11 " not in page
    assert page.endswith("14 candidates measured")


def test_finalists_that_cannot_be_told_apart_are_named() -> None:
    def finalist(tile: int, ms: float, **changes: Any) -> TuningRecord:
        samples = tuple(ms * 1e6 * (1 + share) for share in (-0.003, 0.002, 0.001, -0.002, 0.002))
        cold = timing(samples_ns=samples, rounds=(1,) * 5)
        return candidate(
            tile, ms, outcome=outcome("tiled", params={"TILE": tile}, cold=cold), **changes
        )

    found = [
        finalist(32, 2.0, is_best=True), finalist(16, 2.002, is_default=True), finalist(8, 2.1),
        candidate(4, 2.0),
    ]  # fmt: skip
    page = shown(tuning.report(found, [environment()]))
    assert line_of(page, "TILE=32 ").endswith("winner")
    assert line_of(page, "TILE=16 ").endswith("as fast, default")
    assert "as fast" not in line_of(page, "TILE=8 ")
    assert "as fast" not in line_of(page, "TILE=4 "), "a quick look decides nothing"


def test_claims_of_the_kernel_stand_above() -> None:
    claims = Claims(error_constant=8.0, deterministic=False)
    found = [candidate(32, 2, outcome=outcome("split", 2, claims=claims))]
    page = shown(tuning.report(found, [environment()]))
    assert "claims: each product may be off by 8·2⁻²⁴; not deterministic" in page.splitlines()
    assert "claims:" not in shown(tuning.report(SEARCH, [environment()]))


def test_each_kernel_has_its_section() -> None:
    other = candidate(8, 3, outcome=outcome("naive", 3, params={"TILE": 8}))
    sections = tuning.report([*SEARCH, other], [environment()]).sections
    assert [section.heading[0] for section in sections] == ["tiled", "naive"]


def test_an_interrupted_search_has_no_winner() -> None:
    page = shown(tuning.report([candidate(32, 2, is_best=True, complete=False)], []))
    assert "best so far" in page
    assert "winner" not in page


def test_programs_get_every_candidate() -> None:
    table = tuning.report(SEARCH, [environment()])
    found = rows(table)
    assert len(found) == 14
    assert (found[0]["ratio"], found[0]["ratio_high"], found[0]["is_best"]) == (
        "0.5", "0.51", "true",
    )  # fmt: skip
    assert (found[1]["ratio"], found[1]["samples"], found[1]["median_ratio"]) == ("", "3", "0.525")
    objects = json.loads(text(table, "json"))
    assert [one["type"] for one in objects] == ["environment"] + ["tuning"] * 14
    empty = tuning.report([], [environment()])
    assert text(empty, "plain") == "no candidate could be measured"
