"""Following a warp through machine code that compilers write rarely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from support.golden import TableRegression
from support.machine_code import code_of
from support.optional import present

from matbench.features.explain.sass import memory
from matbench.features.explain.sass.walk import (
    MOST_INSTRUCTIONS,
    Walk,
    WarpPlace,
    special_registers,
    walk,
)
from matbench.kernelfile import expressions


def walked(
    *instructions: str, block: int = 32, warp: int = 0, most: int = MOST_INSTRUCTIONS,
    full_visits: int = 0, labels: Mapping[int, str] | None = None,
) -> Walk:  # fmt: skip
    place = WarpPlace((block, 1, 1), (1, 1, 1), (0, 0, 0), warp)
    return walk(
        code_of(*instructions, labels=labels), place, {}, full_visits=full_visits, most=most
    )


def test_where_a_warp_is() -> None:
    found = special_registers(WarpPlace((8, 2, 4), (5, 6, 7), (1, 2, 3), 1))
    lane = np.arange(32)
    expected: dict[str, Any] = {
        "SR_TID.X": lane % 8, "SR_TID.Y": lane // 8 % 2, "SR_TID.Z": 2 + lane // 16,
        "SR_CTAID.X": 1, "SR_CTAID.Y": 2, "SR_CTAID.Z": 3,
        "SR_NCTAID.X": 5, "SR_NCTAID.Y": 6, "SR_NCTAID.Z": 7,
        "SR_LANEID": lane, "SR_CgaCtaId": 0,
    }  # fmt: skip
    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert np.array_equal(present(value), np.broadcast_to(expected[name], 32)), name


def places(addresses: Iterable[int]) -> str:
    return ",".join(f"{address:x}" for address in addresses)


def told(question: str) -> str:
    """What follows each block of instructions, which are loops, and how often each is visited; the
    first line may say more of the walk, and where a function is."""
    first, *lines = question.splitlines()
    name, _, value = first.partition("=")
    labels = {int(value, 16): name} if name == "f" else None
    how = {name: int(value)} if value and not labels else {}
    if not value:
        lines.insert(0, first)
    found, code = walked(*lines, labels=labels, **how), code_of(*lines, labels=labels)
    parts = {
        "then": " ".join(f"{at:x}→{places(block.next)}" for at, block in code.graph.items()),
        "loops": " ".join(f"{at:x}:{places(sorted(loop))}" for at, loop in code.loops.items()),
        "visits": " ".join(f"{at:x}:{times}" for at, times in found.visits.items()),
    }
    if found.stopped is not None:
        parts["stopped"] = f"{found.stopped.what} {found.stopped.address:x}"
    return "; ".join(f"{part} {text}" for part, text in parts.items() if text)


def test_walks(table_regression: TableRegression) -> None:
    table_regression("walks.txt", told)


def test_accesses_have_the_addresses_of_the_lanes_that_take_part() -> None:
    found = walked(
        "S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x24, PT", "MOV R1, RZ",
        "@P0 LDS R2, [R0.X4+0x100]", "@!PT LDS R2, [R0]", "STS [R2], R0",
        "LDGSTS.E [R0.X4], desc[UR4][R0.U32+0x8]", "VIADD R1, R1, 0x1",
        "ISETP.LT.AND P1, PT, R1, 0x9, PT", "@P1 BRA 0x30", "EXIT", block=40, warp=1, full_visits=3,
    )  # fmt: skip
    thread, active = np.arange(32, 64), np.arange(32) < 8
    assert found.visits[0x30] == 9
    assert {address: len(accesses) for address, accesses in found.accesses.items()} == {
        0x30: 3, 0x40: 0, 0x50: 3, 0x60: 6,
    }  # fmt: skip
    load, store, (copied, source, *_) = (found.accesses[address] for address in (0x30, 0x50, 0x60))
    assert np.array_equal(load[2].active, active & (thread >= 36))
    assert present(load[2].addresses)[4:8].tolist() == [400, 404, 408, 412]
    assert store[0].addresses is None
    assert np.array_equal(store[0].active, active)
    assert present(copied.addresses)[:8].tolist() == [128, 132, 136, 140, 144, 148, 152, 156]
    assert present(source.addresses)[:8].tolist() == [40, 41, 42, 43, 44, 45, 46, 47]


def test_variables_have_addresses() -> None:
    found = walked("LDC.64 R2, c[0x4][0x8]", "STG.E [R2.64], R0", "EXIT", full_visits=1)
    [store] = found.accesses[0x10]
    assert (present(store.addresses) % 256 == 0).all()


# What an access costs


def cost(question: str) -> str:
    """The cost of a line such as `shared 16: lane * 16 if lane < 8`."""
    access, _, where = question.partition(": ")
    kind, size = access.split()
    address, _, takes_part = where.partition(" if ")
    addresses, active = (
        np.array([int(expressions.evaluate(text, {"lane": lane})) for lane in range(32)])
        for text in (address, takes_part or "1")
    )
    lanes, taking = addresses.astype(np.uint64), active.astype(bool)
    if kind == "matrices":
        found = memory.matrices(lanes, int(size))
    else:
        found = {"shared": memory.shared, "global": memory.global_}[kind](lanes, taking, int(size))
    return "{:g} cycles, {:g} at least, {:g} sectors, {:g} bytes".format(*found)


def test_accesses(table_regression: TableRegression) -> None:
    table_regression("accesses.txt", cost)


def test_a_cost_is_added_several_times() -> None:
    assert memory.Cost().plus(memory.Cost(1, 2, 3, 4), 5) == memory.Cost(5, 10, 15, 20)
    assert memory.Cost(1, 2, 3, 4).plus(memory.Cost(1, 1, 1, 1), 2) == memory.Cost(3, 4, 5, 6)
