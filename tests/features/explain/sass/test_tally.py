"""What the warps of a block do, for listings short enough to add up by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from support.golden import TableRegression
from support.machine_code import code_of

from matbench.features.explain.machine_code import demand
from matbench.features.explain.sass.tally import Tally, tally


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
