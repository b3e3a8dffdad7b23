"""Sizes, parameters and cases: what runs, what is skipped and why, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import toml
from support.devices import CPU, GPU
from support.golden import TableRegression
from support.kernels import text_of
from support.optional import present

from matbench import workloads
from matbench.bench.session import Session
from matbench.cli.options import ConstantOptions
from matbench.errors import UsageError
from matbench.features.explain import explanation
from matbench.kernelfile import catalogue, instrument, signature, sweep
from matbench.kernelfile.sizes import MAX_SIZE, parse_problems, parse_sizes
from matbench.model import (
    Box,
    Case,
    DeviceInfo,
    Kernel,
    Launch,
    LaunchRules,
    Parameter,
    Problem,
    Skip,
)
from matbench.show.reasons import skip_reason

TILED = Kernel(
    name="tiled",
    summary="",
    sweep={"TILE": (8, 16, 32, 8)},
    tune={"TILE": (8, 64), "DEEP": (1, 2)},
    launch=LaunchRules(
        where=("TILE * TILE <= max_threads_per_block", "K <= 5000"),
        block=("TILE", "TILE"),
        grid=("ceil_div(N, TILE)", "ceil_div(M, TILE)"),
        shared_bytes="2 * TILE * TILE * 4",
    ),
)
PLAIN = Kernel(name="plain", summary="", launch=LaunchRules(block=(1,), grid=("M",)))


def problem(m: int, n: int | None = None, k: int | None = None) -> Problem:
    return Problem(M=m, N=n or m, K=k or m)


def changed(kernel: Kernel = PLAIN, **changes: object) -> Kernel:
    return msgspec.structs.replace(kernel, **changes)


def one(kernel: Kernel, size: int = 8, device: DeviceInfo = GPU, **params: int) -> Case:
    return sweep.case(kernel, problem(size), params, device)


# -- settings ------------------------------------------------------------------------------------


def test_settings() -> None:
    settings = ConstantOptions(("DEEP=8, 16,8,32", " WIDE = 4"))
    given = settings.values([TILED, PLAIN, changed(sweep={"WIDE": (1,)})])
    assert given == {"DEEP": (8, 16, 32), "WIDE": (4,)}
    deep = [sets["DEEP"] for sets in sweep.parameter_sets(TILED, given)]  # tuned alone
    assert deep == [8, 16, 32] * 3


# -- cases ---------------------------------------------------------------------------------------


def test_kernels_that_read_alike_come_together() -> None:
    """Other kernels need other inputs, which are slow to make at large sizes."""
    narrow = msgspec.structs.replace(PLAIN, name="narrow", precision="tf32")
    found = sweep.cases([TILED, narrow, PLAIN], [problem(8), problem(9)], {"TILE": (8,)}, GPU)
    assert [c.kernel.name for c in found] == ["tiled", "plain", "narrow"] * 2


def test_a_launch_is_worked_out() -> None:
    case = sweep.case(TILED, problem(100, 50, 7), {"TILE": 16}, GPU)
    assert case.launch == Launch(grid=(4, 7, 1), block=(16, 16, 1), shared_bytes=2048)
    assert case.skip is None
    assert one(PLAIN, 5).launch == Launch(grid=(5, 1, 1), block=(1, 1, 1))


def told(question: str) -> str:
    """Why a case is skipped; the question has in TOML what is not usual: keys of the kernel, and of
    the problem of 8 × 8 × 8, and whether the device is a CPU."""
    given = toml.read(question)
    device, scaling = CPU if given.pop("cpu", False) else GPU, given.pop("problem", {})
    launch = {"block": [1], "grid": ["M"]} | given.pop("launch", {})
    kernel = msgspec.convert({"name": "plain", "launch": launch, **given}, Kernel)
    skip = sweep.case(kernel, msgspec.structs.replace(problem(8), **scaling), {}, device).skip
    return f"{skip.kind}: {skip_reason(skip)}" if skip else "runs"


def test_why_cases_are_skipped(table_regression: TableRegression) -> None:
    """Requirements, limits of the device, mistakes in the file, parameters, and factors."""
    table_regression("skips.txt", told)


def test_a_sweep_without_end_is_refused() -> None:
    values = tuple(range(1, 51))
    wide = changed(sweep=dict.fromkeys("abcdef", values))
    with pytest.raises(UsageError) as refused:
        sweep.cases([wide, PLAIN], [problem(8), problem(9)], {}, GPU)
    assert str(refused.value) == ("31,250,000,002 cases, more than 100,000; run fewer at a time")


# -- alpha, beta, batches ------------------------------------------------------------------------


def test_the_grid_may_name_the_batch() -> None:
    rules = LaunchRules(block=(8,), grid=("N", 1, "batch"))
    case = sweep.case(changed(launch=rules), msgspec.structs.replace(problem(8), batch=5), {}, GPU)
    assert (case.skip, case.launch) == (None, Launch(grid=(8, 1, 5), block=(8, 1, 1)))


def test_a_kernel_is_not_run_on_what_only_others_compute() -> None:
    """Unless it computes nothing at that size: then it is skipped with a reason."""
    scaled = changed(name="scaled", args=("alpha",))
    twice = msgspec.structs.replace(problem(8), alpha=2.0)
    found = sweep.cases([PLAIN, scaled], [problem(8), twice], {}, GPU)
    ran = [(case.kernel.name, case.problem.alpha, case.skip) for case in found]
    assert ("scaled", 1.0, None) in ran
    assert ("scaled", 2.0, None) in ran
    assert [each for each in ran if each[0] == PLAIN.name] == [(PLAIN.name, 1.0, None)]
    (alone,) = sweep.cases([PLAIN], [twice], {}, GPU)
    assert alone.skip == Skip("condition", "alpha = 1", {"alpha": 2.0})


def test_every_listed_scaling_is_run() -> None:
    listed = changed(alpha=(1.0, 2.0), beta=0.5)
    assert list(sweep.scalings(listed, {})) == [
        {"alpha": 1.0, "beta": 0.5, "batch": 1},
        {"alpha": 2.0, "beta": 0.5, "batch": 1},
    ]
    assert list(sweep.scalings(listed, {"alpha": (3.0,), "beta": (0.0,)})) == [
        {"alpha": 3.0, "beta": 0.0, "batch": 1}
    ]
    assert list(sweep.scalings(changed(workload="dot"), {})) == [{}]


def test_an_allowed_size_is_a_near_one() -> None:
    kernel = changed(launch=LaunchRules(block=(8,), grid=(1,), where=("N % 32 == 0",)))
    assert sweep.allowed(kernel, (70, 70, 70), {}, GPU) == (96, 96, 96)


LET = text_of("let.cu")


def test_values_that_follow(tmp_path: Path, device: DeviceInfo, session: Session) -> None:
    """In conditions, the launch, the model and the source; a case has the swept constants alone."""
    (tmp_path / "halves.cu").write_text(LET)
    kernel = catalogue.load(tmp_path / "halves.cu")
    small, large = sweep.cases([kernel], [Problem(33, 17, 9)], {}, device)
    assert small.skip == Skip("condition", "BLOCKS > 9", {"BLOCKS": 9})
    assert large.params == {"TILE": 16}
    assert large.launch == Launch((2, 3, 1), (16, 8, 1), 17)
    assert signature.macros(kernel, large.params) == {"TILE": 16, "HALF": 8, "BLOCKS": 17}
    assert explanation.traffic(kernel, large.problem, large.params, {}).loads == 33 * 17 * 9 * 8
    assert session.measure(large).status == "measured"
    assert sweep.allowed(kernel, (33, 17, 9), {"TILE": 16}, device) is None


def test_template_arguments_derived(tmp_path: Path, device: DeviceInfo, session: Session) -> None:
    text = LET.replace('// name = "halves"', '// name = "halves"\n// entry = "halves<HALF>"')
    text = text.replace('extern "C" __global__', "template <int HALF> __global__")
    (tmp_path / "halves.cu").write_text(text)
    kernel = catalogue.load(tmp_path / "halves.cu")
    assert signature.macros(kernel, {"TILE": 16}) == {"TILE": 16, "BLOCKS": 17}
    assert "halves<8>" in instrument.plain_unit(kernel, {"TILE": 16})
    assert "<8>(A, B, C, M, N, K, blocks);" in instrument.clocked_unit(kernel, {"TILE": 16})
    (tmp_path / "halves.cu").write_text(text.replace('// entry = "halves<HALF>"\n', ""))
    kernel = catalogue.load(tmp_path / "halves.cu")
    assert kernel.entry == "halves<HALF>"
    [case] = sweep.cases([kernel], [Problem(33, 17, 9)], {"TILE": (16,)}, device)
    assert session.measure(case).status == "measured"


def test_a_case_has_the_values_of_its_arguments() -> None:
    args = ("A", "tensor_map(B, TILE, 2 * TILE)", "C", "workspace", "M + HALF", "alpha", "stream")
    kernel = changed(TILED, args=args, let={"HALF": "TILE // 2"})
    assert one(kernel, TILE=16).arguments == (
        "A", Box("B", 16, 32), "C", "workspace", 16, 1.0, "stream"
    )  # fmt: skip
    large = changed(kernel, launch=PLAIN.launch)
    assert one(large, TILE=128).arguments[1] == Box("B", 128, 256)
    assert one(large, TILE=129).skip == Skip(
        "argument", "tensor_map(B, TILE, 2 * TILE): a box must have 1 to 256 rows and columns"
    )


def test_the_address_of_a_number_may_be_passed() -> None:
    """A function on the host may take alpha by its address: it is a number of C's type then."""
    parameters = (
        *(Parameter("double", name, True) for name in "ABC"),
        Parameter("float", "x", True),
    )
    kernel = changed(args=("A", "B", "C", "0.1"), parameters=parameters)
    assert one(kernel).arguments == ("A", "B", "C", 0.1)
    by_value = changed(kernel, parameters=(*parameters[:3], Parameter("float", "x", False)))
    assert present(one(by_value).skip).kind == "argument"


