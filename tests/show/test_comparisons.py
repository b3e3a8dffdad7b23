"""Comparisons: which kernel is faster and by how much, in words."""

from __future__ import annotations

import json

from support.tables import compared, rows

from matbench.show import comparisons
from matbench.show.formats import text

COMPARED = [compared(), compared(0.068, 256), compared(None, 9000)]


def test_a_comparison_in_other_formats() -> None:
    table = comparisons.report(COMPARED)
    found = rows(table)
    assert [row["verdict"] for row in found] == ["SLOWER", "FASTER", ""]
    assert (float(found[1]["ratio"]), float(found[0]["ratio_low"])) == (0.068, 1.4 * 0.99)
    assert (found[0]["baseline_params"], found[0]["baseline_samples"]) == ("TILE=16", "24")
    assert found[2]["ratio_low"] == ""
    objects = json.loads(text(table, "json"))
    assert [one["type"] for one in objects] == ["comparison"] * 3
    assert objects[1]["comparison"]["ratio"] == 0.068
    assert objects[2]["comparison"] is None
    assert "| 256 " in text(table, "github")
    assert text(comparisons.report([]), "plain") == "nothing to compare"
