"""Every known mistake is rejected for its own reason; right kernels are accepted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.kernels import own_file
from support.optional import present
from support.paths import BAD_KERNELS as FOLDER
from support.toml import table

from matbench import backends, workloads
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.measure.checks import Checks
from matbench.measure.launches import Launches
from matbench.measure.options import CHECKS, Options
from matbench.measure.session import Session
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records.outcome import Outcome
from matbench.show.reasons import skip_reason

EXPECTED: dict[str, dict[str, Any]] = table(FOLDER / "expected.toml")
STATEFUL = [name for name, found in EXPECTED.items() if found.get("device_variables")]
HUGE = [name for name, found in EXPECTED.items() if found.get("memory_bytes")]
ORDINARY = [name for name in EXPECTED if name not in STATEFUL and name not in HUGE]

#: Wrong only from some millions of numbers on.
LARGE = ["bad-dot-stretch-of-32-bits", "bad-float-index"]
RACES = ["bad-no-barrier-after-staging", "bad-no-second-barrier"]
MENDED = [name for name, found in EXPECTED.items() if "right_with" in found]
#: Right in any order, although its threads add to one number, or its blocks to one element.
ATOMIC = """// /// matbench
// beta = [1]
// deterministic = false
// [launch]
// block = [64]
// grid = ["M", 2]
// ///
__global__ void atomic(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float sum;
    for (int n = 0; n < N; ++n) {
        if (threadIdx.x == 0)
            sum = 0.0f;
        __syncthreads();
        for (int k = blockIdx.y * 64 + threadIdx.x; k < K; k += 128)
            atomicAdd(&sum, A[blockIdx.x * K + k] * B[k * N + n]);
        __syncthreads();
        if (threadIdx.x == 0)
            atomicAdd(&C[blockIdx.x * N + n], sum);
        __syncthreads();
    }
}
"""


def load(name: str) -> Kernel:
    return catalogue.load(FOLDER / f"{name}.cu")


def require_kind(expected: dict[str, Any], device: DeviceInfo) -> None:
    if expected.get("only_on", device.kind) != device.kind:
        pytest.skip(f"only tried on a {expected['only_on']}")


def cases_of(kernel: Kernel, sizes: list[str], device: DeviceInfo) -> list[Case]:
    found = []
    workload = workloads.get(kernel.workload)
    for size in sizes:
        [problem] = parse_problems(size, workload, workload.probed_inputs[0])
        for params in sweep.parameter_sets(kernel, {}):
            case = sweep.case(kernel, problem, params, device)
            if case.skip is not None and case.skip.kind in ("requirement", "unavailable"):
                pytest.skip(skip_reason(case.skip))
            assert case.skip is None, case.skip
            found.append(case)
    return found


def new_session(device: DeviceInfo, checks: frozenset[str] = CHECKS) -> Session:
    """A separate session, in which no kernel has run yet."""
    cache = Cache()
    return Session(backends.open_backend(device, cache), cache, Options(timed=False, checks=checks))


@pytest.fixture(scope="module")
def bad_session(device: DeviceInfo) -> Iterator[Session]:
    """Separate from the other tests' session: these kernels write out of bounds."""
    session = new_session(device)
    yield session
    session.close()


@pytest.fixture(scope="module")
def gpu(own_folders: None) -> DeviceInfo:
    """The first CUDA device, also where a CPU is there; without one these tests fail."""
    return backends.devices("cuda")[0]


@pytest.fixture(scope="module")
def gpu_session(gpu: DeviceInfo) -> Iterator[Session]:
    session = new_session(gpu)
    yield session
    session.close()


def assert_rejected(outcome: Outcome, expected: dict[str, Any]) -> None:
    assert outcome.status == "wrong", f"accepted: {expected['mistake']}"
    assert outcome.check in expected["caught_by"], outcome.reason
    assert present(outcome.reason).startswith(f"{outcome.check}: ")
    for words in expected.get("pattern", []):
        assert words in present(outcome.reason)


