"""The live display: what it says at one moment, and how it fits the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from support.records import outcome, timing

from matbench.analysis import ranking
from matbench.model import Problem
from matbench.records.outcome import Claims
from matbench.show.progress import Leader, Progress, failure, places

PLACES = [
    Leader("64", "naive-2d TILE=32", "14.5 GFLOP/s"),
    Leader("1000", "warp-tiled BM=128 BN=128 TM=8", "7.25 TFLOP/s"),
    Leader("1000, float64", "double-sums", "312 GFLOP/s"),
]
STATE = Progress(18, 7, 41.9, 3723.0, "timing", ["tiled TILE=16 at 1000"], PLACES)


def drawn(
    state: Progress, width: int = 80, height: int = 24, *, colours: bool = False
) -> list[str]:
    file = io.StringIO()
    console = Console(
        file=file, width=width, height=height, force_terminal=True, no_color=not colours,
        color_system="standard" if colours else None, highlight=False, markup=False,
    )  # fmt: skip
    console.print(state)
    return file.getvalue().splitlines()


def test_everything_on_a_usual_terminal() -> None:
    bar, *lines = drawn(STATE, colours=True)
    assert "━" * 10 in bar
    assert bar.endswith(" 7/18  0:41  1:02:03 left")
    assert [line.replace("\x1b[2m", "").replace("\x1b[0m", "") for line in lines] == [
        "timing     tiled TILE=16 at 1000",
        "fastest so far",
        "           64  naive-2d TILE=32               14.5 GFLOP/s",
        "         1000  warp-tiled BM=128 BN=128 TM=8  7.25 TFLOP/s",
        "1000, float64  double-sums                     312 GFLOP/s",
    ]


@pytest.mark.parametrize("height", range(1, 12))
@pytest.mark.parametrize("width", [20, 40, 43, 60, 200])
def test_it_fits_any_terminal(width: int, height: int) -> None:
    lines = drawn(STATE, width, height)
    assert max(map(cell_len, lines)) <= width
    assert len(lines) <= max(2, height - 1)
    assert "7/18" in lines[0]
    assert lines[1].startswith("timing     tiled"[:width])
    assert not [line for line in lines if not line.strip()]


def test_a_narrow_terminal_keeps_sizes_and_speeds() -> None:
    assert drawn(STATE, 40)[3:] == [
        "           64  naive-2d T…  14.5 GFLOP/s",
        "         1000  warp-tiled…  7.25 TFLOP/s",
        "1000, float64  double-sums   312 GFLOP/s",
    ]


def test_a_low_terminal_keeps_the_largest_sizes() -> None:
    assert drawn(STATE, height=5)[2:] == [
        "… 2 more",
        "1000, float64  double-sums  312 GFLOP/s",
    ]
    assert len(drawn(STATE, height=6)[2:]) == 3  # all of them, without the heading
    assert drawn(STATE, height=7)[2] == "fastest so far"
    assert drawn(STATE, height=3)[2:] == []


def test_without_colours_brackets_show_the_end_of_the_bar() -> None:
    assert drawn(Progress(2, 1, 0))[0].startswith("[ ━━━")
    assert drawn(Progress(2, 1, 0))[0].index("]") == 43
    assert "[" not in drawn(Progress(2, 1, 0), colours=True)[0].replace("\x1b[", "")
    assert drawn(Progress(2, 1, 5, 9), width=20) == ["1/2  0:05  0:09 left"]


def test_nothing_is_said_that_is_not_known() -> None:
    [bar] = drawn(Progress(None, 0, 75))
    assert bar.endswith("] 1:15")
    assert "left" not in drawn(Progress(10, 1, 75))[0]
    assert "0:01 left" in drawn(Progress(10, 9, 75, 1.9))[0]
    assert "left" not in drawn(Progress(10, 9, 75, 0.9))[0]  # it takes longer than expected
    assert drawn(Progress(10, 1, 75, labels=["the device's limits"]))[1:] == ["the device's limits"]


def test_numbers_do_not_move_while_they_grow() -> None:
    first, later = (drawn(Progress(120, done, 60))[0] for done in (9, 110))
    assert first.index("/120") == later.index("/120")


def test_only_the_fastest_without_claims_are_named() -> None:
    at: dict[str, Any] = {"problem": Problem(256, 256, 256)}
    leaders = ranking.best_of(
        [
            outcome("tiled", 2.0, **at),
            outcome("rounds", 0.1, claims=Claims(precision="tf32"), **at),
            outcome("liar", status="wrong", reason="all", **at),
            outcome("naive", 4.0, **at),
            outcome("doubles", 8.0, claims=Claims(result="float64", precision="float64"), **at),
        ]
    )
    assert places(leaders) == [
        Leader("256", "tiled TILE=16", "16.8 GFLOP/s"),
        Leader("256, float64", "doubles TILE=16", "4.19 GFLOP/s"),
    ]


def test_others_that_may_be_the_fastest_are_counted() -> None:
    found = [outcome(name, ms) for name, ms in (("a", 2.0), ("b", 2.1), ("c", 2.2), ("d", 4.0))]
    assert [place.name for place in places(ranking.best_of(found))] == [
        "a TILE=16 or one of 2 others"
    ]
    assert [p.name for p in places(ranking.best_of(found[1::-1]))] == ["a TILE=16 or another"]


def test_bytes_are_counted_where_the_table_counts_bytes() -> None:
    problem = Problem(1, 1_000_000, 1, workload="dot", inputs="signed")
    [place] = places(ranking.best_of([outcome("dot-tree", 1.0, problem=problem)]))
    assert place.rate == "8.00 GB/s"


def test_a_failure_is_one_safe_line() -> None:
    found = failure(
        outcome("li\x1bar", status="wrong", reason="12 of 9 elements \x1b[2J wrong\nfirst C[0, 0]")
    )
    assert found.plain == "wrong li\ufffdar TILE=16 at 17x33x65: 12 of 9 elements \ufffd[2J wrong"
    assert found.spans[0].style == "bold red"
    assert failure(outcome(status="failed", reason=None)).plain.startswith("failed tiled TILE=16")


def test_names_are_made_safe() -> None:
    made = outcome("ti\x1bled", cold=timing(1.0))
    state = Progress(1, 0, 0, labels=["ti\x1b\nled"], fastest=places(ranking.best_of([made])))
    assert [line for line in drawn(state) if "led" in line] == [
        "ti\ufffd led", "17x33x65  ti\ufffdled TILE=16  72.9 MFLOP/s",
    ]  # fmt: skip
