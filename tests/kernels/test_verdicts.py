"""Kernels and functions with a mistake, a trick or worse: each is refused for its own reason."""

from __future__ import annotations

import functools
import importlib
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from support.expected import JUDGED, Backend, Entry, Words, cases, end, entries, measured, tried
from support.kernels import saved, text_of
from support.nvcc import compile_cubin, find_nvcc
from support.optional import present
from support.paths import KERNELS
from support.products import case_of, opened, right

from matbench import backends, workloads
from matbench.backends.functions.calls import ISOLATED, TRUSTED
from matbench.bench import checks
from matbench.bench.launches import Launches
from matbench.bench.options import CHECKS, Options
from matbench.bench.runnable import Runnable
from matbench.bench.samples import Draw
from matbench.bench.session import Session
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, DeviceInfo, Problem
from matbench.records.outcome import Outcome
from matbench.show.reasons import skip_reason

#: What a file claims if it says nothing.
UNCLAIMED = {
    "precision": "float32", "error_constant": 0.0, "exponents": None, "deterministic": True,
}  # fmt: skip
CONTROLLED = {
    name: entry
    for name, entry in JUDGED.items()
    if entry.expected.only and not entry.expected.no_control
}
CHEATS = entries("cheats")
Devices = Callable[[Backend], DeviceInfo]


@pytest.fixture(scope="module")
def devices(request: pytest.FixtureRequest) -> Callable[[Backend], DeviceInfo]:
    """The device of a backend: the CPU, or the first CUDA device; without one, tests that need it
    fail, because they were requested."""

    @functools.cache
    def device(backend: Backend) -> DeviceInfo:
        if backend == "cuda":
            return backends.devices("cuda")[0]
        found: DeviceInfo = request.getfixturevalue("device")
        if found.backend != backend:
            pytest.skip(f"there is no device of {backend}")
        return found

    return device


@pytest.fixture(scope="module", autouse=True)
def _ends(own_folders: None) -> Iterator[None]:
    yield
    end()


def runnable(entry: Entry, size: str, device: DeviceInfo, function: str = "") -> list[Case]:
    """The cases of a size; skips a test of a kernel that cannot run here."""
    for module in entry.expected.imports:
        try:
            importlib.import_module(module)
        except (ImportError, Warning) as error:  # such as that of Numba for a newer NumPy
            pytest.skip(f"{module}: {error}")
    found = cases(entry, entry.kernel(function), size, device)
    assert found
    for case in found:
        if case.skip is not None and case.skip.kind in ("requirement", "unavailable"):
            pytest.skip(skip_reason(case.skip))
        assert case.skip is None, case.skip
    return found


def assert_measured(outcome: Outcome) -> None:
    case = outcome.case
    assert outcome.status == "measured", f"{case.kernel} {case.problem}: {outcome.reason}"
    assert "::" not in case.kernel or {TRUSTED, ISOLATED} & {*outcome.notes}


def assert_refused(entry: Entry, outcome: Outcome, checks: Words, backend: Backend) -> None:
    """With one of the statuses, by one of the checks, and with the words."""
    expected, reason = entry.expected, present(outcome.reason)
    assert outcome.status in expected.statuses, f"{outcome.status}, {reason}: {expected.about}"
    check = outcome.check if outcome.status == "wrong" else reason.split(":")[0]
    assert not checks or check in checks, reason
    assert outcome.status != "wrong" or reason.startswith(f"{check}: ")
    for words in expected.reason:
        assert words in reason
    some_of = expected.some_words(backend)
    assert not some_of or any(words.lower() in reason.lower() for words in some_of), reason


def assert_as_expected(entry: Entry, case: Case, device: DeviceInfo, backend: Backend) -> None:
    """The outcome with all checks."""
    expected, then = entry.expected, []
    spared: Words = ()
    if entry.folder == "hostile":  # the next case is measured all the same
        then = [case_of("tiled", case.problem, device, TILE=16)]
    if expected.status == "wrong" and expected.caught_by:  # each has a build of its own
        spared = (*{"staggered", "reordered"} - {*expected.caught_by, *expected.defused_by},)
    outcome = measured(entry, case, device, *then, spared=spared)
    if expected.defused_by and outcome.status == "measured":
        return
    if outcome.status == "measured" and "measured" in expected.statuses:
        assert_measured(outcome)
        assert (outcome.median_ns or 0) >= 1e9 * expected.takes_s
        claimed = {
            key for key, value in UNCLAIMED.items() if getattr(case.kernel, key, value) != value
        }
        assert not expected.claims or claimed == {*expected.claims}
        return
    assert_refused(entry, outcome, expected.defused_by + expected.caught_by, backend)


@pytest.mark.parametrize(("name", "backend_name", "size"), tried(JUDGED))
def test_it_is_as_expected(name: str, backend_name: Backend, size: str, devices: Devices) -> None:
    entry, device = JUDGED[name], devices(backend_name)
    for case in runnable(entry, size, device):
        assert_as_expected(entry, case, device, backend_name)