def test_there_are_enough_and_each_has_its_file() -> None:
    assert len(EXPECTED) >= 40
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(EXPECTED)
    assert {kernel.name for kernel in catalogue.builtin()} >= {
        expected["from"] for expected in EXPECTED.values()
    }


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long) if name in LARGE else name for name in ORDINARY],
)
@pytest.mark.parametrize(
    "sizes", [1, pytest.param(None, marks=pytest.mark.long)], ids=["first size", "every size"]
)
def test_rejected_for_its_own_reason(name: str, sizes: int | None, bad_session: Session) -> None:
    expected, kernel = EXPECTED[name], load(name)
    require_kind(expected, bad_session.backend.info)
    for case in cases_of(kernel, expected["sizes"][:sizes], bad_session.backend.info):
        assert_rejected(bad_session.measure(case), expected)
    for case in cases_of(kernel, expected.get("right_at", []), bad_session.backend.info):
        outcome = bad_session.measure(case)
        assert outcome.status == "measured", f"{case.label}: {outcome.reason}"


def test_a_record_tells_where_the_result_was_wrong(bad_session: Session) -> None:
    kernel = load("bad-last-row-left-out")
    [case, *_] = cases_of(kernel, ["20x31x7"], bad_session.backend.info)
    found = bad_session.measure(case)
    rows = getattr(found.error_map, "rows", ())
    assert rows == (*["." * 31] * 19, "!" * 31), "the last row was never written"
    [right] = [kernel for kernel in catalogue.builtin() if kernel.name == "tiled"]
    [case, *_] = cases_of(right, ["20x31x7"], bad_session.backend.info)
    assert b"error_map" not in msgspec.json.encode(bad_session.measure(case))


@pytest.mark.parametrize("name", STATEFUL)
def test_rejected_although_it_keeps_state(name: str, device: DeviceInfo) -> None:
    expected, kernel = EXPECTED[name], load(name)
    for case in cases_of(kernel, expected["sizes"], device):
        session = new_session(device)
        try:
            assert_rejected(session.measure(case), expected)
        finally:
            session.close()


