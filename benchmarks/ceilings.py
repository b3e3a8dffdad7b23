"""The ceilings that machine code sets to the rungs of the ladder, beside their measured speeds.

`python benchmarks/ceilings.py` reads the fastest parameters of each rung at n = 4096 from
results/h200-ladder.jsonl, compiles them for that GPU with nvcc, and writes what the machine code
allows to results/h200-ceilings.json. It needs nvdisasm, but no GPU.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from matbench import backends
from matbench.analysis import architectures, machine_code
from matbench.analysis.ranking import held_mhz
from matbench.cache import Cache
from matbench.kernelfile import catalogue
from matbench.model import DeviceInfo
from matbench.records import reading
from matbench.records.explanation import MachineCode
from matbench.records.outcome import Outcome

ROOT = Path(__file__).parent.parent
LADDER = ROOT / "results" / "h200-ladder.jsonl"
CEILINGS = ROOT / "results" / "h200-ceilings.json"
SIZE = 4096


def fastest() -> dict[str, tuple[Outcome, DeviceInfo]]:
    """The fastest outcome of each rung at n = 4096, and its device."""
    environments, outcomes = reading.read(LADDER)
    device = next(device for each in environments for device in each.devices)
    found: dict[str, tuple[Outcome, DeviceInfo]] = {}
    for outcome in outcomes:
        problem = outcome.case.problem
        if (problem.M, problem.N, problem.K) == (SIZE, SIZE, SIZE) and outcome.median_ns:
            old = found.get(outcome.case.kernel)
            if old is None or outcome.median_ns < (old[0].median_ns or 0.0):
                found[outcome.case.kernel] = outcome, device
    return found


def ceiling(outcome: Outcome, device: DeviceInfo) -> MachineCode | None:
    """What the machine code of a measured case allows; None if it has no source."""
    kernels = {kernel.name: kernel for kernel in catalogue.builtin()}
    kernel, launch = kernels.get(outcome.case.kernel), outcome.case.launch
    architecture = architectures.of_capability(device.compute_capability)
    if kernel is None or kernel.library or launch is None or architecture is None:
        return None
    params = outcome.case.params
    made = backends.disassembled(architecture.compute_capability, kernel, params, Cache())
    return machine_code.machine_code(
        (made.listing, made.entry, made.architecture),
        kernel,
        outcome.case.problem,
        params,
        launch,
        architecture,
        resources=made.resources,
        multiprocessors=device.limits["multiprocessors"],
        sm_mhz=held_mhz(outcome.timing),
    )


def main() -> int:
    """Write the ceilings of all rungs that have a source."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, metavar="FILE", default=CEILINGS)
    output: Path = parser.parse_args().output
    known = {kernel.name: kernel.sha256 for kernel in catalogue.builtin()}
    written = {
        name: {
            "sha256": known[name],
            "params": outcome.case.params,
            "measured_ns": outcome.median_ns,
            "code": found,
        }
        for name, (outcome, device) in sorted(fastest().items())
        if (found := ceiling(outcome, device)) is not None
    }
    about = {"about": __doc__, "n": SIZE, "rungs": written}
    output.write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
