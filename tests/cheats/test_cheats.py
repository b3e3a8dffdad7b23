"""Kernels that cheat get no good time, each for its own reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec
import pytest
from support.kernels import KernelWriter
from support.nvcc import compile_cubin, find_nvcc
from support.optional import present
from support.paths import BAD_KERNELS
from support.toml import table

from matbench import backends, workloads
from matbench.cache import Cache
from matbench.errors import MatbenchError
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.measure import launches
from matbench.measure.options import CHECKS, Options
from matbench.measure.session import Session
from matbench.model import Case, DeviceInfo, Kernel
from matbench.records.outcome import Outcome
from matbench.show.reasons import skip_reason

FOLDER = Path(__file__).parent
CHEATS: dict[str, dict[str, Any]] = table(FOLDER / "expected.toml")
#: The expected result of a cheat; without any of these it is caught.
KINDS = ("defused_by", "harmless", "refused", "claims", "not_caught")


#: What a file claims if it says nothing.
UNCLAIMED = {
    "precision": "float32",
    "error_constant": 0.0,
    "exponents": None,
    "deterministic": True,
}
Rule = Callable[[str, DeviceInfo, int | None], None]


class Result(NamedTuple):
    """A case that ran, or what stopped it."""

    status: str
    reason: str
    outcome: Outcome | None = None

    @property
    def check(self) -> str:
        return self.reason.split(":")[0]


def kind(name: str) -> str:
    found = [kind for kind in KINDS if kind in CHEATS[name]]
    assert len(found) < 2, f"{name}: {found}"
    return found[0] if found else "caught_by"


def load(name: str) -> Kernel:
    return catalogue.load(FOLDER / f"{name}.cu")


def case_of(name: str, size: str, device: DeviceInfo) -> Case:
    kernel, cheat = load(name), CHEATS[name]
    workload = workloads.get(kernel.workload)
    [problem] = parse_problems(size, workload, cheat.get("inputs", workload.probed_inputs[0]))
    [params] = sweep.parameter_sets(kernel, {})
    case = sweep.case(kernel, problem, params, device)
    if case.skip is not None and case.skip.kind == "requirement":
        pytest.skip(skip_reason(case.skip))
    return case


def measure(case: Case, device: DeviceInfo, without: Iterable[str] = ()) -> Result:
    """In a separate session, so that no cheat finds what another left."""
    assert case.skip is None, case.skip
    cache = Cache()
    cheat = CHEATS.get(case.kernel.name, {})
    hot = cheat.get("hot", False)
    options = Options(
        timed=device.kind == "gpu" or not cheat.get("untimed", False),
        cold=not hot,
        hot=hot,
        blocks=False,
        max_time_s=0.05,
        # Other tests use the GPU, too, and keep it busy.
        checks=CHECKS - {"idle", *without},
    )
    if without:  # a cheat that is let through may do anything at another size
        options = msgspec.structs.replace(options, checks=options.checks - {"reordered"})
    session = Session(backends.open_backend(device, cache), cache, options)
    few = launches._MOST_SETS
    if hot and device.kind == "cpu":
        session.options = msgspec.structs.replace(session.options, back_to_back=True)
        few = 6  # with its guards, a set takes a CPU as long as thousands of products
    try:
        with patch.object(launches, "_MOST_SETS", few):
            outcome = session.measure(case)
    except MatbenchError as error:
        return Result("failed", str(error))
    finally:
        session.close()
    return Result(outcome.status, outcome.reason or "", outcome)


def median_ns(result: Result) -> float:
    outcome = present(result.outcome)
    timing = present(outcome.cold or outcome.hot)
    return present(timing.median_ns)


def assert_rejected(name: str, result: Result, checks: Iterable[str]) -> None:
    cheat = CHEATS[name]
    status = cheat.get("status", "wrong")
    assert result.status in (("wrong", "failed") if status == "either" else (status,)), (
        f"{result.status}, {result.reason}: {cheat['exploits']}"
    )
    assert result.check in checks, result.reason


def assert_measured(result: Result, case: Case) -> None:
    assert result.status == "measured", f"{case.label} {case.problem.size}: {result.reason}"


def is_refused(name: str, result: Result) -> bool:
    """Whether a check that defuses a cheat refused to run it, or caught it."""
    cheat = CHEATS[name]
    return result.check in {*cheat["defused_by"], *cheat.get("caught_by", ())}


# -- with all checks -------------------------------------------------------------------------------


def rejected(name: str, device: DeviceInfo, sizes: int | None = None) -> None:
    for size in CHEATS[name]["sizes"][:sizes]:
        result = measure(case_of(name, size, device), device)
        assert_rejected(name, result, CHEATS[name]["caught_by"])
    for size in CHEATS[name].get("right_at", ()):
        case = case_of(name, size, device)
        assert_measured(measure(case, device), case)


def defused(name: str, device: DeviceInfo, sizes: int | None = None) -> None:
    for size in CHEATS[name]["sizes"][:sizes]:
        case = case_of(name, size, device)
        result = measure(case, device)
        if not is_refused(name, result):
            assert_measured(result, case)


def caught_once_it_cheats(name: str, device: DeviceInfo, sizes: int | None = None) -> None:
    cheat = CHEATS[name]
    for size in cheat["sizes"][:sizes]:
        result = measure(case_of(name, size, device), device, cheat["defused_by"])
        assert_rejected(name, result, cheat["caught_by"])


def passes(name: str, device: DeviceInfo, sizes: int | None = None) -> None:
    """The control: only these checks stop it."""
    for size in CHEATS[name]["sizes"][:sizes]:
        case = case_of(name, size, device)
        assert_measured(measure(case, device, CHEATS[name]["only"]), case)


def pays(name: str, device: DeviceInfo) -> None:
    """It takes far less time if it is not stopped."""
    case = case_of(name, CHEATS[name]["pays"], device)
    honest = measure(case, device)
    cheating = measure(case, device, {*CHEATS[name]["only"], "impossible"})
    assert_measured(cheating, case)
    if not is_refused(name, honest):
        assert_measured(honest, case)
        assert median_ns(cheating) < median_ns(honest) / 2


def not_caught(name: str, device: DeviceInfo, sizes: int | None = None) -> None:
    """Known gaps. A race may be caught by chance; what is always caught belongs elsewhere."""
    for size in CHEATS[name]["sizes"][:sizes]:
        result = measure(case_of(name, size, device), device)
        assert result.status in ("measured", "wrong"), result.reason


def harmless(name: str, device: DeviceInfo, sizes: int | None = None) -> None:
    for size in CHEATS[name]["sizes"][:sizes]:
        case = case_of(name, size, device)
        assert_measured(measure(case, device), case)


def refused(name: str, device: DeviceInfo, sizes: int | None = None) -> None:
    for size in CHEATS[name]["sizes"][:sizes]:
        result = measure(case_of(name, size, device), device)
        assert result.status == "failed"
        assert CHEATS[name]["refused"] in result.reason


def shown_as_claims(name: str, device: DeviceInfo, sizes: int | None = None) -> None:
    """It is measured, and its case records its claims."""
    for size in CHEATS[name]["sizes"][:sizes]:
        case = case_of(name, size, device)
        assert_measured(measure(case, device), case)
        said = {claim: getattr(case.kernel, claim, None) for claim in UNCLAIMED}
        claimed = {claim for claim, default in UNCLAIMED.items() if said[claim] != default}
        assert claimed == set(CHEATS[name]["claims"])


#: With all checks.
RULES: dict[str, Rule] = {
    "caught_by": rejected,
    "defused_by": defused,
    "harmless": harmless,
    "refused": refused,
    "claims": shown_as_claims,
    "not_caught": not_caught,
}
ONCE_IT_CHEATS = [name for name in CHEATS if {"defused_by", "caught_by"} <= CHEATS[name].keys()]
CONTROLLED = [
    name for name, cheat in CHEATS.items() if "only" in cheat and "no_control" not in cheat
]
PAYING = [name for name in CHEATS if "pays" in CHEATS[name]]


def on(backend: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if backend in CHEATS[name]["backends"]]


@pytest.fixture(scope="module")
def gpu(own_folders: None) -> DeviceInfo:
    """The first CUDA device, also where a CPU is there; without one these tests fail."""
    return backends.devices("cuda")[0]


def soon_or_long(names: Iterable[str]) -> list[Any]:
    return [
        pytest.param(name, marks=pytest.mark.long) if "long" in CHEATS[name] else name
        for name in names
    ]


EVERY_SIZE = pytest.mark.parametrize(
    "sizes", [1, pytest.param(None, marks=pytest.mark.long)], ids=["first size", "every size"]
)


@EVERY_SIZE
@pytest.mark.parametrize("name", soon_or_long(on("opencl", CHEATS)))
def test_gets_nothing(name: str, sizes: int | None, device: DeviceInfo) -> None:
    RULES[kind(name)](name, device, sizes)


@EVERY_SIZE
@pytest.mark.parametrize("name", on("opencl", ONCE_IT_CHEATS))
def test_is_caught_once_it_cheats(name: str, sizes: int | None, device: DeviceInfo) -> None:
    caught_once_it_cheats(name, device, sizes)


def first_of_each_check(names: list[str]) -> Iterator[Any]:
    """The other cheats' controls take long. Any cheat may be too fast to be possible."""
    seen = set()
    for name in names:
        checks = frozenset(CHEATS[name]["only"]) - {"impossible"}
        yield pytest.param(name, marks=pytest.mark.long) if checks in seen else name
        seen.add(checks)


