"""Following a warp through machine code that compilers write rarely."""

from __future__ import annotations

from support.machine_code import listing_of

from matbench.analysis.sass import flow, listing
from matbench.analysis.sass.walk import Place, Walk, walk


def walked(*instructions: str, block: int = 32) -> Walk:
    text = listing_of(*((each, 0, 0) for each in instructions))
    place = Place((block, 1, 1), (1, 1, 1), (0, 0, 0), 0)
    return walk(flow.code(listing.function(text, "k")), place, {}, full_visits=0)


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
