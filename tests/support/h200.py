"""An H200 for tests of analysis, with cases measured on it."""

from __future__ import annotations

from typing import Any

import msgspec

from matbench.features.explain.record import Limits
from matbench.kernelfile import catalogue, front_matter, sweep
from matbench.model import Case, Problem, Resources
from matbench.records.outcome import Build, CaseRecord, Claims, Outcome
from support import records
from support.devices import gpu

KERNELS = catalogue.Catalogue(catalogue.builtin())
LIMITS = Limits(
    device="NVIDIA H200", driver="", copy_bytes_per_s=4e12, read_bytes_per_s=4.5e12,
    fma_flop_per_s=60e12, sm_mhz=1980, when="2026-11-21T00:00:00+00:00",
)  # fmt: skip
H200 = gpu(
    name="NVIDIA H200", driver="", toolkit="", compute_capability=(9, 0),
    limits=front_matter.DEVICE_LIMITS | {"multiprocessors": 132},
)  # fmt: skip


def case_of(name: str, n: int, tile: int = 32) -> Case:
    return sweep.case(KERNELS.get(name), Problem(n, n, n), {"TILE": tile}, H200)


def split_case(name: str, n: int) -> Case:
    """A kernel that computes one product as several on tensor cores, or those of a batch."""
    limits = H200.limits | {"max_shared_bytes_per_block": 232448}
    device = msgspec.structs.replace(H200, limits=limits)
    constants = {"BN": 256, "TOTAL_WORDS": 1, "BM": 128, "BAND": 2}
    params = {constant: constants[constant] for constant in KERNELS.get(name).sweep}
    return sweep.case(KERNELS.get(name), Problem(n, n, n), params, device)


def outcome_of(case: Case, median_ns: float, **changes: Any) -> Outcome:
    """Its outcome on the H200: 32 registers per thread, 8 KiB of static shared memory."""
    given = Resources(registers=32, static_shared_bytes=8192, spilled_bytes=0)
    fields: dict[str, Any] = {
        "claims": Claims.from_kernel(case.kernel),
        "arithmetic": CaseRecord.from_case(case, H200).arithmetic,
        "params": case.params, "problem": case.problem, "backend": "cuda", "device": H200.name,
        "device_kind": "gpu", "launch": case.launch,
        "build": Build(resources=given, resident_blocks=2),
    }  # fmt: skip
    return records.outcome(case.kernel.name, median_ns / 1e6, **(fields | changes))