@pytest.mark.parametrize(
    ("name", "backend_name", "size"),
    tried(JUDGED, lambda _entry, backend: backend == "cuda", lambda e: e.right_at),
)
def test_it_is_right_abroad(name: str, backend_name: Backend, size: str, devices: Devices) -> None:
    entry, device = JUDGED[name], devices(backend_name)
    for case in runnable(entry, size, device):
        assert_measured(measured(entry, case, device))


@pytest.mark.parametrize(
    ("name", "backend_name", "size"),
    tried({n: e for n, e in JUDGED.items() if e.expected.defused_by and e.expected.caught_by}),
)
def test_cheating_is_caught(name: str, backend_name: Backend, size: str, devices: Devices) -> None:
    entry, device = JUDGED[name], devices(backend_name)
    for case in runnable(entry, size, device):
        outcome = measured(entry, case, device, off=entry.expected.defused_by)
        assert_refused(entry, outcome, entry.expected.caught_by, backend_name)


def control_is_long(entry: Entry, backend: Backend) -> bool:
    """Whether its control waits for the long tests: of a cheat, if another has the same checks (any
    may be too fast to be possible); of all others, but for functions on a GPU."""
    if entry.folder != "cheats":
        return backend == "opencl" or entry.folder == "bad"
    same = [
        other.name
        for other in CONTROLLED.values()
        if other.folder == "cheats"
        and {*other.expected.only} - {"impossible"} == {*entry.expected.only} - {"impossible"}
        and backend in other.expected.backends
    ]
    return same[0] != entry.name


@pytest.mark.parametrize(
    ("name", "backend_name", "size"),
    tried(CONTROLLED, control_is_long, lambda e: e.control_at or e.sizes),
)
def test_unchecked_it_passes(name: str, backend_name: Backend, size: str, devices: Devices) -> None:
    """The control: only these checks stop it."""
    entry, device = JUDGED[name], devices(backend_name)
    only = entry.expected.only
    # On a CPU, zeros may not reach the shared memory of every thread.
    attempts = 5 if only == ("shared",) else 1
    for case in runnable(entry, size, device):
        found = [measured(entry, case, device, off=only)]
        while found[-1].status != "measured" and len(found) < attempts:
            found.append(measured(entry, case, device, off=only))
        assert_measured(found[-1])


@pytest.mark.parametrize(
    ("name", "backend_name", "size"),
    tried(
        {name: entry for name, entry in JUDGED.items() if entry.expected.twin},
        lambda entry, _backend: not entry.expected.only,
    ),
)
def test_its_honest_twin(name: str, backend_name: Backend, size: str, devices: Devices) -> None:
    entry, device = JUDGED[name], devices(backend_name)
    for case in runnable(entry, size, device, entry.expected.twin):
        outcome = measured(entry, case, device)
        assert_measured(outcome)
        assert outcome.reason is None
        assert device.kind == "cpu" or present(outcome.host_ns) > 1e3


@pytest.mark.parametrize("name", [name for name, e in JUDGED.items() if e.expected.mended_by])
def test_it_is_right_once_it_is_mended(name: str, device: DeviceInfo, tmp_path: Path) -> None:
    entry = JUDGED[name]
    text, (mistake, right) = entry.path.read_text(encoding="utf-8"), entry.expected.mended_by
    assert text.count(mistake) == 1
    (tmp_path / entry.path.name).write_text(text.replace(mistake, right), encoding="utf-8")
    kernel = catalogue.load(tmp_path / entry.path.name)
    for size in entry.expected.sizes:
        for case in cases(entry, kernel, size, device):
            assert_measured(measured(entry, case, device))


@pytest.mark.parametrize("name", [name for name, entry in JUDGED.items() if entry.expected.pays])
def test_it_pays_without_its_checks(name: str, device: DeviceInfo) -> None:
    """It takes far less time if it is not stopped."""
    entry = JUDGED[name]
    [case] = runnable(entry, entry.expected.pays, device)
    honest = measured(entry, case, device)
    cheating = measured(entry, case, device, off=(*entry.expected.only, "impossible"))
    assert_measured(cheating)
    if honest.status == "measured":
        assert present(cheating.median_ns) < present(honest.median_ns) / 2
    else:
        assert_refused(entry, honest, entry.expected.defused_by, "opencl")


# -- the tables ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("folder", "least"), [("bad", 120), ("cheats", 70), ("hostile", 18)])
def test_there_are_enough_and_each_has_its_file(folder: str, least: int) -> None:
    found = entries(folder)
    assert len(found) >= least
    assert {path.stem for path in (KERNELS / folder).glob("*.cu")} == set(found)
    for backend in ("opencl", "cuda"):
        gaps = [
            name
            for name, entry in found.items()
            if backend in entry.expected.backends and {"measured"} < {*entry.expected.statuses}
        ]
        assert len(gaps) <= 3, gaps


