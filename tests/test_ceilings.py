"""The committed ceilings of the ladder: bounds of what was measured, of the files as they are."""

from __future__ import annotations

import msgspec
import pytest
from support.machine_code import needs_nvdisasm
from support.scripts import load

from matbench.kernelfile import catalogue
from matbench.records.explanation import MachineCode

CEILINGS = load("benchmarks/ceilings.py")
RUNGS = msgspec.json.decode(CEILINGS.CEILINGS.read_bytes())["rungs"]
#: Rungs whose code can be followed to its end.
DERIVED = [name for name, rung in RUNGS.items() if rung["code"]["least_ns"]]
#: One whose ceiling waits lower.
QUICK = "thread-tile-1d"
#: Timers on the GPU tick every 32 ns, and clocks are reported in steps of 15 MHz.
TOLERANCE = 1.01


def test_every_rung_has_a_ceiling() -> None:
    assert set(DERIVED) == set(RUNGS)


@pytest.mark.parametrize("name", DERIVED)
def test_no_rung_was_faster_than_its_code_allows(name: str) -> None:
    rung = RUNGS[name]
    assert rung["code"]["least_ns"] <= rung["measured_ns"] * TOLERANCE


def test_the_ceilings_are_those_of_the_kernel_files() -> None:
    known = {kernel.name: kernel.sha256 for kernel in catalogue.builtin()}
    assert {name: rung["sha256"] for name, rung in RUNGS.items()} == {
        name: known[name] for name in RUNGS
    }


@needs_nvdisasm
@pytest.mark.parametrize(
    "name",
    [name if name == QUICK else pytest.param(name, marks=pytest.mark.long) for name in DERIVED],
)
def test_the_ceilings_are_derived_again(name: str) -> None:
    found = CEILINGS.ceiling(*CEILINGS.fastest()[name])
    assert found is not None
    committed = msgspec.convert(RUNGS[name]["code"], MachineCode)
    assert found.least_ns == pytest.approx(committed.least_ns)
    assert next(iter(found.cycles)) == next(iter(committed.cycles))
