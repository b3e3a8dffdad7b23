"""What the warps of a block do, for listings short enough to add up by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import pytest
from support.golden import TableRegression
from support.machine_code import code_of, listing_of

from matbench.features.explain.machine_code import demand
from matbench.features.explain.sass.listing import function
from matbench.features.explain.sass.tally import Tally, tally
from matbench.features.explain.sass.waits import WaitStep, pass_cycles, steps


def tallied(*instructions: str, block: int = 32, grid: tuple[int, int, int] = (1, 1, 1)) -> Tally:
    return tally(code_of(*instructions), (block, 1, 1), grid, {}, {"float16": 1024})


def counts(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {number:g}" for name, number in numbers.items())


def told(question: str) -> str:
    """All of a tally. The first line may say how large the block or the grid is. Traffic is in
    cycles, cycles at least, sectors and bytes."""
    first, *lines = question.splitlines()
    name, _, value = first.partition("=")
    if name == "block":
        found = tallied(*lines, block=int(value))
    elif name == "grid":
        x, y, z = map(int, value.split(","))
        found = tallied(*lines, grid=(x, y, z))
    else:
        found = tallied(first, *lines)
    return "; ".join(parts(found))


def parts(found: Tally) -> Iterator[str]:
    yield f"{found.warps} warps: {counts(found.classes)}"
    even, odd = found.bank_reads
    yield f"bank reads {even:g} and {odd:g}"
    if found.tensor_cycles:
        yield f"tensor cycles {found.tensor_cycles:g}"
    for kind, cost in found.traffic.items():
        yield f"{kind} {' '.join(f'{number:g}' for number in cost)}"
    for address, costs in found.costs.items():
        yield f"{address:x}: {counts(costs)}"
    if found.loop:
        yield f"{found.passes:g} passes of {' '.join(f'{at:x}' for at in sorted(found.loop))}"
        yield f"in it {counts(found.in_loop)}"
    if found.path:
        yield f"an ordinary pass {' '.join(f'{each.address:x}' for each in found.path)}"
    yield f"demands {counts(demand(found, (9, 0)))}"
    for missing in sorted(found.unknown, key=repr):
        yield f"unknown {missing.what} {missing.name} at {missing.address or 0:x}"
    if found.has_bulk:
        yield "bulk copies"
    if not found.is_complete:
        yield "not complete"


def test_tallies(table_regression: TableRegression) -> None:
    table_regression("tallies.txt", told)


def test_an_architecture_without_rates_has_no_demand() -> None:
    assert demand(tallied("FADD R0, R0, R0", "EXIT"), (7, 0)) == {}


def test_all_warps_together_are_followed_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matbench.features.explain.sass.tally._MOST_INSTRUCTIONS", 2000)
    loop = (
        "MOV R1, RZ", "VIADD R1, R1, 0x1", "ISETP.LT.AND P0, PT, R1, 0x64, PT", "@P0 BRA 0x10",
        "EXIT",
    )  # fmt: skip
    assert tallied(*loop, block=64).is_complete
    found = tallied(*loop, block=1024)
    assert not found.is_complete
    assert {missing.what for missing in found.unknown} == {"passes"}


# Cycles of a pass with waits


PLAIN = WaitStep()
#: A fetch of 4 cycles that sets counter 0, and the instruction that needs it.
FETCH = WaitStep(is_memory=True, data=4, latency=29, sets=0)
USE = WaitStep(waits=(0,))
BARRIER = WaitStep(is_barrier=True)
READS_3_OF_A_BANK = WaitStep(even=3)


NAMED = {"plain": PLAIN, "fetch": FETCH, "use": USE, "barrier": BARRIER}


def cycles(question: str) -> str:
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
    table_regression("passes.txt", cycles)


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
