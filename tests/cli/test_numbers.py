"""Numbers on the command line: ASCII digits, without underscores."""

from __future__ import annotations

import pytest
from support.cli import Refusal


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "tiled", "--sizes", "٦٤"),
        ("run", "tiled", "--set", "TILE=١٦"),
        ("run", "tiled", "--seed", "٣"),
        ("run", "tiled", "--seed", "1_0"),
        ("run", "tiled", "--max-time", "٣"),
        ("run", "tiled", "--max-time", "1_0"),
        ("run", "tiled", "--timeout", "３"),
        ("run", "tiled", "--build-timeout", "٣"),
        ("run", "tiled", "--uncertainty", "٥%"),
        ("run", "tiled", "--device", "٠"),
        ("compare", "tiled", "naive-2d", "--threshold", "٥%"),
        ("compare", "tiled", "naive-2d", "--fail-if-slower", "1_0%"),
        ("tune", "tiled", "--budget", "١٠s"),
        ("explain", "tiled", "--arch", "sm_٩٠"),
        ("explain", "tiled", "--arch", "٩.٠"),
    ],
)
def test_digits_of_other_scripts_are_refused(
    nothing_runs: None, refusal: Refusal, arguments: tuple[str, ...]
) -> None:
    assert arguments[-1].removeprefix("TILE=") in refusal(*arguments)


@pytest.mark.parametrize("share", ["5%", "0.05", " 5e-2 ", "+5%"])
def test_shares_are_written_as_before(nothing_runs: None, refusal: Refusal, share: str) -> None:
    assert "no such" in refusal("diff", "a.jsonl", "b.jsonl", "--threshold", share).lower()
