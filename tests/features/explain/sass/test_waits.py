"""Cycles of a pass with waits, for passes whose answer can be computed by hand."""

from __future__ import annotations

import random

import pytest
from support.golden import TableRegression
from support.machine_code import listing_of

from matbench.features.explain.sass.listing import function
from matbench.features.explain.sass.waits import WaitStep, pass_cycles, steps

PLAIN = WaitStep()
#: A fetch of 4 cycles that sets counter 0, and the instruction that needs it.
FETCH = WaitStep(is_memory=True, data=4, latency=29, sets=0)
USE = WaitStep(waits=(0,))
BARRIER = WaitStep(is_barrier=True)
READS_3_OF_A_BANK = WaitStep(even=3)


NAMED = {"plain": PLAIN, "fetch": FETCH, "use": USE, "barrier": BARRIER}


def told(question: str) -> str:
    """The cycles of a line such as `4 warps: fetch × 9, stall=4 + use × 2`."""
    warps, _, terms = question.partition(": ")
    path: list[WaitStep] = []
    for term in terms.split(", "):
        alike, _, times = term.partition(" × ")
        path += [*map(step, alike.split(" + "))] * int(times or 1)
    return f"{pass_cycles(path, int(warps.split()[0]), 1):g} cycles"


def step(text: str) -> WaitStep:
    pairs = (word.split("=") for word in text.split() if text not in NAMED)
    return NAMED.get(text) or WaitStep(**{name: int(value) for name, value in pairs})  # type: ignore[arg-type]


def test_cycles_are_known(table_regression: TableRegression) -> None:
    table_regression("passes.txt", told)


def test_another_block_fills_the_wait_at_a_barrier() -> None:
    """Alone a block waits at its barrier; two blocks together take less than twice as long."""
    path = [FETCH, USE] * 4 + [PLAIN] * 40 + [BARRIER]
    alone, both = pass_cycles(path, 8, 1), pass_cycles(path, 8, 2)
    assert 2 * 8 * len(path) / 4 <= both < 1.7 * alone


@pytest.mark.parametrize("seed", range(20))
def test_no_pass_takes_fewer_cycles_than_its_instructions(seed: int) -> None:
    """Four schedulers start one instruction per cycle each; timing begins and ends within one."""
    draw = random.Random(seed)
    kinds = [PLAIN, FETCH, USE, BARRIER, READS_3_OF_A_BANK, WaitStep(pipe=1, interval=2, stall=4)]
    path = draw.choices(kinds, k=12)
    warps, blocks = draw.randint(1, 5), draw.randint(1, 2)
    assert pass_cycles(path, warps, blocks) >= (warps * blocks * len(path) - 8) / 4


def control(stall: int, write: int = 7, waits: int = 0) -> int:
    """The upper half of an encoding, with nothing but what the scheduler reads."""
    return (stall | write << 5 | 7 << 8 | waits << 11) << 41


def test_steps_are_read_from_a_listing() -> None:
    path = function(
        listing_of(
            ("LDS.128 R4, [R2]", control(1, write=3)),
            ("FFMA R0, R4, R6, R8", control(4, waits=8)),
            ("FFMA R1, R4.reuse, R5, R9", control(1)),
            ("FFMA R1, R4, R7, R11", control(2)),
            ("IMAD R12, R13, R14, R15", control(5)),
            ("MUFU.RCP R16, R17", control(1, write=0)),
            ("LDGSTS.E.BYPASS.128 [R20], desc[UR4][R22.64]", control(1)),
            ("LDG.E R24, desc[UR4][R22.64]", control(1, write=1)),
            ("BAR.SYNC.DEFER_BLOCKING 0x0", control(6)),
        ),
        "k",
    ).instructions
    costs = {0: {"shared loads": 4.0}, 96: {"shared stores": 4.0, "global loads": 8.0}}
    costs[112] = {"global loads": 32.0}
    assert steps(path, costs, (9, 0)) == [
        WaitStep(even=1, is_memory=True, data=4.0, latency=29, sets=3),
        WaitStep(even=3, stall=4, waits=(3,)),
        WaitStep(even=1, odd=2),
        WaitStep(odd=2, stall=2),
        WaitStep(even=1, odd=2, pipe=1, interval=2, stall=5),
        WaitStep(sets=0),
        WaitStep(even=2, is_memory=True, lines=8.0),
        WaitStep(even=1, is_memory=True, latency=40, sets=1),
        WaitStep(stall=6, is_barrier=True),
    ]