def test_the_awkward_case_is_for_a_cpu_and_has_a_size_that_the_kernel_takes() -> None:
    multiple = changed(launch=LaunchRules(block=(1,), grid=("M",), where=("K % 16 == 0",)))
    awkward = present(one(multiple, 4096, CPU).awkward)
    assert awkward.launch is not None
    assert awkward.problem.K == awkward.arguments[-1] == 144
    assert one(multiple, 4096).awkward is None
    assert one(changed(multiple, args=("A", "B", "C")), 4096, CPU).awkward is None


# -- sizes in words ------------------------------------------------------------------------------


def test_sizes(table_regression: TableRegression) -> None:
    """In full, with suffixes that count in 1,024s, and in ranges, which include both ends."""

    def sizes(text: str) -> str:
        found = parse_sizes(text)
        if "x" not in text.lower():
            numbers = [size[0] for size in found]
            assert parse_sizes(text, workloads.WORKLOADS["dot"]) == [(1, n, 1) for n in numbers]
        return ", ".join(Problem(*size).size for size in found)

    table_regression("sizes.txt", sizes)


@given(st.tuples(*[st.integers(1, MAX_SIZE)] * 3))
def test_a_size_reads_as_it_is_shown(size: tuple[int, int, int]) -> None:
    m, n, k = size
    assert parse_sizes(Problem(M=m, N=n, K=k).size) == [size]


@given(st.text(max_size=40) | st.text(alphabet="0123456789x,- kM.^", max_size=40))
def test_any_text_is_sizes_or_a_clean_error(text: str) -> None:
    try:
        sizes = parse_sizes(text)
    except UsageError as error:
        assert str(error).isprintable()
    else:
        assert sizes
        assert all(1 <= side <= MAX_SIZE for size in sizes for side in size)


def test_problems_have_the_inputs_of_their_workload() -> None:
    dot = workloads.WORKLOADS["dot"]
    assert parse_problems("8", dot) == [Problem(1, 8, 1, inputs="ramp", workload="dot")]
    assert parse_problems("8", dot, "signed", seed=3) == [
        Problem(1, 8, 1, inputs="signed", seed=3, workload="dot")
    ]
    with pytest.raises(UsageError, match="--inputs 'ramp': not for matmul, which takes uniform"):
        parse_problems("8", workloads.MATMUL, "ramp")


def test_the_help_says_what_is_true() -> None:
    for workload in workloads.WORKLOADS.values():
        for shown in re.findall(r"as in ([^ ,]+)", workload.size_help):
            assert parse_sizes(shown, workload)
