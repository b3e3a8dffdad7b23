"""Blocks of code, what follows them, and loops."""

from __future__ import annotations

import pytest
from support.machine_code import code_of

from matbench.features.explain.sass import flow


@pytest.mark.parametrize(
    ("first", "follows"),
    [
        ("BRA 0x20", (0x20,)),
        ("@PT BRA 0x20", (0x20,)),
        ("@!PT BRA 0x20", (0x20, 0x10)),
        ("@P0 BRA 0x20", (0x20, 0x10)),
        ("BRA P0, 0x20", (0x20, 0x10)),
        ("BRA 0x10", (0x10,)),
        ("EXIT", ()),
        ("@P0 EXIT", (0x10,)),
        ("BRX R2 -0x10", ()),
    ],
)
def test_what_follows_a_block(first: str, follows: tuple[int, ...]) -> None:
    found = code_of(first, "NOP", "NOP", "EXIT")
    assert found.graph[0].next == follows


def test_loops_in_loops() -> None:
    found = code_of("NOP", "NOP", "NOP", "@P0 BRA 0x20", "@P1 BRA 0x20", "@P2 BRA 0x10", "EXIT")
    outer, inner = {0x10, 0x20, 0x40, 0x50}, {0x20, 0x40}
    assert found.loops == (flow.Loop(0x10, frozenset(outer)), flow.Loop(0x20, frozenset(inner)))
