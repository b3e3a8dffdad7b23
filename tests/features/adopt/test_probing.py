"""One launch shows what a kernel computes, and what else it writes to."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from support.kernels import GOOD_BODY, SPIN_BODY, KernelWriter, changed

from matbench.bench.options import Deadlines, Options
from matbench.bench.session import Session
from matbench.features.adopt import probing
from matbench.features.adopt.probing import ProbeResult, ProductForm
from matbench.features.adopt.trials import AdoptTrials
from matbench.kernelfile import catalogue, sweep
from matbench.model import DeviceInfo, Problem
from matbench.worker.worker import LateError, WorkerPool

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


@pytest.mark.parametrize(
    ("loop", "product", "mistake"),
    [
        ("k = 0; k < K - 1", "A[row * K + k] * B[k * N + column]", "leaves out the last term of K"),
        ("k = 1; k < K", "A[row * K + k] * B[k * N + column]", "leaves out the first term of K"),
        ("k = 0; k < K", "A[(row & ~7 | k & 7) * K + (k & ~7 | row & 7)] * B[k * N + column]",
         "swaps the indices of A in tiles of 8×8"),
        ("k = 0; k < K",
         "A[row * K + k] * B[(k & ~15 | column & 15) * N + (column & ~15 | k & 15)]",
         "swaps the indices of B in tiles of 16×16"),
    ],
)  # fmt: skip
def test_usual_mistakes_are_recognised_with_alpha_and_beta(
    loop: str, product: str, mistake: str, session: Session, write_kernel: KernelWriter
) -> None:
    body = changed(
        BODY, (" + PAD", ""), ("k = 0; k < K", loop), ("EXTRA", ""),
        ("FACTOR", "C[row * N + column] + 2"),
        ("A[(size_t)row * (K) + k] * B[(size_t)k * (N) + column]", product),
    )  # fmt: skip
    path = write_kernel("mistaken", body=body)
    problem = Problem(32, 32, 32)
    case = sweep.case(catalogue.load(path), problem, {"TILE": 8}, session.backend.info)
    assert probing.probed(session, case).product is None
    measured = msgspec.structs.replace(case, problem=Problem(32, 32, 32, alpha=2.0, beta=1.0))
    session.prepare(measured.problem, measured.kernel.contract)
    outcome = session.measure(measured)
    assert outcome.status == "wrong"
    assert str(outcome.reason).endswith(f"; it {mistake}")


def test_a_factor_and_the_old_C_are_recognised(
    session: Session, write_kernel: KernelWriter
) -> None:
    factor = "C[row * N + column] - 2"  # times the sum
    found = probed(session, write_kernel, "", factor=factor)
    assert found.product == ProductForm("A", "B", -2.0, 1.0)
    assert found.share < 0.5
    assert not found.has_nan
    assert probed(session, write_kernel, "C[0] = sqrtf(-1.0f)").has_nan


@pytest.mark.parametrize(("spoiled", "share"), [((), 1.0), (("its input A",), 1.0), ((), 0.9)])
def test_a_launch_shows_that_a_call_is_wrong_by_C_or_what_it_spoils(
    spoiled: tuple[str, ...], share: float
) -> None:
    shown: Any = Mock(faults=0, unfinished=[])
    shown.probe.return_value = ProbeResult(None, spoiled, share)
    assert AdoptTrials.is_wrong(shown, Mock(), Problem(2, 2, 2)) == (share < 1 or spoiled != ())


def test_a_launch_that_does_not_end_is_late_and_the_next_one_runs(
    device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    spins, good = (
        sweep.case(catalogue.load(path), Problem(20, 12, 9), {"TILE": 8}, device)
        for path in (write_kernel("spins", body=SPIN_BODY), write_kernel("good"))
    )
    with WorkerPool(Options(), Deadlines()) as pool:
        worker = pool.worker(device)
        with pytest.raises(LateError, match="running took longer than 1 s"):
            worker.run(probing.probed, spins, case=spins, deadline_s=1.0)
        found = worker.run(probing.probed, good, case=good)
    assert found.product == ProductForm("A", "B", 1.0, 0.0)
