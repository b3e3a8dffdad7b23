"""Every built-in product and each library's is right at awkward sizes, on a CPU and on a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from support.optional import present
from support.products import INPUTS, OF_ANY_SIZE, PRODUCTS, SIZES, capability_needed, problem, right

from matbench import workloads
from matbench.bench.session import Session
from matbench.kernelfile import expressions, sweep
from matbench.model import Case, DeviceInfo, Kernel

LARGER = "257x130x300"
LONG_SUMS = "64x64x8192"


def on_a_cpu() -> Iterator[Any]:
    """The tutorial's at every size with uniform inputs, all at one with the others too; the rest
    takes long, and part of it is what `matbench run --smoke` does.

    Problems on the outside: the session keeps the inputs of one problem on the device.
    """
    for inputs in INPUTS:
        for size in SIZES:
            for kernel in PRODUCTS:
                few = size == "65x31x129" or (inputs == "uniform" and kernel.group == "tutorial")
                marks = [] if few else [pytest.mark.long]
                at = f"{kernel.name}-{size}-{inputs}"
                yield pytest.param(kernel, size, inputs, "session", marks=marks, id=at)


def on_a_gpu() -> Iterator[Any]:
    """All at every size with one kind of inputs, in turn; the other kinds take long, and so do
    kernels of which many builds are swept.

    Kernels on the outside: a process builds all that one needs.
    """
    for number, kernel in enumerate([*PRODUCTS, *OF_ANY_SIZE.values()]):
        if kernel.on_host:
            continue
        sizes = [*SIZES, LARGER] if kernel.library is None else [*SIZES, LARGER, LONG_SUMS]
        for place, size in enumerate(sizes):
            for kind, inputs in enumerate(INPUTS):
                marks = [pytest.mark.gpu]
                has_many_builds = math.prod(map(len, kernel.sweep.values())) > 5
                if (number + place + kind) % len(INPUTS) or has_many_builds:
                    marks.append(pytest.mark.long)
                at = f"{kernel.name}-{size}-{inputs}-cuda"
                yield pytest.param(kernel, size, inputs, "checks", marks=marks, id=at)


def allowed_skip(case: Case, device: DeviceInfo) -> bool:
    """Whether this kernel cannot compute this, by prior knowledge or by its file."""
    limit = min(device.limits["max_threads_per_block"], 1024)
    problem = case.problem
    if "cuda" in case.kernel.requires and device.backend != "cuda":
        return True
    if case.kernel.name == "single-block":
        return limit < problem.M * problem.N
    if case.kernel.name == "host-loop":
        return workloads.workload_of(problem).operations(problem) > 2**25
    if case.kernel.name == "shared-row":
        return device.limits["max_shared_bytes_per_block"] < 4 * problem.K
    if case.kernel.group in ("ladder", "gallery"):
        constants = expressions.constants(case.kernel.let, case.params)
        values = {"M": problem.M, "N": problem.N, "K": problem.K, **constants, **device.limits}
        scope = {"ceil_div": lambda a, b: -(-a // b), "max": max, "min": min}
        major, minor = device.compute_capability or (0, 0)
        is_older = capability_needed(case.kernel) > 10 * major + minor
        return is_older or not all(eval(w, scope, values) for w in case.kernel.launch.where)
    return case.params.get("TILE", 1) ** 2 > limit


@pytest.mark.parametrize(("kernel", "size", "inputs", "where"), [*on_a_cpu(), *on_a_gpu()])
def test_right_at_every_awkward_size(
    kernel: Kernel, size: str, inputs: str, where: str, request: pytest.FixtureRequest
) -> None:
    session: Session = request.getfixturevalue(where)
    device = session.backend.info
    if kernel.on_host and device.kind == "gpu":
        pytest.skip("a baseline of the CPU")
    cases = sweep.cases([kernel], [problem(size, inputs)], {}, device)
    assert len(cases) == math.prod(map(len, kernel.sweep.values()))
    for case in cases:
        if case.skip is not None:
            assert case.skip.kind in ("condition", "limit", "requirement")
            assert allowed_skip(case, device), case.skip
            continue
        outcome = right(session, case)
        assert 0 <= present(present(outcome.accuracy).bound_ratio) <= 1
        if kernel.library is not None:
            library = present(present(outcome.build).resources).library
            assert present(library).startswith("cuBLAS ")
        # Where nothing cancels, the bound holds for relative errors of the inputs as given too.
        elif inputs == "uniform" and kernel.precision == "float32":
            bound = (kernel.error_constant + case.problem.K + 1) * 2**-24
            avg_rel_err = present(present(outcome.accuracy).avg_rel_err)
            assert avg_rel_err <= present(outcome.max_rel_err) <= bound
