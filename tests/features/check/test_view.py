"""Probes: one line per shape, and the reasons below."""

from __future__ import annotations

from typing import Any

from support.tables import GPU, line_of, outcome, printed

from matbench.features.check import view as probes
from matbench.features.check.probe import Need, Probe
from matbench.model import Problem, Skip
from matbench.records.outcome import Outcome


def probe(size: int, tile: int = 16, **changes: Any) -> Probe:
    found: Outcome = outcome(
        "tiled", device=GPU, params={"TILE": tile}, problem=Problem(size, size, size), **changes
    )
    return Probe(purpose=f"one of {size}", outcome=found)


def shown(*found: Probe) -> str:
    return printed(probes.renderables("tiled", GPU, found))


def test_shapes_are_rows_and_parameters_columns() -> None:
    page = shown(
        probe(15), probe(15, 32, status="wrong", reason="C[0] is 1"), probe(16), probe(16, 32)
    )
    header = line_of(page, "M×N×K")
    assert header.split() == ["M×N×K", "inputs", "probes", "TILE=16", "TILE=32"]
    assert line_of(page, "one of 15").split() == [
        "15", "uniform", "one", "of", "15", "right", "WRONG",
    ]  # fmt: skip
    assert "TILE=32 at 15, uniform: C[0] is 1" in page
    assert page.endswith("tiled passed 3 of 4 probes on cuda:0 A GPU")


def test_reasons_that_differ_in_numbers_are_told_once_the_worst_first() -> None:
    page = shown(
        probe(15, status="failed", reason="killed"),
        *(probe(n, status="wrong", reason=f"{n} of 400 elements") for n in (20, 30, 40)),
    )
    assert page.count("elements") == 1
    told = "TILE=16 at 20, uniform: 20 of 400 elements … and 2 more like it"
    assert page.index(told) < page.index("TILE=16 at 15, uniform: killed")


def test_what_claims_are_needed_for_stands_between_what_is_wrong_and_the_summary() -> None:
    needs = [
        Need(key="where", declared="where N > 3", needed=None, finding="not tried"),
        Need(key="error_constant", declared="error_constant = 8", needed=True, finding="needs 2"),
    ]
    bad = probe(15, status="wrong", reason="C[0] is 1")
    page = printed(probes.renderables("tiled", GPU, [bad, probe(16)], needs))
    assert page.splitlines()[-4:] == [
        "TILE=16 at 15, uniform: C[0] is 1",
        "where N > 3: not tried",
        "error_constant = 8: needs 2",
        "tiled passed 1 of 2 probes on cuda:0 A GPU",
    ]


def test_what_could_not_run_says_why() -> None:
    skips = [
        probe(n, status="skipped", skip=Skip("condition", "N <= 8", {"N": n})) for n in (15, 16)
    ]
    assert shown(*skips).endswith(
        "tiled: no probe could run on cuda:0 A GPU: needs N <= 8 (N = 15…16)"
    )
    assert shown(probe(3), *skips).endswith(
        "passed 1 of 1 probes on cuda:0 A GPU, 2 skipped: needs N <= 8 (N = 15…16)"
    )
    assert shown().endswith("no probe could run on cuda:0 A GPU")
