"""What the live display of a command says in lines."""

from __future__ import annotations

from support.records import outcome

from matbench.show.progress import failure, line


def test_a_failure_is_one_safe_line() -> None:
    found = failure(
        outcome("li\x1bar", status="wrong", reason="12 of 9 elements \x1b[2J wrong\nfirst C[0, 0]")
    )
    assert found.plain == "wrong li\ufffdar TILE=16 at 17x33x65: 12 of 9 elements \ufffd[2J wrong"
    assert found.spans[0].style == "bold red"
    assert failure(outcome(status="failed", reason=None)).plain.startswith("failed tiled TILE=16")


def test_names_are_made_safe() -> None:
    assert line("ti\x1b\nled").plain == "ti\ufffd led"
