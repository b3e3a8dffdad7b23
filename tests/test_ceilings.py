"""The committed ceilings of the ladder: bounds of what was measured, of the files as they are."""

from __future__ import annotations

import msgspec
import pytest
from support.h200 import H200, KERNELS
from support.machine_code import needs_nvdisasm
from support.paths import ROOT
from support.scripts import load

from matbench.cache import Cache
from matbench.features.explain import disassembly, machine_code
from matbench.features.explain.architectures import named
from matbench.features.explain.record import MachineCode
from matbench.kernelfile import sweep
from matbench.model import Problem

lessons = load("docs/generate_lessons.py")
COMMITTED = msgspec.json.decode((ROOT / "results" / "h200-ceilings.json").read_bytes())
RUNGS = COMMITTED["rungs"]
#: Rungs whose code can be followed to its end.
DERIVED = [name for name, rung in RUNGS.items() if rung["code"]["least_ns"]]
#: Timers on the GPU tick every 32 ns, and clocks are reported in steps of 15 MHz.
TOLERANCE = 1.01


def test_every_rung_has_a_ceiling() -> None:
    assert set(DERIVED) == set(RUNGS)


def test_no_rung_was_faster_than_its_code_allows() -> None:
    """As far as they were recorded at these parameters on an H200."""
    size, slower = str(COMMITTED["n"]), []
    for outcomes in lessons.measurements():
        for found in outcomes:
            rung = RUNGS.get(found.case.kernel, {})
            if (found.case.problem.size, found.case.params) != (size, rung.get("params")):
                continue
            if found.median_ns and "H200" in found.case.device:
                slower.append(found.case.kernel)
                assert rung["code"]["least_ns"] <= found.median_ns * TOLERANCE, found.case.label
    assert len({*slower}) > 15


@pytest.mark.parametrize("name", RUNGS)
def test_a_ceiling_is_that_of_the_kernel_file(name: str) -> None:
    assert RUNGS[name]["sha256"] == KERNELS.get(name).sha256


@pytest.mark.long
@needs_nvdisasm
@pytest.mark.parametrize("name", DERIVED)
def test_the_ceilings_are_derived_again(name: str) -> None:
    rung = RUNGS[name]
    committed = msgspec.convert(rung["code"], MachineCode)
    n, limits = COMMITTED["n"], H200.limits | {"max_shared_bytes_per_block": 232448}
    device = msgspec.structs.replace(H200, limits=limits)
    case = sweep.case(KERNELS.get(name), Problem(n, n, n), rung["params"], device)
    made = disassembly.disassembled((9, 0), case.kernel, case.params, Cache())
    found = machine_code.machine_code(
        made, case, named("sm_90"), committed.multiprocessors, committed.sm_mhz
    )
    assert found.least_ns == pytest.approx(committed.least_ns)
    assert next(iter(found.cycles)) == next(iter(committed.cycles))
