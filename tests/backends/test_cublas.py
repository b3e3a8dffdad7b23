"""cuBLAS and cuBLASLt: what is asked of the libraries, and which algorithms are chosen."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import ml_dtypes
import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from support import products
from support.cli import QUICK, Matbench, last_run
from support.cublas import BASELINES as KERNELS
from support.cublas import EMULATED, Fake, Ready, fake  # noqa: F401
from support.golden import TableRegression
from support.h200 import H200
from support.optional import present, some
from support.products import OF_ANY_SIZE, OF_LIBRARIES, problem, right

from matbench import cache, programs
from matbench.backends.cuda import cublas, libcuda
from matbench.backends.cuda.cublas import fastest
from matbench.backends.functions import libraries
from matbench.backends.protocol import Backend, Work
from matbench.bench.samples import Draw
from matbench.bench.session import Session
from matbench.errors import CaseError, LackingError, OutOfMemoryError
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Skip
from matbench.records.outcome import Claims
from matbench.show.reasons import skip_reason

BASELINES = {name: kernel for name, kernel in KERNELS.items() if "stream" in kernel.args}
RNG = np.random.default_rng(1)


@pytest.fixture
def ready(fake: Fake) -> Callable[..., Ready]:  # noqa: F811
    def make(name: str, taken_ns: list[float] | None = None, **more: int) -> Ready:
        fake.taken_ns = taken_ns or [1.0]
        fake.set(algorithms=len(fake.taken_ns), launches=0, **more)
        return Ready(name, fake)

    return make


def from_e4m3(stored: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """The numbers of these bits."""
    return np.asarray(stored.view(ml_dtypes.float8_e4m3fn), np.float64)


def whole(*shape: int) -> npt.NDArray[np.float64]:
    return RNG.integers(-9, 9, shape).astype(float)


# -- what is computed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "inputs", "result"),
    [("cublas", "f4", "f4"), ("cublas-f16", "f2", "f2"), ("cublas-f64", "f8", "f8"),
     ("cublaslt-best", "f4", "f4"), ("cublaslt-best-tf32", "f4", "f4"),
     ("cublaslt-best-f16", "f2", "f2"), ("cublaslt-best-f64", "f8", "f8")],
)  # fmt: skip
def test_row_major_products_with_factors_and_batches(
    name: str, inputs: str, result: str, ready: Callable[..., Ready]
) -> None:
    A, B, C = whole(5, 2, 4), whole(5, 4, 3), whole(5, 2, 3)
    found = ready(name, [3.0, 2.0, 1.0]).launch(
        A.astype(inputs), B.astype(inputs), C.astype(result), alpha=2.0, beta=-0.5, batch=5
    )
    assert (found == 2 * A @ B - 0.5 * C).all()
    one = ready(name).launch(A[0].astype(inputs), B[0].astype(inputs), C[0].astype(result))
    assert (one == A[0] @ B[0]).all()


@pytest.mark.parametrize(
    ("name", "compute"),
    [("cublas", 68), ("cublas-tf32", 77), ("cublas-bf16", 68), ("cublas-f64", 70)],
)
def test_each_is_in_its_precision(name: str, compute: int, ready: Callable[..., Ready]) -> None:
    kind = {"cublas-bf16": "u2", "cublas-f64": "f8"}.get(name, "f4")
    program = ready(name)
    program.launch(np.zeros((2, 4), kind), np.zeros((4, 3), kind), np.zeros((2, 3), "f8"))
    assert program.fake.launched == [compute]
    assert program.program.notes == ready("cublaslt-int8").program.notes == ()
    assert not cache._is_sealed, "it is trusted, so its process stores what is built"


def test_a_dot_product_stays_on_the_device(ready: Callable[..., Ready]) -> None:
    values = np.array([1.0, 2.0, 4.0], "f4")
    assert ready("cublas-dot").launch(values, values, np.zeros(1, "f4")) == 21
    ready("cublas").launch(values, values, np.zeros(1, "f4"), M=1, N=1, K=3)  # a factor of the host


def test_int8_with_b_transposed(ready: Callable[..., Ready]) -> None:
    A, B = whole(2, 4), whole(4, 3)
    program = ready("cublaslt-int8")
    found = program.launch(A.astype("i1"), B.T.astype("i1"), np.full((2, 3), 77, "i4"))
    assert (found == A @ B).all()
    assert program.fake.launched == [0]
    assert program.fake["wanted"] == 1


@pytest.mark.parametrize(
    ("name", "of_A", "of_B"),
    [("cublaslt-fp8", [4.0], [0.5]), ("cublaslt-best-fp8", [4.0], [0.5]),
     ("cublaslt-fp8-rowwise", [4.0, 0.25], [0.5, 8.0, 1.0])],
)  # fmt: skip
def test_e4m3_with_the_factors_of_both(
    name: str, of_A: list[float], of_B: list[float], ready: Callable[..., Ready]
) -> None:
    A, B = RNG.integers(0x30, 0x50, (2, 4), "u1"), RNG.integers(0xB0, 0xD0, (3, 4), "u1")
    scales = [np.array(of_A, "f4"), np.array(of_B, "f4")]
    program = ready(name)
    bits = program.launch(A, B, np.zeros((2, 3), "u2"), scales=scales)
    scaled = from_e4m3(A) * scales[0][:, None], from_e4m3(B) * scales[1][:, None]
    wanted = (scaled[0] @ scaled[1].T).astype("f4").view("u4") >> 16
    assert (bits == wanted).all()
    asked = program.fake
    mode = 3 if name.endswith("rowwise") else 0
    assert (asked["fast"], asked["mode_a"], asked["mode_b"]) == (1, mode, mode)
    # The factors of each launch are those that it is given.
    twice = program.launch(A, B, np.zeros((2, 3), "u2"), scales=[2 * scales[0], scales[1]])
    assert (twice == (2 * scaled[0] @ scaled[1].T).astype("f4").view("u4") >> 16).all()


def test_only_results_narrower_than_sums_forbid_narrow_sums(ready: Callable[..., Ready]) -> None:
    def scheme(name: str, inputs: str, result: str) -> int:
        program = ready(name)
        program.launch(
            whole(2, 4).astype(inputs), whole(4, 3).astype(inputs), np.zeros((2, 3), result)
        )
        return program.fake["schemes"]

    assert scheme("cublaslt-best", "f4", "f4") == scheme("cublaslt-best-f64", "f8", "f8") == 7
    assert scheme("cublaslt-best-f16", "f2", "f2") == 2


# -- which algorithm -----------------------------------------------------------------------------


def test_the_fastest_is_chosen_once_for_each_product(ready: Callable[..., Ready]) -> None:
    program = ready("cublaslt-best", [5.0, 3.0, 9.0, 4.0])
    A, B = whole(2, 4).astype("f4"), whole(4, 3).astype("f4")
    assert (program.launch(A, B, np.zeros((2, 3), "f4")) == A @ B).all()
    assert program.program.notes == ("algorithm 2 of the 4 that cuBLASLt suggests",)
    chosen = program.fake.launched
    assert set(chosen) == {0, 1, 2, 3}
    assert chosen[-1] == 1
    program.fake.taken_ns = [1.0] * 4
    for _ in range(2):
        program.launch(A, B, np.zeros((2, 3), "f4"))
    assert program.fake.launched[len(chosen) :] == [1, 1]
    for change in ({"beta": 1.0}, {"M": 1}, {"N": 1, "M": 1}, {"N": 1, "M": 1, "batch": 2}):
        before = program.fake["launches"]
        program.launch(A, B, np.zeros((2, 3), "f4"), **change)
        assert program.fake["launches"] > before + 4, change
    assert program.fake["wanted"] == 16


def test_c_is_added_once_even_after_the_choice(ready: Callable[..., Ready]) -> None:
    program = ready("cublaslt-best", [2.0, 1.0])
    A, B, C = (whole(*shape).astype("f4") for shape in ((2, 4), (4, 3), (2, 3)))
    assert (program.launch(A, B, C.copy(), beta=1.0) == A @ B + C).all()
    assert len(program.fake.held) == 1, "the workspace"


def test_algorithms_that_cannot_be_used_are_left_out(ready: Callable[..., Ready]) -> None:
    A, B = whole(2, 4).astype("f4"), whole(4, 3).astype("f4")
    program = ready("cublaslt-best", [1.0, 2.0, 3.0], unusable=0)
    program.launch(A, B, np.zeros((2, 3), "f4"))
    assert 0 not in program.fake.launched
    assert program.program.notes == ("algorithm 1 of the 2 that cuBLASLt suggests",)
    none = ready("cublaslt-best", [1.0], unusable=0)
    with pytest.raises(CaseError, match=r"^cuBLAS: cuBLASLt has no algorithm for this product$"):
        none.launch(A, B, np.zeros((2, 3), "f4"))


def test_an_algorithm_that_fails_is_not_chosen(ready: Callable[..., Ready]) -> None:
    A, B = whole(2, 4).astype("f4"), whole(4, 3).astype("f4")
    program = ready("cublaslt-best", [1.0, 3.0, 2.0], failing=0)
    assert (program.launch(A, B, np.zeros((2, 3), "f4")) == A @ B).all()
    assert program.program.notes == ("algorithm 3 of the 3 that cuBLASLt suggests",)


def test_emulation_needs_a_cublas_that_emulates(fake: Fake) -> None:  # noqa: F811
    with pytest.raises(LackingError, match=r"^this cuBLAS does not emulate float64; version 13"):
        cublas.Baseline(fake.library(), EMULATED, {}, cache.Cache())


@pytest.mark.parametrize("name", ["cublas", "cublaslt-best"])
def test_what_the_library_says_is_one_line(name: str, ready: Callable[..., Ready]) -> None:
    A, B, C = (whole(*shape).astype("f4") for shape in ((2, 4), (4, 3), (2, 3)))
    with pytest.raises(CaseError, match=r"^cuBLAS: .*NOT_SUPPORTED$") as failed:
        ready(name, fails=15).launch(A, B, C)
    assert failed.value.fatal


def test_without_memory_to_choose_in_the_case_fails(ready: Callable[..., Ready]) -> None:
    program = ready("cublaslt-best", [2.0, 1.0])
    full = mock.Mock(side_effect=OutOfMemoryError("out of device memory"))
    program.fake.allocate = full  # type: ignore[method-assign]
    A, B, C = (whole(*shape).astype("f4") for shape in ((2, 4), (4, 3), (2, 3)))
    with pytest.raises(CaseError, match="algorithms could not be timed"):
        program.launch(A, B, C)


def test_the_handle_is_closed_with_the_library(fake: Fake) -> None:  # noqa: F811
    before = fake["alive"]
    library = fake.library()
    assert (fake["alive"], library.version) == (before + 1, "cuBLAS 13.12.11")
    library.close()
    assert fake["alive"] == before


def timed(times: list[Callable[[int], float]]) -> tuple[int, list[int]]:
    """The choice among launches that take so long in each of their turns, and all turns."""
    turns: list[int] = []

    def launch(number: int) -> Callable[[], None]:
        return lambda: turns.append(number)

    def timed_ns(work: Work) -> float:
        work.calls[0].run()
        return times[turns[-1]](turns.count(turns[-1]))

    backend: Any = SimpleNamespace(timed_ns=timed_ns)
    return fastest([launch(number) for number in range(len(times))], backend), turns


def test_times_are_compared_by_their_medians_in_turns() -> None:
    outlier = lambda turn: 1.0 if turn == 3 else 110.0  # noqa: E731
    chosen, turns = timed([outlier, lambda _: 100.0, lambda _: 105.0])
    assert chosen == 1
    assert turns[:9] == [0, 1, 2] * 3


def test_the_first_launch_which_loads_code_does_not_count() -> None:
    assert timed([lambda turn: 1e9 if turn == 1 else 1.0, lambda _: 2.0])[0] == 0


def test_the_slow_take_no_further_turns() -> None:
    chosen, turns = timed([lambda _: 100.0, lambda _: 130.0, lambda _: 120.0])
    assert chosen == 0
    assert [turns.count(number) for number in range(3)] == [21, 4, 21]


def test_long_launches_take_few_turns() -> None:
    _, turns = timed([lambda _: 1e9, lambda _: 1.1e9])
    assert turns == [0, 1] * 4
    _, turns = timed([lambda _: 1e9, lambda _: 1.3e9])
    assert turns == [0, 1] * 2


def test_what_was_scaled_is_recorded() -> None:
    scaled = {name: Claims.from_kernel(kernel).scales for name, kernel in BASELINES.items()}
    assert {name: scales for name, scales in scaled.items() if scales is not None} == {
        "cublaslt-fp8": "matrix", "cublaslt-best-fp8": "matrix", "cublaslt-fp8-rowwise": "rows"
    }  # fmt: skip
    promoted = msgspec.structs.replace(BASELINES["cublaslt-fp8"], promotes=128)
    assert Claims.from_kernel(promoted).promotes == 128


# -- where they run ------------------------------------------------------------------------------


def test_what_they_need_is_told(table_regression: TableRegression) -> None:
    def said(source: str) -> str:
        name, size, capability = re.split(" at | on ", source)
        major, minor = map(int, capability.split("."))
        device = msgspec.structs.replace(H200, compute_capability=(major, minor))
        skip = sweep.case(BASELINES[name], problem(size), {}, device).skip
        return "runs" if skip is None else skip_reason(skip)

    table_regression("needs-of-cublaslt.txt", said)


@pytest.mark.parametrize("factor", [{"alpha": 2.0}, {"beta": 1.0}, {"batch": 2}])
def test_8_bit_operands_have_no_other_factors(factor: dict[str, Any]) -> None:
    for name, kernel in BASELINES.items():
        at = msgspec.structs.replace(problem("64"), **factor)
        skip = sweep.case(kernel, at, {}, H200).skip
        assert (skip is None) == (not kernel.launch.where), name


# -- on a GPU ------------------------------------------------------------------------------------


OF_8_BITS = {name: kernel for name, kernel in BASELINES.items() if kernel.launch.where}
BEST = [name for name in BASELINES if name.startswith("cublaslt-best")]
NOTE = re.compile(r"algorithm (\d+) of the (\d+) that cuBLASLt suggests")


def case_of(name: str, size: str, info: DeviceInfo, **factors: Any) -> Case:
    at = msgspec.structs.replace(problem(size), **factors)
    case = sweep.case(BASELINES[name], at, {}, info)
    if case.skip is not None and case.skip.kind == "requirement":
        pytest.skip(f"needs {case.skip.needs}")
    assert case.skip is None, case.skip
    return case


@pytest.mark.gpu
@pytest.mark.parametrize(
    "size",
    ["16", "1x16x16", "33x48x80", "1x512x1024", "257x144x1040", "64x64x8192", "512",
     "1000x2000x496"],
)  # fmt: skip
@pytest.mark.parametrize("name", OF_8_BITS)
def test_8_bits_at_ragged_sizes(name: str, size: str, checks: Session, info: DeviceInfo) -> None:
    outcome = right(checks, case_of(name, size, info))
    claimed = outcome.case.claims
    assert (claimed.precision, claimed.result, claimed.accumulator) == (
        ("int8", "int32", None) if "int8" in name else ("e4m3", "bfloat16", "float22")
    )


@pytest.mark.gpu
@pytest.mark.parametrize("size", ["33x20x36", "1000"])
def test_emulated_products_keep_enough_bits(size: str, checks: Session, info: DeviceInfo) -> None:
    outcome = right(checks, sweep.case(EMULATED, problem(size), {}, info))
    [note] = [note for note in outcome.notes if "emulated" in note]
    assert int(re.sub(r"\D", "", note)) >= 53


@pytest.mark.gpu
@pytest.mark.parametrize("size", ["4", "33x20x36", "255x132x1028"])
@pytest.mark.parametrize("name", ["cublaslt-int8", "cublaslt-best-int8"])
def test_int8_at_multiples_of_four(name: str, size: str, checks: Session, info: DeviceInfo) -> None:
    outcome = right(checks, case_of(name, size, info))
    assert outcome.max_rel_err == 0


@pytest.mark.gpu
def test_other_sizes_are_skipped_with_the_reason(matbench: Matbench, info: DeviceInfo) -> None:
    baselines = ("--baseline", "cublaslt-fp8*,cublaslt-*int8", "--backend", "cuda")
    matbench("run", "tiled", "--set", "TILE=16", *baselines, "--sizes", "70")
    skipped = {o.case.kernel: present(o.skip) for o in last_run() if o.status == "skipped"}
    assert skipped.keys() == {n for n in OF_8_BITS if n != "cublaslt-best-fp8"}
    if info.compute_capability == (9, 0):
        for name, skip in skipped.items():
            multiple = 4 if "int8" in name else 16
            assert (skip.needs, skip.given) == (f"N % {multiple} == 0", {"N": 70}), name


@pytest.mark.gpu
@pytest.mark.parametrize("name", BEST)
def test_the_fastest_algorithm_is_said(name: str, checks: Session, info: DeviceInfo) -> None:
    for size in ("256", "1024"):
        outcome = right(checks, case_of(name, size, info))
        [note] = outcome.notes
        number, count = map(int, present(NOTE.fullmatch(note)).groups())
        assert 1 <= number <= count <= 16


@pytest.mark.gpu
@pytest.mark.parametrize("factors", [{"alpha": -1.5, "beta": 0.75}, {"batch": 3, "beta": 2.0}])
@pytest.mark.parametrize("name", [name for name in BEST if name not in OF_8_BITS])
def test_factors(name: str, factors: dict[str, Any], checks: Session, info: DeviceInfo) -> None:
    for size in ("33x47x65", "257x130x300"):
        right(checks, case_of(name, size, info, **factors))


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.parametrize(
    ("first", "best", "size"),
    [("cublas", "cublaslt-best", "512"), ("cublas-bf16", "cublaslt-best-bf16", "1024"),
     ("cublas-tf32", "cublaslt-best-tf32", "1024"), ("cublas-f16", "cublaslt-best-f16", "2048"),
     ("cublas-f64", "cublaslt-best-f64", "1000"), ("cublaslt-fp8", "cublaslt-best-fp8", "1024"),
     ("cublaslt-int8", "cublaslt-best-int8", "1024")],
)  # fmt: skip
@pytest.mark.parametrize("mode", [[], pytest.param(["--method", "graph"], marks=pytest.mark.long)])
def test_the_best_is_compared_with_what_the_library_takes(
    first: str, best: str, size: str, mode: list[str], matbench: Matbench, info: DeviceInfo
) -> None:
    case_of(best, size, info)
    printed = matbench(
        *("compare", first, best, "--sizes", size, "--backend", "cuda", "--format", "json", *mode)
    ).stdout
    [_, row] = json.loads(printed)
    assert row["comparison"]["ratio"]
    assert any(NOTE.fullmatch(note) for note in row["candidate"]["notes"])


# cuBLAS where it is or is missing, and its products


# -- without a GPU -------------------------------------------------------------------------------


def test_skipped_with_the_reason_where_no_cuda_is(matbench: Matbench, device: DeviceInfo) -> None:
    if device.backend == "cuda":
        pytest.skip("CUDA is here")
    result = matbench("run", "single-block", "--baseline", "cublas*", "--sizes", "5", *QUICK)
    outcomes = last_run()
    assert [o.case.kernel for o in outcomes if o.status == "measured"] == ["single-block"]
    products = [o for o in outcomes if o.case.kernel != "single-block"]
    assert sorted(o.case.kernel for o in products) == sorted(OF_LIBRARIES)
    skip = Skip("requirement", "cuda", {"device": "opencl"})
    assert all((o.status, o.skip, o.case.launch) == ("skipped", skip, None) for o in products)
    assert "needs CUDA; this is opencl" in result.stdout


def test_what_is_missing_is_told_with_what_fixes_it(
    fake: Fake,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "which", lambda _: None)
    libraries.host_target.cache_clear()
    with pytest.raises(LackingError, match=r"^g\+\+ is missing; install it$"):
        Ready("cublas", fake)
    monkeypatch.setattr(libcuda, "version", lambda: (13, 0))
    lost = mock.Mock(side_effect=RuntimeError("Failure finding libcublasLt.so"))
    monkeypatch.setattr(sys.modules["cuda.pathfinder"], "load_nvidia_dynamic_lib", lost)
    with pytest.raises(LackingError, match=r"cannot be loaded; pip .*\[cublas\]==13\.0\.\*'$"):
        cublas.place()
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    with pytest.raises(LackingError, match=r"^cuda-pathfinder is missing; pip install 'matbench"):
        fake.library()


def test_it_has_no_block(matbench: Matbench) -> None:
    shown = matbench("kernels", "cublaslt-best-fp8").stdout
    assert "kernels/baselines/cublaslt-best-fp8.cu\n" in shown
    assert "block (threads)" not in shown


# -- on a GPU ------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_float32_that_were_tf32_would_be_wrong(checks: Session, info: DeviceInfo) -> None:
    plain = checks.measure(products.case_of(OF_LIBRARIES["cublas"], "512", info))
    assert present(plain.max_rel_err) < 5e-6
    entry = OF_LIBRARIES["cublas-tf32"].entry
    tf32 = msgspec.structs.replace(OF_LIBRARIES["cublas"], entry=entry)
    assert checks.measure(products.case_of(tf32, "512", info)).status == "wrong"


@pytest.mark.gpu
@pytest.mark.parametrize("size", ["64x64x8192", "1000", "2048"])
@pytest.mark.parametrize("name", OF_ANY_SIZE)
def test_the_same_bits_every_time(name: str, size: str, checks: Session, info: DeviceInfo) -> None:
    case = products.case_of(OF_LIBRARIES[name], problem(size, "signed"), info)
    assert case.kernel.deterministic
    assert checks.measure(case).status == "measured"
    bits = set()
    with checks._runnable(case, checks._build(case)) as running:
        reference = running.prepared.reference
        for _ in range(10):
            running.run(Draw(reference))
            found = running.result_on_host(reference)
            bits.add(found.tobytes())
    assert len(bits) == 1


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.parametrize(
    "mode", some([[], ["--method", "hot"], ["--method", "graph"], ["--method", "cold,hot"]], [])
)
def test_rows_like_any_other(matbench: Matbench, info: DeviceInfo, mode: list[str]) -> None:
    baselines = ("--baseline", "cublas*", "--backend", "cuda", "--max-time", "0.2")
    matbench("run", "tiled", "--set", "TILE=32", *baselines, "--sizes", "1024", *mode)
    outcomes = last_run()
    assert {o.status for o in outcomes} == {"measured"}
    medians = {o.case.kernel: present(o.median_ns) for o in outcomes}
    assert medians.keys() == {"tiled", *OF_LIBRARIES}
    for name in OF_LIBRARIES:
        assert medians[name] < medians["tiled"]
    assert medians["cublas-tf32"] < medians["cublas"]


@pytest.mark.gpu
@pytest.mark.parametrize("how", [["--quick"], pytest.param([], marks=pytest.mark.long)])
def test_checked_like_a_kernel(how: list[str], matbench: Matbench, info: DeviceInfo) -> None:
    printed = matbench("check", "cublas", "--backend", "cuda", *how).stdout
    assert re.search(r"passed (\d+) of \1 probes", printed)  # with other factors, and a batch


@pytest.mark.gpu
def test_one_handle_serves_all(cuda: Backend) -> None:
    programs = [cuda.build(kernel, {}) for kernel in OF_LIBRARIES.values()]
    assert len({id(program.cublas) for program in programs}) == 1  # type: ignore[attr-defined]