BUILTIN = [kernel.name for kernel in catalogue.builtin()]


@pytest.mark.parametrize("name", JUDGED)
def test_the_table_is_complete(name: str) -> None:
    entry = JUDGED[name]
    expected, kernel = entry.expected, entry.kernel()
    assert expected.about
    assert expected.sizes
    assert expected.backends
    assert expected.made_from in ("", *BUILTIN)
    assert (entry.folder == "bad") == bool(expected.made_from)
    for names in (expected.only, expected.defused_by, expected.caught_by, expected.without):
        assert set(names) <= CHECKS
    assert not expected.constants or expected.constants.keys() == kernel.sweep.keys()
    is_caught = expected.caught_by or expected.defused_by
    told = [expected.reason or expected.some_words(backend) for backend in expected.backends]
    if kernel.kind.is_apart:
        return
    assert not expected.given
    assert kernel.name == entry.name
    assert "measured" not in expected.statuses or expected.why or expected.claims
    assert is_caught or all(told) or "measured" in expected.statuses
    assert entry.folder != "bad" or expected.statuses == ("wrong",)
    if entry.folder == "cheats":
        assert ("cuda" in kernel.requires) == (expected.backends == ("cuda",))
        inlined = re.sub(r"static __device__[^;{]*\{", "", kernel.source)
        assert "__device__ " not in inlined or expected.variables
        assert not is_caught or expected.only or expected.no_control, "it needs a control"


def test_every_check_has_a_control() -> None:
    """Something that passes once the check is switched off."""
    needed = {check for entry in JUDGED.values() for check in entry.expected.only}
    of_sustained = {"repeated"}  # see tests/bench/test_sustained.py
    assert needed == CHECKS - of_sustained


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("bad/bad-last-row-left-out", {"caught_by": ("guards",)}),
        ("bad/bad-last-row-left-out", {"reason": ("in the first row",)}),
        ("bad/bad-last-row-left-out", {"any_of": {"opencl": ("in the first row",)}}),
        ("bad/bad-last-row-left-out", {"status": ("failed", "measured")}),
        ("cheats/cheat-claims-exponents", {"claims": ("precision",)}),
        ("cheats/cheat-every-third", {"caught_by": ("mask",), "defused_by": ("mask",)}),
        ("cheats/cheat-every-third", {"status": "measured"}),
    ],
)
def test_a_wrong_expectation_is_noticed(
    name: str, wrong: dict[str, Any], device: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: another kernel's check, reason, status or claim does not fit."""
    entry = JUDGED[name]
    size = entry.expected.sizes[0]
    other = entry._replace(expected=msgspec.structs.replace(entry.expected, **wrong))
    monkeypatch.setitem(JUDGED, name, other)
    with pytest.raises(AssertionError):
        test_it_is_as_expected(name, "opencl", size, lambda _: device)


def test_a_wrong_kernel_is_not_right_elsewhere(device: DeviceInfo) -> None:
    with pytest.raises(AssertionError):
        test_it_is_right_abroad("bad/bad-last-row-left-out", "opencl", "33", lambda _: device)


def test_a_case_after_a_hostile_kernel_has_to_be_measured(device: DeviceInfo) -> None:
    entry = JUDGED["bad/bad-last-row-left-out"]
    [case, *_] = runnable(entry, "33", device)
    with pytest.raises(AssertionError, match="after bad-last-row-left-out: reference: "):
        measured(entry, case, device, case)


@pytest.mark.long
@pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
@pytest.mark.parametrize("name", [n for n, e in CHEATS.items() if "cuda" in e.expected.backends])
def test_compiles_for_a_gpu(name: str) -> None:
    assert compile_cubin(CHEATS[name].path, "sm_90")


# -- false alarms, luck, and what a record tells -------------------------------------------------


BAD = entries("bad")
RACES = ["bad-no-barrier-after-staging", "bad-no-second-barrier"]
#: Right in any order, although its threads add to one number, or its blocks to one element.
ATOMIC = text_of("atomic.cu")
UNTIMED = Options(timed=False)


def bad_cases(name: str, size: str, device: DeviceInfo) -> list[Case]:
    return cases(BAD[name], BAD[name].kernel(), size, device)


@pytest.fixture(scope="module")
def bad_session(device: DeviceInfo) -> Iterator[Session]:
    """Separate from the other tests' session: these kernels write out of bounds."""
    with opened(device, UNTIMED) as session:
        yield session


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
    with opened(device, UNTIMED) as session:
        outcome = session.measure(case)
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
    unstaggered = msgspec.structs.replace(UNTIMED, checks=CHECKS - {"staggered"})
    with opened(info, UNTIMED) as whole, opened(info, unstaggered) as without:
        for case in 3 * found:
            assert whole.measure(case).status == "wrong"
        lucky = [case for case in found * 5 if without.measure(case).status == "measured"]
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
        workload = workloads.workload_of(kernel)
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
