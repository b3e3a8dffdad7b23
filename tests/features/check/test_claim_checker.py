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
from matbench.analysis.claims import weakenings
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
        self.late = 0

    def deadlines_passed(self, _: Case) -> int:
        return self.late

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


def only(found: dict[str, Need]) -> tuple[bool | None, str]:
    [need] = found.values()
    return need.needed, need.finding


def test_a_precision_is_needed_where_the_kernel_fails_as_float32(needs: Asked) -> None:
    front = 'precision = "tf32"'
    places = "at 4 sizes, signed inputs"  # two of them suit one of the two tiles each
    right = only(needs(front, unless(lambda case: True)))
    assert right == (False, f"not needed: passes as float32 {places}")
    wrong = only(needs(front, unless(lambda case: case.kernel.precision == "tf32")))
    assert wrong == (True, f"needed: does not pass as float32 {places}")


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


def test_every_set_of_parameters_and_every_size_has_to_pass(needs: Asked) -> None:
    for held in (
        lambda case: case.params == {"TILE": 8},
        lambda case: case.params == {"TILE": 4},
        lambda case: case.problem.K < 1000,
        lambda case: case.problem.K > 1,
    ):
        assert only(needs('precision = "tf32"', unless(held)))[0] is True


@pytest.mark.parametrize(
    ("least", "needed", "finding"),
    [
        (0, False, "not needed"), (1, True, "needs 1"), (1.5, True, "needs 2"),
        (4, True, "needs 4"), (5, True, "needs more than 4"),
    ],
)  # fmt: skip
def test_the_least_power_of_two(least: float, needed: bool, finding: str, needs: Asked) -> None:
    found = needs("error_constant = 8", unless(lambda case: case.kernel.error_constant >= least))
    assert found["error_constant = 8"].key == "error_constant"
    assert only(found) == (needed, finding)


@pytest.mark.parametrize(
    ("low", "high", "needed", "finding"),
    [
        (-126, 127, False, "not needed: passes with float32's range"),
        (-12, 127, True, "needed only for small numbers"),
        (-126, 15, True, "needed only for large numbers"),
        (-12, 15, True, "needed for small and large numbers"),
    ],
)
def test_the_needed_half(low: int, high: int, needed: bool, finding: str, needs: Asked) -> None:
    """The kernel is right with exponents from `low` to `high`."""

    def held(case: Case) -> bool:
        lowest, highest = case.kernel.contract.exponents
        return lowest >= low and highest <= high

    assert only(needs("exponents = [-12, 15]", unless(held))) == (needed, finding)


def test_a_range_that_no_check_leaves_shows_nothing(needs: Asked) -> None:
    found = only(needs("exponents = [-100, 100]", unless(lambda case: True)))
    assert found == (None, "no check scales inputs beyond this range")


def test_a_precision_is_taken_away_but_not_its_range(needs: Asked) -> None:
    held = unless(lambda case: case.kernel.contract.exponents == (-14, 15))
    assert only(needs('precision = "float16"', held))[0] is False


def test_a_kernel_that_may_differ_is_run_three_times(needs: Asked) -> None:
    front = "deterministic = false"
    runs = 0

    def third(case: Case) -> str | None:
        nonlocal runs
        runs += 1
        assert case.kernel.deterministic
        return "determinism: not deterministic: 3 elements differ" if runs > 12 else None

    needed, finding = only(needs(front, third))
    assert needed is True
    assert finding.startswith("needed: runs differed at ")
    agreed = only(needs(front, unless(lambda case: True)))
    assert agreed == (False, "not needed: three runs agreed")
    other = only(needs(front, unless(lambda case: False, "repeat: 3 of 4 wrong")))
    assert other == (None, "not known: wrong when run again: repeat: 3 of 4 wrong")


def test_probes_that_a_condition_excludes_are_run_without_it(needs: Asked) -> None:
    def even(case: Case) -> str | None:
        assert "N % 2 == 0" not in case.kernel.launch.where
        return None if case.problem.M % 2 else "reference: no"

    found = needs("", even, where='"N % 2 == 0", "TILE <= 8", "M < 1000"')
    assert list(found) == ["where N % 2 == 0", "where M < 1000"]
    assert found["where N % 2 == 0"].finding.startswith("needed: ")
    assert found["where N % 2 == 0"].finding.endswith(" probes that it excludes pass without it")
    assert found["where M < 1000"].needed is None
    every = only(needs("", unless(lambda case: True), where='"N % 2 == 0"'))
    assert every[0] is False
    assert every[1].startswith("not needed: all ")


def test_without_a_probe_that_is_right_nothing_is_tried(needs: Asked) -> None:
    found = needs("error_constant = 8", unless(lambda case: False), right=False)
    assert only(found) == (None, "not tried: no probe passed")


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
