"""Cycles of shared memory and the L1 cache, from addresses alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pytest_regressions.file_regression import FileRegressionFixture
from support.golden import answered

from matbench.features.explain.sass import memory
from matbench.kernelfile import expressions


def told(question: str) -> str:
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
        cost = memory.matrices(lanes, int(size))
    else:
        cost = {"shared": memory.shared, "global": memory.global_}[kind](lanes, taking, int(size))
    return "{:g} cycles, {:g} at least, {:g} sectors, {:g} bytes".format(*cost)


def test_accesses(file_regression: FileRegressionFixture) -> None:
    table = Path(__file__).with_name("accesses.txt")
    file_regression.check(answered(table, told), fullpath=table, encoding="utf-8")


def test_a_cost_is_added_several_times() -> None:
    assert memory.Cost().plus(memory.Cost(1, 2, 3, 4), 5) == memory.Cost(5, 10, 15, 20)
    assert memory.Cost(1, 2, 3, 4).plus(memory.Cost(1, 1, 1, 1), 2) == memory.Cost(3, 4, 5, 6)
