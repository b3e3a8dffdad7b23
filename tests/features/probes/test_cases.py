"""The sizes, inputs and factors of probes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.devices import GPU

from matbench.features.probes import cases
from matbench.kernelfile import sweep
from matbench.model import Kernel, LaunchRules

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


def test_what_a_kernel_scales_by_is_probed() -> None:
    found = cases.probed(changed(args=("alpha", "beta", "batch")), {}, GPU, None)
    given = {(case.problem.alpha, case.problem.beta, case.problem.batch) for _, case in found}
    assert given == {(1.0, 0.0, 1), (-1.5, 0.0, 1), (1.0, 0.75, 1), (-1.5, 0.75, 1), (1.0, 0.0, 3)}
    assert {case.problem.size for _, case in found if case.problem.beta} == {"31x37x41"}
    plain = cases.probed(PLAIN, {}, GPU, None)
    assert {(case.problem.alpha, case.problem.beta, case.problem.batch) for _, case in plain} == {
        (1.0, 0.0, 1)
    }
    assert "blocks with scales" not in dict(plain)
    scaled = cases.probed(changed(scales="blocks"), {}, GPU, None)
    of_scales = {case.problem.size for purpose, case in scaled if purpose == "blocks with scales"}
    assert of_scales == {"65x290x400"}  # partial blocks of 128
