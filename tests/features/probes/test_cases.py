"""The sizes, inputs and factors of probes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.devices import GPU
from support.golden import paged

from matbench import workloads
from matbench.features.probes import cases, shapes
from matbench.kernelfile import sweep
from matbench.model import Kernel, LaunchRules, Problem

PLAIN = Kernel(name="plain", launch=LaunchRules(block=(1,), grid=("M",)))


def changed(**changes: object) -> Kernel:
    return msgspec.structs.replace(PLAIN, **changes)


@pytest.mark.parametrize(
    ("where", "allowed"),
    [
        ((), None),
        (("M == N", "N == K"), lambda p: p.M == p.N == p.K),
        (("N % 16 == 0",), lambda p: p.N % 16 == 0),
        (("M == N", "K == N", "N % TILE == 0"), lambda p: p.M == p.N == p.K and p.N % 24 == 0),
        (("M % TILE + N % TILE == 0",), lambda p: p.M % 24 == p.N % 24 == 0),
    ],
)
def test_probes_are_of_sizes_that_are_allowed(where: tuple[str, ...], allowed: Any) -> None:
    """In addition to the excluded ones, which show what `where` excludes."""
    rules = LaunchRules(block=(8,), grid=(1,), where=where)
    kernel = changed(launch=rules, sweep={"TILE": (24,)}, args=("alpha",))
    found = cases.probed(kernel, {}, GPU, None)
    ran = [case for _, case in found if case.skip is None]
    skipped = [case for _, case in found if case.skip is not None]
    if allowed is None:
        assert not skipped
        return
    problems = [case.problem for case in ran]
    assert len({p.size for p in problems if p.M != p.N or "M == N" in where}) >= 4
    assert all(allowed(case.problem) for case in ran)
    assert any(case.problem.alpha != 1 for case in ran)
    assert skipped
    assert not any(allowed(case.problem) for case in skipped)
    moved = sweep.quick([kernel], [case.problem for _, case in found], {}, GPU)
    assert all(case.skip is None and allowed(case.problem) for case in moved)
    assert len({case.problem for case in moved}) == len(moved)
    assert {*problems} <= {case.problem for case in moved}


def launched(*where: str, batched: bool = False) -> Kernel:
    grid = ("N", "M", "batch") if batched else ("N", "M")
    return changed(launch=LaunchRules(block=(1,), grid=grid, where=where))


#: A kernel, and with how many GiB in the machine and GB on the GPU.
PROBED: dict[str, tuple[Kernel, int | None, int]] = {
    "plain": (PLAIN, None, 80),
    "with factors and a batch": (changed(args=("alpha", "beta", "batch")), None, 80),
    "with scales of blocks": (changed(scales="blocks"), None, 80),
    "plain, 128 GiB": (PLAIN, 128, 80),
    "plain, 256 GiB": (PLAIN, 256, 80),
    "plain, 128 GiB and a GPU of 24 GB": (PLAIN, 128, 24),
    "plain, 128 GiB and a GPU of 33 GB": (PLAIN, 128, 33),
    "plain, 128 GiB and a GPU of unknown memory": (PLAIN, 128, 0),
    "plain, 24 GiB": (PLAIN, 24, 80),
    "K of 255, 512 GiB": (launched("K == 255"), 512, 80),
    "K of 256, 512 GiB": (launched("K == 256"), 512, 80),
    "batches, 128 GiB": (launched(batched=True), 128, 80),
    "multiples, 128 GiB": (launched("M % 128 == 0", "N % 128 == 0", "K % 16 == 0"), 128, 80),
    "cubes, which take too long, 512 GiB": (launched("M == N", "N == K"), 512, 80),
}


def told(p: Problem) -> str:
    factors = f"{p.alpha:g}·A·B + {p.beta:g}·C, " if (p.alpha, p.beta) != (1, 0) else ""
    return f"{factors}{p.batch} × {p.size}, {p.inputs} inputs"


def test_pages(file_regression: Any) -> None:
    """The probes of each kernel; where it says how much memory there is, the large ones alone."""
    pages = {}
    for name, (kernel, gib, gb) in PROBED.items():
        gpu = msgspec.structs.replace(GPU, properties={"global memory (bytes)": gb * 10**9})
        found = cases.probed(kernel, {}, gpu, gib * 2**30 if gib is not None else None)
        large = [one for one in found if gib is None or "more than 2³" in one[0]]
        pages[name] = "\n".join(f"{purpose}: {told(case.problem)}" for purpose, case in large)
    file_regression.check(paged(pages), encoding="utf-8")


def test_large_shapes_just_exceed_what_they_are_said_to_exceed() -> None:
    elements = {"2³¹ elements": 2**31, "2³² bytes": 2**30, "2³¹ bytes": 2**29}
    for large in shapes.large(workloads.MATMUL):
        for (m, n, k, batch), said in large.items():
            what, matrix = said.removeprefix("more than ").split(" in ")
            of_matrix = {"A": m * k, "B": k * n, "C": m * n}[matrix[0]]
            assert 1 < of_matrix * batch / elements[what] < 1.04, said
