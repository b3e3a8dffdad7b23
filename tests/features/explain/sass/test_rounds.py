"""Passes of a loop that are skipped: everything is as if each had been carried out."""

from __future__ import annotations

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st
from support.machine_code import code_of

from matbench.features.explain.sass.rounds import LONGEST_ROUND
from matbench.features.explain.sass.walk import Walk, WarpPlace, walk
from matbench.records.explanation import NotDerived

HEADER, EARLY, RING, AFTER, EXPECTED_SUM = 0x50, 0x70, 0xC0, 0xF0, 0x150


def ring(times: int, end: int, step: int, stages: int, change: int, total: int) -> list[str]:
    """A loop from 0 to `end`, carried out several times. Each pass is the next stage of a ring;
    those before `change` add to R3, which must be `total` in the end."""
    return [
        "MOV R3, RZ",
        "MOV R4, RZ",
        "MOV R5, RZ",
        "MOV R1, RZ",
        "MOV R2, RZ",
        f"ISETP.GE.AND P0, PT, R1, {change:#x}, PT",
        "@P0 BRA 0x80",
        "VIADD R3, R3, 0x5",
        f"VIADD R1, R1, {step:#x}",
        "VIADD R2, R2, 0x1",
        f"ISETP.LT.AND P1, PT, R2, {stages:#x}, PT",
        "@P1 BRA 0xd0",
        "MOV R2, RZ",
        f"ISETP.LT.AND P2, PT, R1, {end:#x}, PT",
        "@P2 BRA 0x50",
        "VIADD R5, R5, 0x1",
        "LOP3.LUT R4, R4, 0x1, RZ, 0x3c, !PT",
        f"ISETP.LT.AND P3, PT, R5, {times:#x}, PT",
        "@P3 BRA 0x30",
        f"ISETP.EQ.AND P4, PT, R3, {total:#x}, PT",
        "@!P4 EXIT",
        "EXIT",
    ]


def carried_out(
    times: int, end: int, step: int, stages: int, change: int
) -> tuple[Counter[int], int]:
    """How often each block is visited if every pass is carried out, and the sum in R3."""
    visits: Counter[int] = Counter()
    total = 0
    for _ in range(times):
        place = stage = 0
        while True:
            visits[HEADER] += 1
            if place < change:
                visits[EARLY] += 1
                total += 5
            place += step
            stage += 1
            if stage == stages:
                visits[RING] += 1
                stage = 0
            if place >= end:
                break
        visits[AFTER] += 1
    visits[EXPECTED_SUM] += 1
    return visits, total


def walked(times: int, end: int, step: int, stages: int, change: int) -> tuple[Walk, Counter[int]]:
    visits, total = carried_out(times, end, step, stages, change)
    code = code_of(*ring(times, end, step, stages, change, total))
    return walk(code, WarpPlace((32, 1, 1), (1, 1, 1), (0, 0, 0), 0), {}), visits


@given(
    times=st.integers(1, 3),
    end=st.integers(1, 20_000),
    step=st.integers(1, 5),
    stages=st.integers(1, 8),
    change=st.integers(0, 20_000),
)
@example(times=1, end=20_000, step=1, stages=LONGEST_ROUND, change=9_000)
@example(times=3, end=20_000, step=1, stages=1, change=30_000)
@example(times=3, end=300, step=1, stages=2, change=150)
@example(times=1, end=20_000, step=1, stages=7, change=412)  # few rounds before it changes
def test_counts_and_registers(times: int, end: int, step: int, stages: int, change: int) -> None:
    found, visits = walked(times, end, step, stages, change)
    assert found.stopped is None
    assert {start: found.visits[start] for start in visits} == visits


def test_most_passes_are_skipped() -> None:
    """Loops of 66,000 instructions; how far one goes is tried for the next ones alike."""
    once, _ = walked(1, 6_000, 1, 3, 6_000)
    thrice, _ = walked(3, 6_000, 1, 3, 6_000)
    assert once.carried_out < 700
    assert thrice.carried_out < 1_500


def test_longer_rounds_are_not_recognised() -> None:
    found, _ = walked(1, 20_000, 1, LONGEST_ROUND + 1, 20_000)
    assert isinstance(found.stopped, NotDerived)
    assert found.stopped.what == "passes"