@EVERY_SIZE
@pytest.mark.parametrize("name", list(first_of_each_check(on("opencl", CONTROLLED))))
def test_passes_without_its_checks(name: str, sizes: int | None, device: DeviceInfo) -> None:
    passes(name, device, sizes)


@pytest.mark.parametrize("name", on("opencl", PAYING))
def test_pays_without_its_checks(name: str, device: DeviceInfo) -> None:
    pays(name, device)


@pytest.mark.gpu
@pytest.mark.parametrize("name", on("cuda", CHEATS))
def test_gets_nothing_on_a_gpu(name: str, gpu: DeviceInfo) -> None:
    RULES[kind(name)](name, gpu, None)


@pytest.mark.gpu
@pytest.mark.parametrize("name", on("cuda", ONCE_IT_CHEATS))
def test_is_caught_on_a_gpu_once_it_cheats(name: str, gpu: DeviceInfo) -> None:
    caught_once_it_cheats(name, gpu)


@pytest.mark.gpu
@pytest.mark.parametrize("name", on("cuda", CONTROLLED))
def test_passes_on_a_gpu_without_its_checks(name: str, gpu: DeviceInfo) -> None:
    passes(name, gpu)


# -- the table, and attacks from outside a kernel file ---------------------------------------------


def test_there_are_enough_and_each_has_its_file() -> None:
    assert len(CHEATS) >= 44
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(CHEATS)
    for backend in ("opencl", "cuda"):
        gaps = [name for name in on(backend, CHEATS) if kind(name) == "not_caught"]
        assert len(gaps) <= 3, gaps


