"""The other workloads: every kernel, right at every size here."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cli import Matbench, last_run
from support.cublas import BASELINES
from support.golden import TableRegression
from support.kernels import saved, text_of
from support.optional import present, some
from support.products import name, right
from support.samples import sampled

from matbench import backends, workloads
from matbench.backends.protocol import Backend, Variant
from matbench.bench import kernel_arguments
from matbench.bench.device_kernels import UNWRITTEN, DeviceKernels
from matbench.bench.kernel_arguments import Memory
from matbench.bench.samples import Draw
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import MatbenchError, UsageError
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, DeviceInfo, Kernel, NumericContract, Problem
from matbench.worker.builders import Builders
from matbench.workloads import oracle, rounding
from matbench.workloads.cubes import trials as cubes
from matbench.workloads.dot import trials as dot
from matbench.workloads.oracle import Trial, Trials
from matbench.workloads.reverse import trials as reverse

KERNELS = {
    kernel.name: kernel
    for kernel in catalogue.builtin()
    if kernel.source and kernel.workload != "matmul"
}
FEW = [1, 33, 257, 4099]
SIZES = [1, 2, 3, 31, 33, 63, 64, 65, 255, 257, 1009, 4099, 33792, 100_003]
SPECIAL = {
    "reverse-static": lambda case, limits: case.problem.N > 64,
    "reverse-dynamic": lambda case, limits: (
        limits["max_shared_bytes_per_block"] // 4 < case.problem.N
    ),
}


def problem(workload: str, N: int, inputs: str | None = None, seed: int = 0) -> Problem:
    kind = inputs or workloads.WORKLOADS[workload].inputs[0]
    return Problem(1, N, 1, inputs=kind, seed=seed, workload=workload)  # type: ignore[arg-type]


def may_skip(case: Case, device: DeviceInfo) -> bool:
    """Whether this kernel cannot compute this, by prior knowledge."""
    if "cuda" in case.kernel.requires and device.backend != "cuda":
        return True
    return case.kernel.name in SPECIAL and SPECIAL[case.kernel.name](case, device.limits)


def check_at_every_size(
    kernel: Kernel, inputs: str, session: Session, sizes: Sequence[int] = SIZES
) -> None:
    device = session.backend.info
    for N in sizes:
        for case in sweep.cases([kernel], [problem(kernel.workload, N, inputs)], {}, device):
            if case.skip is not None:
                assert may_skip(case, device), case.skip
                continue
            assert not may_skip(case, device)
            outcome = right(session, case)
            if kernel.workload == "dot":
                assert 0 <= present(present(outcome.accuracy).bound_ratio) <= 1
                if (N, inputs) == (1, "ramp"):
                    continue  # 0·0: no relative error
                assert present(outcome.max_rel_err) <= (N + 1) * 2**-24


EVERY = [
    pytest.param(kernel, inputs, id=f"{kernel.name}-{inputs}")
    for kernel in KERNELS.values()
    for inputs in workloads.workload_of(kernel).inputs
]


def result(session: Session, case: Case) -> float:
    """A kernel's result on its problem's own inputs, including the host's part."""
    with session._runnable(case, session._build(case)) as runnable:
        reference = runnable.prepared.reference
        runnable.run(Draw(reference))
        return float(runnable.result_on_host(reference)[0, 0])


def check_compensation(kernel: Kernel, plain: Kernel, session: Session) -> None:
    """Signed products cancel, and still the result is the float32 next to the exact one.

    One block finds it, so that nothing but the kernel's own rounding is between.
    """
    device, misses = session.backend.info, 0
    for seed in range(8):
        at = problem("dot", 2000, "signed", seed)
        a, b = (values[0].tolist() for values in dot.inputs(at))
        exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))
        nearest = float(np.float32(float(exact)))
        [case] = sweep.cases([kernel], [at], {}, device)
        assert present(case.launch).blocks == 1
        right(session, case)
        assert result(session, case) == nearest
        [rough] = sweep.cases([plain], [at], {}, device)
        misses += result(session, rough) != nearest
    assert misses >= 4


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=name)
def test_right_at_awkward_sizes(kernel: Kernel, session: Session) -> None:
    first, *others = workloads.workload_of(kernel).inputs
    check_at_every_size(kernel, first, session, FEW)
    for inputs in others:
        check_at_every_size(kernel, inputs, session, [257])


