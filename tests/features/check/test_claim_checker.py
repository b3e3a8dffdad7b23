"""How much of its claims a kernel needs, shown by runs with less of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.cli import Matbench
from support.h200 import H200, case_of
from support.kernels import KernelWriter
from support.paths import output_of

from matbench import programs
from matbench.analysis.ranking import weakenings
from matbench.features.check import sanitizer
from matbench.features.check.claim_checker import ClaimChecker, conditions
from matbench.features.check.probe import Need
from matbench.features.probes import cases
from matbench.kernelfile import catalogue
from matbench.model import Case, DeviceInfo
from matbench.records.outcome import CaseRecord, Claims, Outcome


class PlainWorker:
    """Returns for each case what `judged` returns: why it is wrong, or that it is right."""

    def __init__(self, device: DeviceInfo, judged: Callable[[Case], str | None]) -> None:
        self.device = device
        self.judged = judged
        self.measured: list[Case] = []

    def measure(self, case: Case) -> Outcome:
        assert case.skip is None
        self.measured.append(case)
        reason = self.judged(case)
        status: Any = "wrong" if reason else "measured"
        check = reason and reason.split(":")[0]
        record = CaseRecord.from_case(case, self.device)
        return Outcome(case=record, status=status, reason=reason, check=check)


#: The claims of a file, and how much of them it needs.
Asked = Callable[..., dict[str, Need]]


@pytest.fixture
def needs(write_kernel: KernelWriter, device: DeviceInfo) -> Asked:
    def asked(
        front: str, judged: Callable[[Case], str | None], *, where: str = "", right: bool = True
    ) -> dict[str, Need]:
        launch = 'block = ["TILE", "TILE"]\ngrid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]'
        kernel = catalogue.load(write_kernel(front=front, launch=f"{launch}\nwhere = [{where}]"))
        probed = cases.probed(kernel, {"TILE": (4, 8)}, device, None)
        status: Any = "measured" if right else "wrong"
        first = [
            Outcome(
                case=CaseRecord.from_case(case, device),
                status=status if case.skip is None else "skipped",
            )
            for _, case in probed
        ]
        worker = PlainWorker(device, judged)
        trials = ClaimChecker(worker, probed, first)  # type: ignore[arg-type]
        stated = Claims.from_kernel(kernel)
        found = [trials.need(claim) for claim in (*weakenings(stated), *conditions(stated))]
        for case in worker.measured if not where else ():
            assert case.problem.inputs == "signed"
        return {need.declared: need for need in found}

    return asked


def unless(held: Callable[[Case], bool], reason: str = "reference: no") -> Any:
    return lambda case: None if held(case) else reason


def within(low: int, high: int) -> Any:
    """Right with exponents from `low` to `high`."""

    def held(case: Case) -> bool:
        lowest, highest = case.kernel.contract.exponents
        return lowest >= low and highest <= high

    return unless(held)


def with_constant(least: float) -> Any:
    """Right with an error constant of at least that."""
    return unless(lambda case: case.kernel.error_constant >= least)


def even(case: Case) -> str | None:
    """Right where M is odd, which a condition excludes."""
    assert "N % 2 == 0" not in case.kernel.launch.where
    return None if case.problem.M % 2 else "reference: no"


TF32, LEAST, RANGE = 'precision = "tf32"', "error_constant = 8", "exponents = [-12, 15]"
SOME = "deterministic = false"
always, never = unless(lambda _: True), unless(lambda _: False)
#: What is claimed, and which runs with less are right.
CLAIMED: dict[str, tuple[str, Any]] = {
    "right as float32": (TF32, always),
    "wrong as float32": (TF32, unless(lambda case: case.kernel.precision == "tf32")),
    "right with a tile of 8 only": (TF32, unless(lambda case: case.params == {"TILE": 8})),
    "right with a tile of 4 only": (TF32, unless(lambda case: case.params == {"TILE": 4})),
    "right where K is small": (TF32, unless(lambda case: case.problem.K < 1000)),
    "right where K is not 1": (TF32, unless(lambda case: case.problem.K > 1)),
    **{
        f"right from a constant of {least} on": (LEAST, with_constant(least))
        for least in (0, 1, 1.5, 4, 5)
    },
    **{
        f"right from 2^{low} to 2^{high}": (RANGE, within(low, high))
        for low, high in ((-126, 127), (-12, 127), (-126, 15), (-12, 15))
    },
    "a range that no check leaves": ("exponents = [-100, 100]", always),
    "right with the range of float16": (
        'precision = "float16"', unless(lambda case: case.kernel.contract.exponents == (-14, 15)),
    ),
    "the same in every run": (SOME, always),
    "wrong when run again": (SOME, unless(lambda _: False, "repeat: 3 of 4 wrong")),
}  # fmt: skip


def test_pages(needs: Asked, file_regression: Any) -> None:
    found = {name: needs(*claimed) for name, claimed in CLAIMED.items()}
    found["no probe that is right"] = needs(LEAST, never, right=False)
    found["probes that conditions exclude"] = needs(
        "", even, where='"N % 2 == 0", "TILE <= 8", "M < 1000"'
    )
    found["a condition without which all pass"] = needs("", always, where='"N % 2 == 0"')
    lines = (
        f"{name}\n    {need.declared}: {need.needed}, {need.finding}\n"
        for name, every in found.items()
        for need in every.values()
    )
    file_regression.check("".join(lines), encoding="utf-8")


@pytest.mark.parametrize("name", ["cublas-bf16", "cublas-f16", "cublaslt-int8"])
def test_a_precision_is_needed_by_what_is_in_memory(name: str) -> None:
    case = case_of(name, 64)
    record = CaseRecord.from_case(case, H200)
    worker = PlainWorker(H200, lambda case: None)
    right = Outcome(case=record, status="measured")
    trials = ClaimChecker(worker, [("", case)], [right])  # type: ignore[arg-type]
    claim = next(claim for claim in weakenings(record.claims) if claim.key == "precision")
    need = trials.need(claim)
    assert (need.needed, need.finding) == (True, f"needed: it reads {record.storage} from memory")
    assert worker.measured == []


def test_a_kernel_that_may_differ_is_run_three_times(needs: Asked) -> None:
    runs = 0

    def third(case: Case) -> str | None:
        nonlocal runs
        runs += 1
        assert case.kernel.deterministic
        return "determinism: not deterministic: 3 elements differ" if runs > 12 else None

    [need] = needs("deterministic = false", third).values()
    assert need.needed is True
    assert need.finding.startswith("needed: runs differed at ")


# NVIDIA's sanitizer


MEMCHECK = output_of("memcheck.txt")
RACECHECK = output_of("racecheck.txt")
CLEAN = """\
========= COMPUTE-SANITIZER
========= ERROR SUMMARY: 0 errors
"""


def test_equal_errors_are_counted_together() -> None:
    assert sanitizer.findings("memcheck", MEMCHECK) == [
        "memcheck: Invalid __global__ read of size 4 bytes at kernels/mine.cu:29 (once)",
        "memcheck: Invalid __global__ write of size 4 bytes at kernels/mine.cu:33 (2 times)",
    ]


def test_a_race_names_both_lines() -> None:
    (found,) = sanitizer.findings("racecheck", RACECHECK)
    assert found.startswith("racecheck: Race reported")
    assert "mine.cu:31" in found
    assert "mine.cu:37" in found


def test_a_clean_run_has_no_findings() -> None:
    assert sanitizer.findings("memcheck", CLEAN) == []


def test_no_sanitizer_is_one_line(matbench: Matbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "which", lambda *_, **__: None)
    result = matbench("check", "tiled", "--sanitize", code=2)
    assert "needs compute-sanitizer" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_conditions_on_sizes() -> None:
    texts = ("N % 4 == 0", "ldc % 32 == 0", "stride_a > 1000", "M * N <= max_threads_per_block")
    constants = ("TILE * TILE <= max_threads_per_block", "BM % TM == 0", "KN < NM")
    found = conditions(Claims(where=(*constants, *texts)))
    assert [claim.declared for claim in found] == [*texts]
    assert found[0] == ("where", "N % 4 == 0", "only where N % 4 == 0")
