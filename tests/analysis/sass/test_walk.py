"""Following a warp through machine code that compilers write rarely."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.machine_code import listing_of

from matbench.analysis.sass import flow, listing
from matbench.analysis.sass.walk import MOST_INSTRUCTIONS, Place, Walk, walk


def walked(*instructions: str, block: int = 32, most: int = MOST_INSTRUCTIONS) -> Walk:
    text = listing_of(*((each, 0) for each in instructions))
    place = Place((block, 1, 1), (1, 1, 1), (0, 0, 0), 0)
    code = flow.code(listing.function(text, "k"))
    return walk(code, place, {}, full_visits=0, most=most)


def test_what_a_predicate_was_before_an_election_decides_nothing() -> None:
    """One lane after the other takes part, in a loop; before, the predicate was a carry that comes
    back every eight passes."""
    found = walked(
        "MOV R1, RZ",
        "LOP3.LUT R2, R1, 0x7, RZ, 0xc0, !PT",
        "IADD3 R3, P2, R2, 0xfffffffc, RZ",
        "PLOP3.LUT P0, PT, PT, PT, PT, 0x80, 0x0",
        "@P0 ELECT P2, URZ, PT",
        "@P2 PLOP3.LUT P0, PT, P2, PT, PT, 0x8, 0x0",
        "PLOP3.LUT P2, PT, PT, PT, PT, 0x8, 0x0",
        "@P0 BRA.U.ANY 0x40",
        "VIADD R1, R1, 0x1",
        "ISETP.GE.AND P1, PT, R1, 0x186a0, PT",
        "@!P1 BRA 0x10",
        "EXIT",
        block=1,
    )
    assert found.stopped is None
    assert found.visits[0x10] == found.visits[0x40] == 100_000


@given(
    outer=st.integers(1, 70), passes=st.integers(1, 90), later=st.integers(1, 90),
    turn=st.integers(0, 70), stages=st.integers(1, 40), ends=st.sampled_from(["EXIT", "BRA 0x120"]),
)  # fmt: skip
@example(outer=17, passes=64, later=40, turn=15, stages=8, ends="EXIT")
@settings(max_examples=settings().max_examples // 2)
def test_skipping_passes_changes_no_count(
    outer: int, passes: int, later: int, turn: int, stages: int, ends: str
) -> None:
    """A loop of `passes`, or from `turn` on of `later`, in a loop; both go on with a ring."""
    program = (
        "MOV R1, RZ",
        "MOV R2, RZ",
        "MOV R3, RZ",
        f"ISETP.GE.AND P0, PT, R1, {turn:#x}, PT",
        f"MOV R5, {later:#x}",
        f"MOV R6, {passes:#x}",
        "SEL R4, R5, R6, P0",
        "VIADD R3, R3, 0x1",
        "VIADD R2, R2, 0x1",
        f"ISETP.NE.AND P1, PT, R2, {stages:#x}, PT",
        "@P1 BRA 0xc0",
        "MOV R2, RZ",
        "ISETP.GE.AND P2, PT, R3, R4, PT",
        "@!P2 BRA 0x70",
        "VIADD R1, R1, 0x1",
        f"ISETP.GE.AND P3, PT, R1, {outer:#x}, PT",
        f"@P3 {ends}",
        "@!P3 BRA 0x20",
        "EXIT",
    )
    found = walked(*program, most=10**6)
    assert found.stopped is None
    inner = sum(later if i >= turn else passes for i in range(outer))
    assert found.visits[0x20] == outer
    assert found.visits[0x70] == found.visits[0xC0] == inner
    assert found.visits[0xB0] == inner // stages