@pytest.mark.long
@pytest.mark.parametrize(("kernel", "inputs"), EVERY)
def test_right_at_awkward_sizes_and_inputs(kernel: Kernel, inputs: str, session: Session) -> None:
    check_at_every_size(kernel, inputs, session)


def test_compensation_survives_the_optimiser(session: Session) -> None:
    check_compensation(KERNELS["dot-compensated"], KERNELS["dot-vectorized"], session)


def test_the_tutorials_ramp(session: Session) -> None:
    """N = 33·1024, aᵢ = i, bᵢ = 2i: Σ is known in closed form."""
    N = 33 * 1024
    closed = 2 * (N - 1) * N * (2 * N - 1) // 6
    assert closed == sum(2 * i * i for i in range(N)) == dot.closed_form(N)
    ramp = problem("dot", N)
    assert ramp.inputs == "ramp"
    total, _, _ = dot.product(*dot.inputs(ramp))
    assert total == pytest.approx(closed, rel=1e-15)
    trials = dot.trials(ramp, KERNELS["dot-tree"].contract, Cache())
    assert present(trials.reference.R)[0, 0] == closed
    [case] = sweep.cases([KERNELS["dot-tree"]], [ramp], {}, session.backend.info)
    outcome = right(session, case)
    found = result(session, case)
    assert abs(found - closed) <= 4 * math.sqrt(N) * 2**-24 * closed
    assert outcome.max_rel_err == pytest.approx(abs(found - closed) / closed, abs=1e-12)


# -- right results -------------------------------------------------------------------------------

LENGTHS = st.integers(1, 3000)
SEEDS = st.integers(0, 2**31)


def products(trial: Trial) -> list[Fraction]:
    a, b = (values[0].tolist() for values in trial.inputs)
    return [Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)]


def trials_of(at: Problem, contract: NumericContract = NumericContract()) -> Trials:  # noqa: B008
    return oracle.trials(at, contract, Cache())


@given(LENGTHS, st.sampled_from(workloads.WORKLOADS["dot"].inputs), SEEDS)
def test_dot_references_are_exact(kernels: DeviceKernels, N: int, inputs: str, seed: int) -> None:
    at = problem("dot", N, inputs, seed)
    trials = trials_of(at)
    [sample] = sampled(kernels, at, [seed])
    for trial in (trials.reference, sample):
        terms = products(trial)
        R, S = float(present(trial.R)[0, 0]), float(present(trial.S)[0, 0])
        size = sum(map(abs, terms))
        assert abs(Fraction(R) - sum(terms)) <= N * Fraction(1, 2**53) * size
        assert abs(Fraction(S) - size) <= N * Fraction(1, 2**53) * size
        assert abs(R) <= S
        assert trial.scale is trial.S
        if trial is sample:
            squares = float(sum(term * term for term in terms))
            assert present(trial.typical).T[0, 0] ** 2 == pytest.approx(squares, rel=1e-12)
    others = [make() for make in trials.others]
    assert [trial.name for trial in others] == ["integers", "selection", "selection"]
    for trial in others:
        terms = products(trial)
        assert Fraction(float(present(trial.exact)[0, 0])) == sum(terms)
        assert sum(map(abs, terms)) <= 2**24 or sum(map(bool, terms)) <= 1
    whole = others[0]
    assert all(not (values % 1).any() for values in whole.inputs)
    assert whole.inputs[0][0, -1] * whole.inputs[1][0, -1] != 0  # the last product counts
    if N > 20:
        assert not np.array_equal(sample.inputs[0], trials.reference.inputs[0])