def test_a_kept_answer_is_found_even_if_it_is_that_to_the_reference(
    device: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the last sample of a tiny problem happens to be like the reference."""

    def like_the_reference(launches: Launches) -> None:
        checks = launches.checks
        checks.prepared.load(checks.prepared.reference)
        checks.run(checks.prepared.reference)

    monkeypatch.setattr(Launches, "untimed", like_the_reference)
    test_rejected_although_it_keeps_state("bad-first-answer", device)


@pytest.mark.gpu
@pytest.mark.parametrize("name", HUGE)
def test_rejected_beyond_32_bits(name: str, gpu_session: Session) -> None:
    expected = EXPECTED[name]
    for case in cases_of(load(name), expected["sizes"], gpu_session.backend.info):
        assert_rejected(gpu_session.measure(case), expected)


@pytest.mark.parametrize(
    "name", [name for name, found in EXPECTED.items() if "only" in found and name not in HUGE]
)
@pytest.mark.long
def test_slips_through_without_its_check(
    name: str, device: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: only this check catches these kernels."""
    expected, kernel = EXPECTED[name], load(name)
    require_kind(expected, device)
    without = set(expected["only"])
    if "reference" in without:
        without |= {"staggered", "reordered"}  # the same comparison with other builds
    # On a CPU, zeros may not reach the shared memory of every thread.
    attempts = 5 if without == {"shared"} else 1

    def outcome(case: Case) -> Outcome:
        session = new_session(device, CHECKS - without)
        if without == {"shared"}:  # zeros, where the check leaves NaN
            poison = session.judge.poison_shared
            monkeypatch.setattr(session, "options", Options(timed=False).on("cpu"))
            monkeypatch.setattr(session.judge, "poison_shared", lambda: poison(0))
        try:
            if "control_after" in expected:
                good = catalogue.load(own_file(expected["control_after"]))
                params = next(iter(sweep.parameter_sets(good, {})))
                session.measure(sweep.case(good, case.problem, params, device))
            return session.measure(case)
        finally:
            session.close()

    for case in cases_of(kernel, expected["sizes"][:2], device):
        found = [outcome(case)]
        while found[-1].status != "measured" and len(found) < attempts:
            found.append(outcome(case))
        assert found[-1].status == "measured", f"{case.label}: {found[-1].reason}"


@pytest.mark.parametrize("name", MENDED)
def test_right_in_any_order_with_its_barrier(
    name: str, bad_session: Session, tmp_path: Path
) -> None:
    text, replaced = (FOLDER / f"{name}.cu").read_text(encoding="utf-8"), EXPECTED[name]
    assert text.count(replaced["right_with"][0]) == 1
    (tmp_path / f"{name}.cu").write_text(text.replace(*replaced["right_with"]), encoding="utf-8")
    kernel = catalogue.load(tmp_path / f"{name}.cu")
    for case in cases_of(kernel, replaced["sizes"], bad_session.backend.info):
        outcome = bad_session.measure(case)
        assert outcome.status == "measured", f"{case.label}: {outcome.reason}"


def test_atomics_are_right_in_any_order(bad_session: Session, tmp_path: Path) -> None:
    (tmp_path / "atomic.cu").write_text(ATOMIC, encoding="utf-8")
    kernel = catalogue.load(tmp_path / "atomic.cu")
    case = sweep.case(kernel, Problem(33, 17, 200, beta=1), {}, bad_session.backend.info)
    outcome = bad_session.measure(case)
    assert outcome.status == "measured", outcome.reason


def test_two_blocks_may_not_add_to_one_element(bad_session: Session) -> None:
    require_kind(EXPECTED["bad-split-adds"], bad_session.backend.info)
    [case] = cases_of(load("bad-split-adds"), ["1"], bad_session.backend.info)
    reasons = []
    for _ in range(9):  # other checks may be the first to see it
        reasons.append(present(bad_session.measure(case).reason))
        if "each written by several blocks" in reasons[-1]:
            return
    pytest.fail("\n".join(reasons))


def test_a_race_that_is_wrong_by_chance_where_races_are_looked_for_is_wrong(
    bad_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    require, chances = Checks.require_right_trial, [True]

    def required(checks: Checks, trial: Any, check: str, *more: Any, **given: Any) -> Any:
        if check == "reordered" and not any(more) and chances:
            raise checks.wrong(check, "by chance" * chances.pop())
        return require(checks, trial, check, *more, **given)

    monkeypatch.setattr(Checks, "require_right_trial", required)
    good = catalogue.load(own_file("naive-2d"))
    case = sweep.case(good, Problem(33, 17, 65), {"TILE": 8}, bad_session.backend.info)
    assert "right with one block after the other, wrong with several at once" in present(
        bad_session.measure(case).reason
    )
    bad_session.forget()
    assert bad_session.measure(case).status == "measured"


@pytest.mark.gpu
@pytest.mark.parametrize("name", RACES)
def test_races_are_rejected_whatever_luck_does(name: str, gpu_session: Session) -> None:
    for case in cases_of(load(name), EXPECTED[name]["sizes"], gpu_session.backend.info):
        for _ in range(3):
            assert_rejected(gpu_session.measure(case), EXPECTED[name])


@pytest.mark.gpu
@pytest.mark.parametrize("name", RACES)
def test_luck_hides_races_from_all_other_checks(name: str, gpu: DeviceInfo) -> None:
    """The control: if warps happen to run in step, only the staggered build shows the race."""
    session = new_session(gpu, CHECKS - {"staggered"})
    try:
        cases = cases_of(load(name), EXPECTED[name]["sizes"], gpu)
        lucky = [case for case in cases * 5 if session.measure(case).status == "measured"]
    finally:
        session.close()
    if not lucky:
        pytest.skip("no luck on this device today: the other checks caught it every time")


@pytest.mark.parametrize("count", [3, pytest.param(1000, marks=pytest.mark.long)])
def test_no_false_alarm_in_random_problems(count: int, bad_session: Session) -> None:
    """Right kernels of random shapes, inputs and seeds are all accepted."""
    device = bad_session.backend.info
    random_ = random.Random(20240229)
    kernels = [kernel for kernel in catalogue.builtin() if kernel.source]
    accepted = 0
    while accepted < count:
        kernel = random_.choice(kernels)
        workload = workloads.get(kernel.workload)
        numbers = {
            "M": random_.randint(1, 70),
            "N": random_.randint(1, 70),
            "K": random_.choice([1, 2, 31, 32, 33, random_.randint(1, 200)]),
        }
        if workload.dimensions == ("N",):
            numbers["N"] = random_.choice([1, 2, 255, 256, 257, random_.randint(1, 20_000)])
        problem = Problem(
            **{name: numbers[name] if name in workload.dimensions else 1 for name in "MNK"},
            inputs=random_.choice(workload.inputs),
            seed=random_.randint(0, 10**6),
            workload=workload.name,
        )
        params = random_.choice(list(sweep.parameter_sets(kernel, {})))
        case = sweep.case(kernel, problem, params, device)
        if case.skip is None:
            outcome = bad_session.measure(case)
            assert outcome.status == "measured", f"{case.label} {problem}: {outcome.reason}"
            accepted += 1
