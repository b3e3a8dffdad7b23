"""Mistakes and races, looked at more closely; no right kernel is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from support.expected import cases, entries
from support.kernels import KernelWriter, saved, text_of
from support.optional import present
from support.products import case_of, right

from matbench import backends, workloads
from matbench.bench import checks
from matbench.bench.launches import Launches
from matbench.bench.options import CHECKS, Options
from matbench.bench.runnable import Runnable
from matbench.bench.samples import Draw
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, DeviceInfo, Problem

BAD = entries("bad")
RACES = ["bad-no-barrier-after-staging", "bad-no-second-barrier"]
#: Right in any order, although its threads add to one number, or its blocks to one element.
ATOMIC = text_of("atomic.cu")


def bad_cases(name: str, size: str, device: DeviceInfo) -> list[Case]:
    return cases(BAD[name], BAD[name].kernel(), size, device)


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


def test_a_record_tells_where_the_result_was_wrong(bad_session: Session) -> None:
    [case, *_] = bad_cases("bad-last-row-left-out", "20x31x7", bad_session.backend.info)
    found = bad_session.measure(case)
    rows = getattr(found.error_map, "rows", ())
    assert rows == (*["." * 31] * 19, "!" * 31), "the last row was never written"
    case = case_of("tiled", "20x31x7", bad_session.backend.info, TILE=8)
    assert b"error_map" not in msgspec.json.encode(bad_session.measure(case))
    for size, rows in (("1x1x7", ()), ("2x1x7", (".", "!"))):
        [case, *_] = bad_cases("bad-last-row-left-out", size, bad_session.backend.info)
        assert getattr(bad_session.measure(case).error_map, "rows", ()) == rows


def test_a_kept_answer_is_found_even_if_it_is_that_to_the_reference(
    device: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the last sample of a tiny problem happens to be like the reference."""

    def like_the_reference(launches: Launches) -> None:
        runnable = launches.runnable
        runnable.run(Draw(runnable.prepared.reference))

    monkeypatch.setattr(Launches, "untimed", like_the_reference)
    [case, *_] = bad_cases("bad-first-answer", BAD["bad-first-answer"].expected.sizes[0], device)
    session = new_session(device)
    outcome = session.measure(case)
    session.close()
    assert outcome.check in BAD["bad-first-answer"].expected.caught_by


def test_atomics_are_right_in_any_order(bad_session: Session, tmp_path: Path) -> None:
    path = saved(tmp_path / "atomic.cu", ATOMIC)
    right(bad_session, case_of(path, Problem(33, 17, 200, beta=1), bad_session.backend.info))


def test_large_cases_are_not_tried_in_other_orders(device: DeviceInfo) -> None:
    for size, is_tried in ((256, True), (257, False)):  # 256³ products and sums are 2²⁵ operations
        case = case_of("tiled", size, device, TILE=16)
        assert (case in checks.reordered_cases(case)) == is_tried


def test_in_each_order_every_block_runs() -> None:
    counts = np.arange(1, checks._MOST_BLOCKS + 1)
    assert np.gcd(checks._STRIDE, counts).max() == 1


def test_two_blocks_may_not_add_to_one_element(bad_session: Session) -> None:
    [case] = bad_cases("bad-split-adds", "1", bad_session.backend.info)
    reasons = []
    for _ in range(9):  # other checks may be the first to see it
        reasons.append(present(bad_session.measure(case).reason))
        if "2,015 elements of C are each written by several blocks, as at 65x31" in reasons[-1]:
            return
    pytest.fail("\n".join(reasons))


def test_a_race_that_is_wrong_by_chance_where_races_are_looked_for_is_wrong(
    bad_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    require, chances = Runnable.require_right_trial, [True]

    def required(runnable: Runnable, trial: Any, check: str, *more: Any, **given: Any) -> Any:
        if check == "reordered" and not any(more) and chances:
            raise runnable.wrong(check, "by chance" * chances.pop())
        return require(runnable, trial, check, *more, **given)

    monkeypatch.setattr(Runnable, "require_right_trial", required)
    case = case_of("naive-2d", "33x17x65", bad_session.backend.info, TILE=8)
    assert "right with one block after the other, wrong with several at once" in present(
        bad_session.measure(case).reason
    )
    bad_session.forget()
    assert bad_session.measure(case).status == "measured"


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.parametrize("name", RACES)
def test_races_are_wrong_whatever_luck_does(name: str, info: DeviceInfo) -> None:
    """The control: if warps happen to run in step, only the staggered build shows the race."""
    found = [case for size in BAD[name].expected.sizes for case in bad_cases(name, size, info)]
    sessions = new_session(info), new_session(info, CHECKS - {"staggered"})
    try:
        for case in 3 * found:
            assert sessions[0].measure(case).status == "wrong"
        lucky = [case for case in found * 5 if sessions[1].measure(case).status == "measured"]
    finally:
        for session in sessions:
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
            right(bad_session, case)
            accepted += 1


def test_what_is_measured_was_read(bad_session: Session, write_kernel: KernelWriter) -> None:
    """A file that is replaced after it was read: the text that was read runs and is recorded."""
    path = write_kernel()
    kernel = catalogue.load(path)
    path.write_text("no kernel at all")
    outcome = right(bad_session, case_of(kernel, 33, bad_session.backend.info, TILE=8))
    assert outcome.case.sha256 == kernel.sha256