@settings(max_examples=20)
@given(st.integers(20, 3000), SEEDS)
def test_long_dot_products_are_made_of_chunks_and_few_whole_numbers(N: int, seed: int) -> None:
    """The thresholds 2²⁰ and 2²², made small enough to be exceeded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dot, "_CHUNK", 7)
        patch.setattr(dot, "_MOST_TERMS", 16)
        at = problem("dot", N, "signed", seed)
        trial = dot.reference_trial(at, *dot.inputs(at))
        whole = dot.integer_trial(at)
    terms = products(trial)
    R = float(present(trial.R)[0, 0])
    assert abs(Fraction(R) - sum(terms)) <= N * 2**-53 * sum(map(abs, terms))
    terms = products(whole)
    assert sum(terms) == present(whole.exact)[0, 0]
    assert sum(map(bool, whole.inputs[0][0].tolist())) <= 16
    assert sum(map(abs, terms)) <= 4 * 16
    assert terms[-1] == 3


@given(LENGTHS, SEEDS)
def test_whole_numbers_are_turned_and_cubed(kernels: DeviceKernels, N: int, seed: int) -> None:
    for inputs in workloads.WORKLOADS["reverse"].inputs:
        at = problem("reverse", N, inputs, seed)
        trials = trials_of(at)
        [sample] = sampled(kernels, at, [seed])
        for trial in (trials.reference, sample):
            assert present(trial.exact)[0].tolist() == trial.inputs[0][0].tolist()[::-1]
        assert not np.array_equal(sample.inputs[0], trials.reference.inputs[0])
    at = problem("cubes", N, seed=seed)
    found = trials_of(at)
    [sample] = sampled(kernels, at, [seed])
    every = [found.reference, *(make() for make in found.others), sample]
    for trial in every:
        assert present(trial.exact)[0, 0] == sum(digit**3 for digit in trial.inputs[0][0].tolist())
        assert trial.inputs[0].min() >= 0
        assert trial.inputs[0].max() <= 9
    assert N < 9 or len({trial.inputs[0].tobytes() for trial in every}) >= 2


def test_inputs_are_of_their_kind_and_of_their_seed() -> None:
    assert dot.inputs(problem("dot", 4, "ramp"))[1].tolist() == [[0, 2, 4, 6]]
    assert reverse.inputs(problem("reverse", 4, "ramp")).tolist() == [[0, 1, 2, 3]]
    wide = reverse.inputs(problem("reverse", 10_000, "uniform"))
    assert wide.min() < -(2**30)
    assert wide.max() > 2**30
    assert set(cubes.digits(problem("cubes", 1000)).flat) == set(range(10))
    for kind in ("uniform", "signed", "normal"):
        one, same, other = (dot.inputs(problem("dot", 1000, kind, seed)) for seed in (1, 1, 2))
        assert np.array_equal(one, same)
        assert not np.array_equal(one[0], other[0])
        assert not np.array_equal(*one)


@pytest.mark.parametrize(
    ("workload", "contract"),
    [
        ("dot", NumericContract()), ("dot", NumericContract("bfloat16", "bfloat16")),
        ("reverse", NumericContract(storage="int32")), ("cubes", NumericContract(storage="int32")),
    ],
)  # fmt: skip
def test_trials_take_no_more_memory_than_is_said(workload: str, contract: NumericContract) -> None:
    """A problem that does not fit into host memory is refused."""
    at = problem(workload, 2**20, workloads.WORKLOADS[workload].probed_inputs[0])
    trials_of(problem(workload, 100), contract)  # memory that is loaded once does not count
    tracemalloc.start()
    try:
        trials_of(at, contract)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # What does not grow with the problem: a chunk of two products at a time, and small objects.
    fixed = 2**18 + (2 * 8 * dot._CHUNK if workload == "dot" else 0)
    assert most <= workloads.WORKLOADS[workload].host_bytes(at) + fixed


# -- 16-bit inputs -------------------------------------------------------------------------------

TYPED = text_of("of-a-workload.cu")


def test_types_that_a_kernel_may_point_to(
    tmp_path: Path, table_regression: TableRegression
) -> None:
    """Those of inputs and of C, and a precision: how the inputs are read and stored."""

    def said(source: str) -> str:
        workload, of_inputs, of_C, *precision = source.split()
        types = dict.fromkeys(workloads.WORKLOADS[workload].buffers, of_inputs) | {"C": of_C}
        parameters = ", ".join(f"{kind} *{name}" for name, kind in types.items())
        text = TYPED.replace("WORKLOAD", workload).replace("PARAMETERS", parameters)
        text = text.replace("PRECISION", f'precision = "{precision[0]}"' if precision else "")
        path = saved(tmp_path / "mine.cu", text)
        try:
            contract = catalogue.load(path).contract
        except UsageError as error:
            return str(error).replace(str(tmp_path), "")
        return f"{contract.precision}, stored as {contract.storage}"

    table_regression("types-of-vectors.txt", said)


def test_numbers_lie_in_16_bits_as_their_types_say() -> None:
    """By their values: sign, exponent and fraction, assembled by hand."""
    at = problem("dot", 5000, "normal")
    for precision, exponent_bits, fraction_bits in (("bfloat16", 8, 7), ("float16", 5, 10)):
        contract = NumericContract(precision, precision)  # type: ignore[arg-type]
        for values in trials_of(at, contract).reference.inputs:
            stored = rounding.stored(values, contract.storage)
            bits = stored.view(np.uint16).astype(np.int64)
            fraction = bits & (2**fraction_bits - 1)
            exponent = (bits >> fraction_bits) & (2**exponent_bits - 1)
            bias = 2 ** (exponent_bits - 1) - 1
            normal = np.where(exponent > 0, 2**fraction_bits + fraction, fraction)
            size = np.ldexp(normal.astype(float), np.maximum(exponent, 1) - bias - fraction_bits)
            told = np.where(bits >> 15 == 1, -size, size)
            large = exponent > 0  # below, float16 has fewer bits than its inputs were rounded to
            assert stored.dtype.itemsize == 2
            assert np.array_equal(told[large], values[large])
            assert large.mean() > 0.999
            assert np.array_equal(values, oracle.round_to(values, contract.precision))


# -- on a GPU ------------------------------------------------------------------------------------


DOT = [kernel for kernel in KERNELS.values() if kernel.workload == "dot"]
VARIANTS: tuple[Variant, ...] = ("plain", "clocked", "staggered")


@pytest.fixture(scope="module")
def cuda(info: DeviceInfo) -> Iterator[Backend]:
    with closing(Builders(300)) as builders:
        every = [
            case
            for kernel in KERNELS.values()
            for case in sweep.cases([kernel], [problem(kernel.workload, 33)], {}, info)
        ]
        builders.start(info, every, VARIANTS)
        for case in every:
            with suppress(MatbenchError):  # that kernel's own test reports it
                builders.wait(info, case)
    with closing(backends.open_backend(info, Cache())) as opened:
        yield opened


@pytest.mark.gpu
@pytest.mark.parametrize(("kernel", "inputs"), EVERY)
def test_right_at_every_awkward_size(kernel: Kernel, inputs: str, checks: Session) -> None:
    check_at_every_size(kernel, inputs, checks)


@pytest.mark.gpu
def test_compensation_survives_nvcc(checks: Session) -> None:
    check_compensation(KERNELS["dot-compensated"], KERNELS["dot-vectorized"], checks)


@pytest.mark.gpu
def test_the_last_block_is_found_whatever_ran_before(checks: Session, info: DeviceInfo) -> None:
    """Launches of many and of few blocks alternate; each must reset the counter."""
    kernel = KERNELS["dot-single-pass"]
    found: dict[int, set[float]] = {}
    for N in (2**22 + 3, 5, 100_003) * 3:
        [case] = sweep.cases([kernel], [problem("dot", N, "signed")], {}, info)
        right(checks, case)
        found.setdefault(N, set()).add(result(checks, case))
    assert [len(values) for values in found.values()] == [1, 1, 1]


@pytest.mark.gpu
@pytest.mark.parametrize("N", [2**30, 2**30 - 1])
@pytest.mark.parametrize("kernel", DOT, ids=lambda kernel: kernel.name)
def test_every_product_is_found_once_at_the_largest_size(
    kernel: Kernel, N: int, cuda: Backend, info: DeviceInfo
) -> None:
    """Zeros except in some places, where the products are distinct powers of two."""
    case = sweep.case(kernel, problem("dot", N), {k: v[0] for k, v in kernel.sweep.items()}, info)
    assert case.launch is not None, case.skip
    blocks = case.launch.blocks if kernel.finish else 1
    with closing(DeviceKernels(cuda)) as kernels, Memory(cuda) as memory:
        held = [memory.allocate(n) for n in (4 * N, 4 * N, 4 * blocks)]
        for buffer in held[:2]:
            kernels.fill(buffer, 0, N, 0)
        kernels.fill(held[2], 0, blocks, UNWRITTEN)
        places = [0, 4097, 2**28 - 1, 2**28, 2**29 - 1, 2**29, 2**29 + 12_345, N - 5, N - 1]
        page = 1024
        for power, place in enumerate(places):
            start = place // page * page
            for buffer, value in zip(held, (2.0**power, 1.0), strict=False):
                words = np.zeros(min(page, N - start), np.float32)
                view = buffer.view(4 * start, words.nbytes)
                cuda.read(view, words)
                words[place - start] = value
                cuda.write(view, words)
        program = cuda.build(kernel, case.params, block_width=case.launch.block[0])
        named = dict(zip("ABC", held, strict=True))
        program.launch(case.launch, kernel_arguments.arguments(case, named))
        parts = np.empty(blocks, np.float32)
        cuda.read(held[2], parts)
        assert float(parts.astype(np.float64).sum()) == 2 ** len(places) - 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["reverse-blocks", "reverse-direct"])
def test_the_largest_array_is_turned_round(name: str, cuda: Backend, info: DeviceInfo) -> None:
    N, kernel = 2**30 - 1, KERNELS[name]
    case = sweep.case(kernel, problem("reverse", N), {"THREADS": 256}, info)
    assert case.launch is not None, case.skip
    with closing(DeviceKernels(cuda)) as kernels, Memory(cuda) as memory:
        held = [memory.allocate(4 * N) for _ in "AC"]
        kernels.fill(held[0], 0, N, 0)
        kernels.fill(held[1], 0, N, UNWRITTEN)
        first = np.arange(1, 3001, dtype=np.int32)
        cuda.write(held[0], first)
        program = cuda.build(kernel, case.params, block_width=256)
        program.launch(case.launch, [*held, N])
        expected = np.zeros(N, np.int32)
        expected[-3000:] = first[::-1]
        found = np.empty(N, np.int32)
        cuda.read(held[1], found)
        assert np.array_equal(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("inputs", workloads.WORKLOADS["dot"].inputs)
@pytest.mark.parametrize("N", [1, 33, 33792, 1_000_003])
def test_cublas_is_right_too(N: int, inputs: str, checks: Session, info: DeviceInfo) -> None:
    [case] = sweep.cases([BASELINES["cublas-dot"]], [problem("dot", N, inputs)], {}, info)
    outcome = right(checks, case)
    resources = present(present(outcome.build).resources)
    assert present(resources.library).startswith("cuBLAS ")


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.parametrize("mode", some([[], ["--method", "hot"], ["--method", "graph"]], []))
def test_dot_products_side_by_side(matbench: Matbench, info: DeviceInfo, mode: list[str]) -> None:
    dots = ("--workload", "dot", "--baseline", "cublas-dot", "--backend", "cuda")
    matbench("run", *dots, "--sizes", "2^22", *mode)
    outcomes = {outcome.case.kernel: outcome for outcome in last_run()}
    assert outcomes.keys() == {kernel.name for kernel in DOT} | {"cublas-dot"}
    assert {o.status for o in outcomes.values()} == {"measured"}
    medians = {name: present(o.median_ns) for name, o in outcomes.items()}
    assert medians["dot-tree"] == max(medians.values())  # its 32 blocks fill a quarter of an H200


@pytest.mark.gpu
@pytest.mark.alone
def test_reading_at_full_speed_is_possible(matbench: Matbench, info: DeviceInfo) -> None:
    """Large sums read memory at about full bandwidth, and are not called impossible."""
    rungs = ("dot-vectorized", "dot-single-pass", "--baseline", "cublas-dot")
    matbench("run", *rungs, "--sizes", "2^27", "--backend", "cuda")
    assert [outcome.status for outcome in last_run()] == ["measured"] * 3
    for outcome in last_run():
        rate = 2**30 / (present(outcome.median_ns) * 1e-9)
        assert rate > 0.95 * present(outcome.copy_bytes_per_s)


@pytest.mark.gpu
@pytest.mark.alone
def test_cubes_from_one_thread_to_a_tree(matbench: Matbench, info: DeviceInfo) -> None:
    matbench("run", "--workload", "cubes", "--backend", "cuda")
    medians = {outcome.case.kernel: present(outcome.median_ns) for outcome in last_run()}
    assert len(medians) == 6
    assert medians["cubes-thread"] == max(medians.values())
    assert medians["cubes-thread"] > 100 * medians["cubes-tree"]
