"""Kernels and functions with a mistake, a trick or worse: each is refused for its own reason."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest
from support.expected import JUDGED, Entry, Words, cases, entries, measured, tried
from support.kernels import own_file
from support.nvcc import compile_cubin, find_nvcc
from support.optional import present
from support.paths import KERNELS

from matbench import backends
from matbench.backends.functions.calls import TRUSTED
from matbench.kernelfile import catalogue, sweep
from matbench.measure.options import CHECKS
from matbench.model import Case, DeviceInfo
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


@pytest.fixture(scope="module")
def devices(request: pytest.FixtureRequest) -> Callable[[str], DeviceInfo]:
    """The device of a backend: the one for tests, or the first CUDA device, also where a CPU is;
    without one, tests that need it fail, because they were requested."""
    found: dict[str, DeviceInfo] = {}

    def device(backend: str) -> DeviceInfo:
        if backend not in found:
            found[backend] = (
                backends.devices("cuda")[0]
                if backend == "cuda"
                else request.getfixturevalue("device")
            )
        return found[backend]

    return device


@pytest.fixture(scope="module", autouse=True)
def _ends(matbench: object) -> None:
    """The processes of the tests end with those of the command line."""


def runnable(
    entry: Entry, sizes: Iterable[str], device: DeviceInfo, function: str = ""
) -> list[Case]:
    """The cases of these sizes; skips a test of a kernel that cannot run here."""
    for module in entry.expected.imports:
        try:
            importlib.import_module(module)
        except ImportError as error:  # such as that of Numba for a newer NumPy
            pytest.skip(f"{module}: {error}")
    found = [case for size in sizes for case in cases(entry, entry.kernel(function), size, device)]
    for case in found:
        if case.skip is not None and case.skip.kind in ("requirement", "unavailable"):
            pytest.skip(skip_reason(case.skip))
        assert case.skip is None, case.skip
    return found


def assert_measured(outcome: Outcome) -> None:
    case = outcome.case
    assert outcome.status == "measured", f"{case.kernel} {case.problem}: {outcome.reason}"


def assert_refused(entry: Entry, outcome: Outcome, checks: Words, backend: str) -> None:
    """With one of the statuses, by one of the checks, and with the words."""
    expected, reason = entry.expected, present(outcome.reason)
    assert outcome.status in expected.statuses, f"{outcome.status}, {reason}: {expected.about}"
    assert not checks or reason.split(":")[0] in checks, reason
    for words in expected.reason:
        assert words in reason
    some_of = expected.words(backend)
    assert not some_of or any(words.lower() in reason.lower() for words in some_of), reason


def assert_as_expected(entry: Entry, case: Case, device: DeviceInfo) -> None:
    """The outcome with all checks."""
    expected, then = entry.expected, []
    if entry.folder == "hostile":  # the next case is measured all the same
        tiled = catalogue.load(own_file("tiled"))
        then = [sweep.case(tiled, case.problem, {"TILE": 16}, device)]
    outcome = measured(entry, case, device, *then)
    if expected.defused_by and outcome.status == "measured":
        return
    if outcome.status == "measured" and "measured" in expected.statuses:
        assert outcome.reason is None
        claimed = {
            key for key, value in UNCLAIMED.items() if getattr(case.kernel, key, value) != value
        }
        assert not expected.claims or claimed == {*expected.claims}
        assert not case.kernel.is_function or TRUSTED in outcome.notes
        return
    assert_refused(entry, outcome, expected.defused_by + expected.caught_by, device.backend)


FIRST_SIZE = pytest.mark.parametrize(
    "every_size", [False, pytest.param(True, marks=pytest.mark.long)], ids=["first", "every"]
)


@FIRST_SIZE
@pytest.mark.parametrize(("name", "backend_name"), tried(JUDGED))
def test_it_becomes_what_is_expected(
    name: str, backend_name: str, every_size: bool, devices: Callable[[str], DeviceInfo]
) -> None:
    entry, device = JUDGED[name], devices(backend_name)
    sizes = entry.expected.sizes
    for case in runnable(entry, sizes if every_size else sizes[:1], device):
        assert_as_expected(entry, case, device)
    for case in runnable(entry, entry.expected.right_at, device):
        assert_measured(measured(entry, case, device))


@pytest.mark.parametrize(
    ("name", "backend_name"),
    tried({n: e for n, e in JUDGED.items() if e.expected.defused_by and e.expected.caught_by}),
)
def test_it_is_caught_once_it_cheats(
    name: str, backend_name: str, devices: Callable[[str], DeviceInfo]
) -> None:
    entry, device = JUDGED[name], devices(backend_name)
    for case in runnable(entry, entry.expected.sizes[:1], device):
        outcome = measured(entry, case, device, off=entry.expected.defused_by)
        assert_refused(entry, outcome, entry.expected.caught_by, backend_name)


def control_is_long(entry: Entry, backend: str) -> bool:
    """Whether its control waits for the long tests: of a cheat, if another has the same checks (any
    may be too fast to be possible); on a CPU, of all others."""
    if backend == "cuda":
        return entry.folder == "bad"  # what luck hides, it hides elsewhere too
    if entry.folder != "cheats":
        return True
    same = [
        other.name
        for other in CONTROLLED.values()
        if other.folder == "cheats"
        and {*other.expected.only} - {"impossible"} == {*entry.expected.only} - {"impossible"}
        and backend in other.expected.backends
    ]
    return same[0] != entry.name


@pytest.mark.parametrize(("name", "backend_name"), tried(CONTROLLED, control_is_long))
def test_it_passes_without_its_checks(
    name: str, backend_name: str, devices: Callable[[str], DeviceInfo]
) -> None:
    """The control: only these checks stop it."""
    entry, device = JUDGED[name], devices(backend_name)
    only = entry.expected.only
    # On a CPU, zeros may not reach the shared memory of every thread.
    attempts = 5 if only == ("shared",) else 1
    for case in runnable(entry, (entry.expected.control_at or entry.expected.sizes)[:1], device):
        found = [measured(entry, case, device, off=only)]
        while found[-1].status != "measured" and len(found) < attempts:
            found.append(measured(entry, case, device, off=only))
        assert_measured(found[-1])


@pytest.mark.parametrize(
    ("name", "backend_name"),
    tried(
        {name: entry for name, entry in JUDGED.items() if entry.expected.twin},
        lambda entry, backend: backend == "opencl" and not entry.expected.only,
    ),
)
def test_its_honest_twin_is_measured(
    name: str, backend_name: str, devices: Callable[[str], DeviceInfo]
) -> None:
    entry, device = JUDGED[name], devices(backend_name)
    for case in runnable(entry, entry.expected.sizes, device, entry.expected.twin):
        outcome = measured(entry, case, device)
        assert (outcome.status, outcome.reason) == ("measured", None)
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
    [case] = runnable(entry, [entry.expected.pays], device)
    honest = measured(entry, case, device)
    cheating = measured(entry, case, device, off=(*entry.expected.only, "impossible"))
    assert_measured(cheating)
    if honest.status == "measured":
        assert median_ns(cheating) < median_ns(honest) / 2
    else:
        assert_refused(entry, honest, entry.expected.defused_by, "opencl")


def median_ns(outcome: Outcome) -> float:
    return present(present(outcome.cold or outcome.hot).median_ns)


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
            if backend in entry.expected.backends
            and {"measured", "wrong"} == {*entry.expected.statuses}
        ]
        assert len(gaps) <= 3, gaps


@pytest.mark.parametrize("name", JUDGED)
def test_the_table_is_complete(name: str) -> None:
    entry = JUDGED[name]
    expected, kernel = entry.expected, entry.kernel()
    assert expected.about
    assert expected.sizes
    assert expected.made_from in ("", *(kernel.name for kernel in catalogue.builtin()))
    for checks in (expected.only, expected.defused_by, expected.caught_by, expected.without):
        assert set(checks) <= CHECKS
    if kernel.is_function:
        return
    assert kernel.name == entry.name
    assert "cuda" not in kernel.requires or "opencl" not in expected.backends
    if entry.folder != "cheats":
        return
    inlined = re.sub(r"static __device__[^;{]*\{", "", kernel.source)
    assert "__device__ " not in inlined or expected.variables
    if expected.caught_by or expected.defused_by:
        assert expected.only or expected.no_control


def test_every_check_has_a_control() -> None:
    """Something that passes once the check is switched off."""
    needed = {check for entry in JUDGED.values() for check in entry.expected.only}
    of_sustained = {"repeated"}  # see tests/measure/test_sustained.py
    # No kernel outlives its launch by itself; libraries may.
    assert needed == CHECKS - {"idle"} - of_sustained


def test_a_wrong_expectation_is_noticed(device: DeviceInfo) -> None:
    """The control: another kernel's check, reason or status does not fit."""
    entry = JUDGED["bad/bad-last-row-left-out"]
    [case, *_] = runnable(entry, entry.expected.sizes[:1], device)
    assert_as_expected(entry, case, device)
    for other in (
        {"caught_by": ("guards",)},
        {"reason": ("in the first row",)},
        {"any_of": {"opencl": ("in the first row",), "cuda": ()}},
        {"status": ("failed", "measured")},
    ):
        wrong = entry._replace(expected=msgspec.structs.replace(entry.expected, **other))
        with pytest.raises(AssertionError):
            assert_as_expected(wrong, case, device)


@pytest.mark.long
@pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
@pytest.mark.parametrize("name", [n for n, e in CHEATS.items() if "cuda" in e.expected.backends])
def test_compiles_for_a_gpu(name: str) -> None:
    assert compile_cubin(CHEATS[name].path, "sm_90")
