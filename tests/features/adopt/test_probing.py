"""One launch shows what a kernel computes, and what else it writes to."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from support.kernels import GOOD_BODY, KernelWriter, changed

from matbench.bench.session import Session
from matbench.features.adopt import probing
from matbench.features.adopt.probing import ProbeResult, ProductForm
from matbench.features.adopt.trials import AdoptTrials
from matbench.kernelfile import catalogue, sweep
from matbench.model import Problem

BODY = changed(
    GOOD_BODY, ("const float", "float"), ("K + k", "(K + PAD) + k"),
    ("* N +", "* (N + PAD) +"),
    ("= sum;", "= FACTOR * sum; if (row == 0 && column == 0) { EXTRA; }"),
)  # fmt: skip


def probed(
    session: Session, write_kernel: KernelWriter, extra: str, *, factor: str = "1", padding: int = 0
) -> ProbeResult:
    body = BODY.replace("EXTRA", extra).replace("FACTOR", factor).replace("PAD", str(padding))
    path = write_kernel("sighted", front=f"padding = {padding}", body=body)
    case = sweep.case(catalogue.load(path), Problem(20, 12, 9), {"TILE": 8}, session.backend.info)
    return probing.probed(session, case)


@pytest.mark.parametrize(
    ("extra", "padding", "spoiled"),
    [
        ("", 0, ()),
        ("", 3, ()),
        ("A[K] = 9", 3, ("its input A", "memory outside A")),
        ("B[K * N] = 9", 0, ("its input B", "memory outside B")),
        ("C[-1] = 9", 0, ("memory outside C",)),
        ("C[M * N] = A[-1]", 0, ("memory outside C",)),
        ("C[N + 1] = 9", 3, ("memory outside C",)),
    ],
)
def test_what_else_is_written_to_is_said(
    extra: str, padding: int, spoiled: tuple[str, ...], session: Session, write_kernel: KernelWriter
) -> None:
    found = probed(session, write_kernel, extra, padding=padding)
    assert found == ProbeResult(ProductForm("A", "B", 1.0, 0.0), spoiled, 1.0)


def test_a_factor_and_old_C_are_recognised(session: Session, write_kernel: KernelWriter) -> None:
    factor = "C[row * N + column] - 2"  # times the sum
    found = probed(session, write_kernel, "", factor=factor)
    assert found.product == ProductForm("A", "B", -2.0, 1.0)
    assert found.share < 0.5
    assert not found.has_nan
    assert probed(session, write_kernel, "C[0] = sqrtf(-1.0f)").has_nan


@pytest.mark.parametrize(("spoiled", "share"), [((), 1.0), (("its input A",), 1.0), ((), 0.9)])
def test_C_or_what_it_spoils_shows_a_wrong_call(spoiled: tuple[str, ...], share: float) -> None:
    shown: Any = Mock(faults=0, unfinished=[])
    shown.probe.return_value = ProbeResult(None, spoiled, share)
    assert AdoptTrials.is_wrong(shown, Mock(), Problem(2, 2, 2)) == (share < 1 or spoiled != ())
