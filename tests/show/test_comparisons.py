"""Comparisons: which kernel is faster and by how much, in words."""

from __future__ import annotations

import json

import msgspec
import pytest
from rich.cells import cell_len
from support.tables import compared, environment, line_of, rows, shown

from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Claims
from matbench.show import comparisons
from matbench.show.formats import text

COMPARED = [compared(), compared(0.068, 256), compared(None, 9000)]


@pytest.mark.parametrize("width", [None, 100, 80, 60, 40])
def test_a_comparison_says_who_is_what_and_how_it_ended(width: int | None) -> None:
    page = shown(comparisons.report(COMPARED, [environment()]), width)
    flat = " ".join(page.split())
    assert "candidate shared-row against baseline tiled" in flat
    assert "cuda · A GPU" in flat
    assert "driver 580.1 · CUDA 13.0" in flat
    assert "SLOWER" in line_of(page, "1000 ", "1.39 to 1.41 × slower")
    assert "FASTER" in line_of(page, "256 ", "× faster")
    assert "no verdict" in line_of(page, "9000 ", "–")
    assert "needs K * 4 <= 49152 (K = 9000)" in flat
    assert flat.endswith("1 SLOWER, 1 FASTER, 1 without a verdict")
    assert "interval lies above" not in flat, "the words say it"
    assert ("1.40 × slower" in page) == (width is None or width >= 60)
    if width:
        assert max(map(cell_len, page.splitlines())) <= width
    else:
        assert "parameters: TILE=16 / THREADS=256" in page
        assert "250.0 µs" in page
        assert "samples: 24 + 24" in page
        assert "2.2e-6 / 6.2e-8" in page


def claiming(record: ComparisonRecord, **claims: Claims) -> ComparisonRecord:
    """The record with other claims for its two sides."""
    sides = {}
    for side, found in claims.items():
        outcome = getattr(record, side)
        case = msgspec.structs.replace(outcome.case, claims=found)
        sides[side] = msgspec.structs.replace(outcome, case=case)
    return msgspec.structs.replace(record, **sides)


def test_claims_stand_with_the_side_that_makes_them() -> None:
    tf32 = Claims(precision="tf32")
    one = claiming(compared(0.068), candidate=tf32)
    page = shown(comparisons.report([one], [environment()]))
    assert line_of(page, "FASTER¹")
    assert "¹ claims of shared-row: inputs rounded to tf32" in page
    assert "claims of" not in shown(comparisons.report(COMPARED, [environment()]))
    both = claiming(compared(), baseline=tf32, candidate=tf32)
    assert comparisons.claimed(both) == "claims of both: inputs rounded to tf32"
    apart = claiming(compared(), baseline=tf32, candidate=Claims(deterministic=False))
    assert comparisons.claimed(apart) == (
        "claims of tiled: inputs rounded to tf32 · claims of shared-row: not deterministic"
    )


def test_an_undecided_one_says_why() -> None:
    undecided = compared(1.001, verdict="UNDECIDED", reason="the interval holds 1 after 24 pairs")
    page = shown(comparisons.report([undecided]))
    assert "1.001 × slower" in page
    assert "1.009 × faster to 1.01 × slower" in page
    assert "UNDECIDED: the interval holds 1 after 24 pairs" in page


def test_a_comparison_in_other_formats() -> None:
    table = comparisons.report(COMPARED)
    found = rows(table)
    assert [row["verdict"] for row in found] == ["SLOWER", "FASTER", ""]
    assert (float(found[1]["ratio"]), float(found[0]["ratio_low"])) == (0.068, 1.4 * 0.99)
    assert (found[0]["baseline_params"], found[0]["baseline_samples"]) == ("TILE=16", "24")
    assert found[2]["p_value"] == ""
    objects = json.loads(text(table, "json"))
    assert [one["type"] for one in objects] == ["comparison"] * 3
    assert objects[1]["comparison"]["ratio"] == 0.068
    assert objects[2]["comparison"] is None
    assert "| 256 " in text(table, "github")
    assert text(comparisons.report([]), "plain") == "nothing to compare"


def test_files_compared_name_their_kernels() -> None:
    table = comparisons.report(
        [
            compared(1.4, size, baseline_name="old.jsonl", candidate_name="new", kernel=kernel)
            for kernel in ("tiled", "kahan")
            for size in (256, 1000)
        ]
    )
    (section,) = table.sections
    assert [row.cells[:2] for row in section.rows] == [
        ("256", "tiled"), ("256", "kahan"), ("1000", "tiled"), ("1000", "kahan"),
    ]  # fmt: skip


def test_what_no_size_could_time_is_one_row() -> None:
    page = shown(comparisons.report([compared(), *(compared(None, n) for n in (9000, 9500))]))
    assert page.count("no verdict") == 1
    assert "9000, 9500" in line_of(page, "no verdict")
    assert "needs K * 4 <= 49152 (K = 9000…9500)" in " ".join(page.split())
    assert page.endswith("1 SLOWER, 2 without a verdict")


def test_other_devices_and_pairs_are_other_sections() -> None:
    other = compared(candidate_name="naive")
    assert len(comparisons.report([compared(), other, compared(size=64)]).sections) == 2


def test_a_note_of_every_row_stands_once_above_the_table() -> None:
    def page(*notes: tuple[str, ...]) -> list[str]:
        sizes = (256, 1000, 9000)
        ratios = (1.4, 1.2, None)
        found = [
            msgspec.structs.replace(compared(ratio, size), notes=own)
            for ratio, size, own in zip(ratios, sizes, notes, strict=True)
        ]
        return shown(comparisons.report(found, [environment()])).splitlines()

    everywhere = page(("as assumed",), ("as assumed", "busy"), ())
    title = next(i for i, line in enumerate(everywhere) if "the candidate is" in line)
    assert [i < title for i, line in enumerate(everywhere) if "as assumed" in line] == [True]
    assert sum("¹ busy" in line for line in everywhere) == 1
    once = page(("as assumed",), (), ())
    assert [i < title for i, line in enumerate(once) if "as assumed" in line] == [False]