@pytest.mark.parametrize("name", CHEATS)
def test_the_table_is_complete(name: str) -> None:
    cheat, kernel = CHEATS[name], load(name)
    assert kernel.name == name
    assert cheat["exploits"].endswith(".")
    assert ("cuda" in kernel.requires) == (cheat["backends"] == ["cuda"])
    assert "__device__ " not in re.sub(r"static __device__[^;{]*\{", "", kernel.source) or (
        cheat.get("device_variables")
    )
    assert set(cheat.get("only", ())) <= CHECKS
    assert set(cheat.get("defused_by", ())) <= CHECKS
    assert set(cheat.get("caught_by", ())) <= CHECKS
    if kind(name) in ("caught_by", "defused_by"):
        assert "only" in cheat or "no_control" in cheat


def test_every_check_has_a_control() -> None:
    """Some kernel, a cheat or a mistaken one, that passes once the check is switched off."""
    mistakes = table(BAD_KERNELS / "expected.toml")
    every = (*CHEATS.values(), *mistakes.values())
    needed = {check for found in every for check in found.get("only", ())}
    of_functions = {"ready", "returned", "replaced", "growth"}  # see tests/functions and tests/gpu
    of_sustained = {"repeated"}  # see tests/measure/test_sustained.py
    # No kernel outlives its launch by itself; libraries may.
    assert needed == CHECKS - {"idle"} - of_functions - of_sustained


@pytest.mark.long
@pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
@pytest.mark.parametrize("name", on("cuda", CHEATS))
def test_compiles_for_a_gpu(name: str) -> None:
    assert compile_cubin(FOLDER / f"{name}.cu", "sm_90")


def test_what_is_measured_is_what_was_read(
    tmp_path: Path, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    """A file that is replaced after it was read: the text that was read runs and is recorded."""
    path = write_kernel()
    kernel = catalogue.load(path)
    path.write_text("no kernel at all")
    [problem] = parse_problems("33", workloads.get("matmul"), "uniform")
    case = sweep.case(kernel, problem, next(iter(sweep.parameter_sets(kernel, {}))), device)
    result = measure(case, device)
    assert_measured(result, case)
    assert present(result.outcome).case.sha256 == kernel.sha256
