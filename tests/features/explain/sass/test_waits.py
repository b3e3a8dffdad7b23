"""Cycles of a pass with waits, for passes whose answer can be computed by hand."""

from __future__ import annotations

import random

import pytest
from support.machine_code import listing_of

from matbench.features.explain.sass.listing import function
from matbench.features.explain.sass.waits import WaitStep, pass_cycles, steps

PLAIN = WaitStep()
#: A fetch of 4 cycles that sets counter 0, and the instruction that needs it.
FETCH = WaitStep(is_memory=True, data=4, latency=29, sets=0)
USE = WaitStep(waits=(0,))
BARRIER = WaitStep(is_barrier=True)
READS_3_OF_A_BANK = WaitStep(even=3)


@pytest.mark.parametrize(
    ("path", "warps", "blocks", "cycles"),
    [
        ([PLAIN] * 10, 1, 1, 10),  # one instruction per cycle
        ([PLAIN] * 10, 4, 1, 10),  # on each of four schedulers
        ([PLAIN] * 10, 5, 1, 12.5),  # on average, without a barrier
        ([WaitStep(stall=4)] * 10, 1, 1, 40),  # a warp pauses
        ([WaitStep(stall=4)] * 10, 16, 1, 40),  # while three others go on
        ([WaitStep(stall=4)] * 10, 20, 1, 50),
        ([READS_3_OF_A_BANK] * 10, 1, 1, 30),
        ([READS_3_OF_A_BANK] * 10, 8, 1, 60),
        ([WaitStep(even=2), WaitStep(odd=2)] * 10, 1, 1, 20),  # neighbours even each other out
        ([WaitStep(even=1, odd=2)] * 10, 1, 1, 20),
        ([WaitStep(even=3)] + [WaitStep(odd=1)] * 9, 1, 1, 10),
        ([WaitStep(pipe=0, interval=2)] * 10, 1, 1, 20),  # a pipe of half the rate
        ([WaitStep(pipe=0, interval=2), PLAIN] * 10, 1, 1, 20),
        ([WaitStep(pipe=0, interval=2), WaitStep(pipe=1, interval=2)] * 10, 1, 1, 20),
        ([FETCH, USE], 1, 1, 3 + 29 + 1),  # the last of four cycles, the latency, the use
        ([FETCH, FETCH, USE], 1, 1, 7 + 29 + 1),  # one after the other
        ([FETCH] * 9 + [USE], 4, 1, 4 * 9 * 4),  # four schedulers share shared memory
        ([FETCH, WaitStep(stall=20), PLAIN, USE], 1, 1, 3 + 29 + 1),
        ([WaitStep(is_memory=True, lines=8), FETCH, USE], 1, 1, 8 + 3 + 29 + 1),  # lines go first
        # An instruction reads for three cycles: the second of these starts at 3, the third at 6.
        ([READS_3_OF_A_BANK] * 3 + [PLAIN] * 20, 1, 1, 7 + 20),
        # Those of memory start at once; the next one waits until 9 - 3.
        ([WaitStep(even=3, is_memory=True)] * 3 + [PLAIN] * 20, 1, 1, 6 + 20),
        # A warp goes on as long as it can, and so the fetch of the other is hidden.
        ([FETCH, USE] + [PLAIN] * 30, 8, 1, 2 * 32),
        ([PLAIN, BARRIER], 4, 1, 2),
        ([PLAIN] * 9 + [BARRIER], 5, 1, 20),  # three schedulers wait for that with two warps
        ([FETCH, USE, BARRIER], 2, 1, 7 + 29 + 1 + 1),  # the first warp waits for the second
    ],
)
def test_cycles_are_known(path: list[WaitStep], warps: int, blocks: int, cycles: int) -> None:
    assert pass_cycles(path, warps, blocks) == pytest.approx(cycles, abs=0.35)


def test_another_block_fills_the_wait_at_a_barrier() -> None:
    """Alone a block waits at its barrier; two blocks together take less than twice as long."""
    path = [FETCH, USE] * 4 + [PLAIN] * 40 + [BARRIER]
    alone, both = pass_cycles(path, 8, 1), pass_cycles(path, 8, 2)
    assert 2 * 8 * len(path) / 4 <= both < 1.7 * alone


def test_five_fetches_queue_and_the_sixth_waits() -> None:
    """The first is served at once, five wait, and each takes 100 cycles."""
    slow = WaitStep(is_memory=True, data=100)
    assert pass_cycles([slow] * 10 + [PLAIN] * 10, 1, 1) == pytest.approx(1000, rel=0.01)
    fast = [*[slow] * 6, *[PLAIN] * 600]
    assert pass_cycles(fast, 1, 1) == 606
    assert pass_cycles([*[slow] * 7, *[PLAIN] * 600], 1, 1) > 690


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
