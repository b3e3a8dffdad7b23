"""Terminals of every width: no line is wider, and the least important column goes first."""

from __future__ import annotations

import io
import itertools
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from support.tables import MIXED, made, outcome, shown

from matbench.model import Problem, Skip
from matbench.records.outcome import Accuracy, BlockTimes
from matbench.show import terminal
from matbench.show.formats import text


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60, 50, 40])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    sweep = [
        outcome(name, ms * n**3 / 1e9, params=params, problem=Problem(n, n, n))
        for n in (256, 1000)
        for name, params, ms in (
            ("tiled-dynamic", {"TILE": 32}, 26.1),
            ("thread-1d", {"THREADS": 256}, 88),
            ("naive-2d", {"TILE": 8}, 141),
        )
    ]
    table = made(*sweep, *MIXED)
    page = shown(table, width)
    assert max(map(cell_len, page.splitlines())) <= width
    for section in table.sections:
        time = [column.title for column in section.columns].index("time")
        for row in section.rows:
            assert row.cells[time] in page  # a time is never broken
            assert row.status in page
            for note in (row.reason, *row.notes):
                assert "".join(note.split()) in "".join(page.split())


def test_columns_go_the_least_important_first() -> None:
    exact = Accuracy(6.4e-8, 2.2e-8, 0.017)
    table = made(*MIXED[:3], outcome("exact", 20, params={"TILE": 8}, accuracy=exact))
    titles = [column.title for column in table.sections[0].columns]
    kept = []
    for width in range(130, 40, -1):
        header = next(line for line in shown(table, width).splitlines() if "kernel" in line)
        kept.append([title for title in titles if title in header])
    gone = [
        title for wide, narrow in itertools.pairwise(kept) for title in wide if title not in narrow
    ]
    assert kept[0] == titles
    assert gone == [
        "of bound", "avg rel err", "per block", "× slowest", "max rel err", "GFLOP/s", "±",
    ]  # fmt: skip
    assert kept[-1] == ["kernel", "parameters", "time"]


def test_without_a_width_reasons_wrap_and_nothing_is_cut() -> None:
    reason, note = "because " * 100, "note that " * 100
    skip = Skip("unavailable", reason)
    page = shown(
        made(outcome("x", 1, notes=(note,)), outcome("y" * 200, status="skipped", skip=skip))
    )
    flat = " ".join(page.split())
    assert reason.strip() in flat
    assert note.strip() in flat
    assert "y" * 200 in page
    short = shown(made(outcome("x", 1, notes=(note,)), outcome("y", status="skipped", skip=skip)))
    [rule] = [line for line in short.splitlines() if line.startswith("─")]
    assert max(len(line.rstrip()) for line in short.splitlines()) <= len(rule) <= 180


def test_one_enormous_text_does_not_make_every_row_as_wide() -> None:
    long = "x-" * 50_000
    evil = outcome(long, 1, params={long: 1}, status="failed", reason=long, notes=(long,))
    table = made(evil, *(outcome(f"k{n}", 1 + n) for n in range(100)))
    for page in (shown(table), shown(table, 40), text(table, "plain")):
        assert len(page) < 5e6
        assert long[:1900] in "".join(page.split())  # what is kept of its reason, once


def test_colour_only_repeats_the_words() -> None:
    console = Console(width=120, force_terminal=True, color_system="truecolor", file=io.StringIO())
    with console.capture() as capture:
        for part in terminal.renderables(made(*MIXED), 120):
            console.print(part)
    plain = re.sub(r"\x1b\[[\d;]*m", "", capture.get())
    assert "\n".join(line.rstrip() for line in plain.splitlines()) == shown(made(*MIXED), 120)
    coloured = re.findall(r"\x1b\[[\d;]*3[0-7]m([^\x1b]*)", capture.get())
    assert {words.split(":")[0].strip(" ¹²³⁴") for words in coloured if words.strip()} == {
        "wrong", "failed", "skipped",
    }  # fmt: skip


def test_a_mark_is_explained_where_it_is_seen() -> None:
    slowed = (BlockTimes(median_ns=1e6, perturbation=0.05 + n / 100) for n in (1, 2, 3))
    table = made(*(outcome(f"k{n}", 1 + n, blocks=blocks) for n, blocks in enumerate(slowed)))
    for page in (shown(table), text(table, "plain"), text(table, "github")):
        assert page.count("more than 5% (8.0% at worst)") == 1
    narrow = shown(table, 40)
    assert "per block" not in narrow, "neither the column nor what its mark means"
    assert "more than 5%" not in shown(made(outcome("x", 1)))
