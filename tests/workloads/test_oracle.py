"""The oracle: reproducible inputs, exact references, valid bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.optional import present
from support.samples import judge, sampled

from matbench.bench.device_kernels import DeviceKernels
from matbench.bench.samples import mixed
from matbench.cache import Cache
from matbench.model import U32, Inputs, NumericContract, Precision, Problem, WorkloadName
from matbench.workloads import oracle
from matbench.workloads.matmul import trials as matmul
from matbench.workloads.oracle import Bound, Float32, Float64, Trial

SHAPES = [(1, 1, 1), (1, 7, 1), (5, 1, 3), (17, 33, 65), (64, 64, 64), (3, 2, 1000)]
KINDS: list[Inputs] = ["uniform", "signed", "normal"]
EVERY = [Problem(*shape, inputs=kind) for shape in SHAPES for kind in KINDS]


def label(problem: Problem) -> str:
    return f"{problem.size}-{problem.inputs}"


def exact_product(A: Float32, B: Float32) -> Float64:
    """The product in float64."""
    product: Float64 = A.astype(np.float64) @ B.astype(np.float64)
    return product


def right(C: Float32, trial: Trial, factor: float) -> bool:
    verdict = judge(C, trial, Bound(factor * U32))
    assert (verdict.wrong == 0) == (verdict.first_wrong is None)
    return verdict.wrong == 0


# -- inputs --------------------------------------------------------------------------------------


def test_inputs_are_of_their_kind() -> None:
    A, B = matmul.inputs(Problem(200, 300, 100))
    assert (A.shape, B.shape) == ((200, 100), (100, 300))
    assert A.dtype == B.dtype == np.float32
    assert A.min() >= 0
    assert A.max() < 1
    assert abs(A.mean() - 0.5) < 0.02
    A, _ = matmul.inputs(Problem(200, 300, 100, inputs="signed"))
    assert A.min() >= -1
    assert A.max() < 1
    assert abs(A.mean()) < 0.02
    assert abs(A.std() - 1 / math.sqrt(3)) < 0.02
    A, _ = matmul.inputs(Problem(200, 300, 100, inputs="normal"))
    assert abs(A.mean()) < 0.03
    assert abs(A.std() - 1) < 0.03
    assert A.max() > 3


def test_inputs_stay_what_they_are() -> None:
    """Records with the same seed are comparable only while it gives the same numbers."""
    A, B = matmul.inputs(Problem(2, 2, 2, seed=7))
    assert A.tolist() == [
        [0.3793841600418091, 0.5950672030448914],
        [0.8960990905761719, 0.9336541891098022],
    ]
    assert B.tolist() == [
        [0.5565907955169678, 0.4255959391593933],
        [0.1674838662147522, 0.6620412468910217],
    ]


# -- rounding to a kernel's precision ------------------------------------------------------------


@given(
    st.floats(2.0**-126, 2.0**100, width=32) | st.floats(-(2.0**100), -(2.0**-126), width=32),
    st.sampled_from(["tf32", "float16", "bfloat16"]),
)
def test_rounding_is_to_nearest_and_ties_to_even(value: float, precision: Precision) -> None:
    bits = oracle.SIGNIFICAND_BITS[precision]
    [rounded] = oracle.round_to(np.array([value], np.float32), precision)
    fraction, exponent = math.frexp(value)
    expected = Fraction(round(Fraction(fraction) * 2**bits), 2**bits) * Fraction(2) ** exponent
    assert Fraction(float(rounded)) == expected
    assert oracle.round_to(np.array([rounded]), precision)[0] == rounded


# -- the reference -------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", EVERY, ids=label)
def test_the_reference_is_the_float64_product(problem: Problem, cache: Cache) -> None:
    trial = matmul.reference_trial(problem, cache)
    assert trial.R is not None
    assert trial.S is not None
    for row, column in {(0, 0), (problem.M - 1, problem.N - 1), (problem.M // 2, problem.N // 3)}:
        terms = [
            Fraction(float(a)) * Fraction(float(b))
            for a, b in zip(trial.inputs[0][row], trial.inputs[1][:, column], strict=True)
        ]
        size = sum(map(abs, terms))
        slack = size * problem.K * Fraction(2) ** -52
        assert abs(Fraction(float(trial.R[row, column])) - sum(terms)) <= slack
        assert abs(Fraction(float(trial.S[row, column])) - size) <= slack
    assert (trial.S is trial.R) == (problem.inputs == "uniform")


def test_a_product_is_computed_once(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    get_or_make = Cache.get_or_make

    def counted(self: Cache, key: str, make: Callable[[], memoryview]) -> memoryview:
        def make_and_count() -> memoryview:
            made.append(key)
            return make()

        return get_or_make(self, key, make_and_count)

    monkeypatch.setattr(Cache, "get_or_make", counted)
    for problem, products in ((Problem(8, 9, 10), 1), (Problem(8, 9, 10, inputs="signed"), 2)):
        made.clear()
        first = matmul.reference_trial(problem, cache)
        again = matmul.reference_trial(problem, Cache(cache.folder))
        assert len(made) == products
        assert np.array_equal(present(first.R), present(again.R))
        assert np.array_equal(present(first.S), present(again.S))
    matmul.reference_trial(Problem(8, 9, 10, seed=1), cache)
    assert len(made) == 3


def test_what_was_kept_is_never_the_reference_of_another_problem(tmp_path: Path) -> None:
    """With one cache for all, each is what it is without a cache."""
    shared, none, size = Cache(tmp_path / "shared"), Cache(tmp_path, limit_bytes=0), (8, 9, 40)
    double = NumericContract("float64", "float64", sums_in="float64", result="float64")
    narrow = [NumericContract(exponents=(low, 15)) for low in (-12, -26)]
    asked = [
        *(
            (Problem(*size, inputs="signed"), contract)
            for contract in (*narrow, double, NumericContract())
        ),
        (Problem(*size, inputs="signed", seed=1), NumericContract()),
        (Problem(*size, inputs="signed", seed=1), NumericContract("bfloat16")),
        (Problem(*size, alpha=2.0, beta=-1.0), NumericContract()),
        (Problem(2, 3, 6), NumericContract()),  # the same numbers as the next, in another shape
        (Problem(4, 6, 3), NumericContract()),
    ]
    for problem, contract in asked:
        found, alone = (
            oracle.trials(problem, contract, cache).reference for cache in (shared, none)
        )
        assert np.array_equal(present(found.R), present(alone.R))
        assert np.array_equal(present(found.S), present(alone.S))


# -- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", EVERY, ids=label)
def test_samples_have_their_size(problem: Problem, kernels: DeviceKernels, cache: Cache) -> None:
    stale = present(matmul.reference_trial(problem, cache).R).astype(np.float32)
    for trial in sampled(kernels, problem, range(4), signed=False):
        A, B = trial.inputs
        S, trial_S = exact_product(abs(A), abs(B)), present(trial.S)
        sums = trial_S != 0
        assert np.allclose(S[sums], trial_S[sums], rtol=1e-12)
        # An answer for the first inputs is wrong almost everywhere.
        wrong = judge(stale, trial, Bound(oracle.error_factor(problem.K) * U32)).wrong
        assert wrong > 0.4 * S.size or problem.M * problem.N < 4


def test_a_sample_is_drawn_again_from_its_key_and_others_differ(kernels: DeviceKernels) -> None:
    first, again, other = sampled(kernels, Problem(40, 50, 60), (1, 1, 2))
    for mine, same, different in zip(first.inputs, again.inputs, other.inputs, strict=True):
        assert np.array_equal(mine, same)
        assert (mine != different).mean() > 0.9


@pytest.mark.parametrize("exponents", [(-126, 127), (-12, 15), (0, 4)])
def test_exponents_stay_in_range(exponents: tuple[int, int], kernels: DeviceKernels) -> None:
    problem = Problem(64, 64, 64)
    given = matmul.inputs(problem)
    contract = NumericContract(exponents=exponents)
    up, down = oracle.shifts(contract)
    found = set()
    for trial in sampled(kernels, problem, range(20), contract, signed=False):
        largest = [abs(matrix).max() for matrix in trial.inputs]
        smallest = [
            abs(matrix[matrix != 0]).min() / abs(source).min()
            for matrix, source in zip(trial.inputs, given, strict=True)
        ]
        assert max(largest) <= 2.0**up
        assert min(smallest) >= 2.0**-down
        found.add(largest[0] > largest[1])
    assert found == {True, False} or up == down == 0


@pytest.mark.parametrize("what", ["sums_in", "result"])
def test_sums_of_16_bits_stay_in_range(what: str, kernels: DeviceKernels, cache: Cache) -> None:
    problem = Problem(20, 20, 50)
    contract = NumericContract("float16", "float32", (-14, 15), **{what: "float16"})  # type: ignore[arg-type]
    given = matmul.trials(problem, contract, cache).reference
    for trial in sampled(kernels, problem, range(5), contract):
        assert abs(present(trial.R)).max() <= abs(present(given.R)).max()


def test_rows_and_columns_select_single_terms(kernels: DeviceKernels) -> None:
    """Every sample of a size selects some terms, in any row, column and place."""
    rows, terms = set(), set()
    for trial in sampled(kernels, Problem(33, 40, 50), range(60)):
        A, B = trial.inputs
        single_rows, single_columns = (
            np.count_nonzero(x, axis=a) == 1 for x, a in ((A, 1), (B, 0))
        )
        assert 1 <= single_rows.sum() <= 4
        assert 1 <= single_columns.sum() <= 4
        rows |= set(np.flatnonzero(single_rows))
        terms |= {int(np.flatnonzero(A[i])[0]) for i in np.flatnonzero(single_rows)}
        assert (np.frexp(abs(A[single_rows][A[single_rows] != 0]))[0] == 0.5).all()
    assert len(rows) == 33
    assert len(terms) > 45


def test_a_kernel_that_splits_inputs_may_be_off_if_terms_vary(kernels: DeviceKernels) -> None:
    problem = Problem(33, 40, 50)
    [strict] = sampled(kernels, problem, [3], signed=False)
    [lenient] = sampled(kernels, problem, [3], NumericContract(exact=False), signed=False)
    C = (present(lenient.R) * (1 + 2.0**-22)).astype(np.float32)
    assert judge(C, lenient, Bound(10 * U32)).wrong == 0
    assert judge(C, strict, Bound(10 * U32)).wrong > 0


@pytest.mark.parametrize("shape", [(60, 50, 1), (30, 30, 2), (20, 20, 40)])
@pytest.mark.parametrize("inputs", KINDS)
def test_inputs_below_the_range_of_exponents_may_lose_bits(
    shape: tuple[int, int, int], inputs: Any, kernels: DeviceKernels,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A kernel that rounds inputs to a fixed unit, that of the end of its range, is right."""

    def product(trial: Trial, last_bit: int) -> Float32:
        unit = 2.0**last_bit
        A, B = (np.rint(matrix.astype(np.float64) / unit) * unit for matrix in trial.inputs)
        return (A @ B).astype(np.float32)

    problem = Problem(*shape, inputs=inputs)
    A, B = matmul.inputs(problem)
    A[0] = B[:, 0] = 2.0**-20 / 3  # numbers this small are rare
    monkeypatch.setattr(matmul, "inputs", lambda *_: (A, B))
    contract = NumericContract(exponents=(-12, 15), exact=False)
    given = matmul.trials(problem, contract, Cache()).reference
    factor = 1.0 + oracle.error_factor(problem.K)
    for trial in (given, *sampled(kernels, problem, range(30), contract, signed=False)):
        assert right(product(trial, -12 - 24), trial, factor)
    assert not right(product(given, -20), given, factor)  # the control


@pytest.mark.parametrize("low", [-12, 0, 10])
def test_no_claim_of_range_lets_zeros_pass(low: int, kernels: DeviceKernels, cache: Cache) -> None:
    problem = Problem(16, 16, 256)
    contract = NumericContract(exponents=(low, 15), exact=False)
    given = matmul.trials(problem, contract, cache).reference
    for trial in (given, *sampled(kernels, problem, range(5), contract, signed=False)):
        assert not right(np.zeros((16, 16), np.float32), trial, 64.0 + oracle.error_factor(256))


@pytest.mark.parametrize("inputs", KINDS)
def test_products_of_float16_are_right(inputs: Any, kernels: DeviceKernels) -> None:
    contract = NumericContract("float16", exponents=(-14, 15))
    for trial in sampled(kernels, Problem(60, 50, 1, inputs=inputs), range(30), contract):
        A, B = (matrix.astype(np.float16).astype(np.float64) for matrix in trial.inputs)
        assert right((A @ B).astype(np.float32), trial, oracle.error_factor(1))


def test_the_range_of_float32_leaves_nothing_out(cache: Cache) -> None:
    problem = Problem(4, 4, 1)
    assert oracle.least(NumericContract()) == 0
    R, S = matmul.product(*matmul.inputs(problem), cache)
    assert S is R
    narrow = NumericContract(exponents=(-12, 15))  # the control: of 1,600 inputs, some are small
    made = matmul.trials(Problem(20, 20, 40), narrow, cache).reference
    assert (present(made.S) > present(made.R)).any()


def test_parts_are_added_without_overflow_or_rounding() -> None:
    assert oracle.total(np.array([[2**30, 2**30 - 1]], np.int32)).tolist() == [[2**31 - 1]]
    assert oracle.total(np.array([[2.0**24, 1.0, 1.0]], np.float32)).tolist() == [[2.0**24 + 2]]


# -- the random numbers --------------------------------------------------------------------------


def test_rows_are_in_every_order_alike(kernels: DeviceKernels) -> None:
    trials = sampled(kernels, Problem(4, 1, 1), range(600))
    sizes = (np.frexp(abs(trial.inputs[0][:, 0]))[0] for trial in trials)
    counts = Counter(tuple(np.argsort(size)) for size in sizes if 0.5 not in size)
    assert len(counts) == 24
    assert min(counts.values()) > 3


def test_the_finalizer_is_splitmix64s() -> None:
    """Published first outputs of the generator seeded with 1234567."""
    step, state, found = 0x9E3779B97F4A7C15, 1234567, []
    for _ in range(3):
        found.append(mixed(state))
        state = (state + step) % 2**64
    assert found == [6457827717110365317, 3203168211198807973, 9817491932198370423]


# -- the other trials ----------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float32", "tf32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [*SHAPES, (2, 3, 5000)], ids=str)
def test_integers_are_exact_in_any_order(shape: tuple[int, int, int], precision: Precision) -> None:
    trial = matmul.integer_trial(Problem(*shape), NumericContract(precision))
    assert np.array_equal(trial.inputs[0], np.rint(trial.inputs[0]))
    assert np.array_equal(trial.inputs[1], np.rint(trial.inputs[1]))
    for matrix in (trial.inputs[0], trial.inputs[1]):
        assert np.array_equal(matrix, oracle.round_to(matrix, precision))
    assert exact_product(*map(abs, trial.inputs)).max() <= 2**24
    assert np.array_equal(present(trial.exact), exact_product(*trial.inputs))
    if shape[0] * shape[2] > 100:
        assert (trial.inputs[0] < 0).any()
        assert (trial.inputs[0] > 0).any()
        assert (trial.inputs[0] == 0).any()


def test_integers_stay_exact_where_k_is_huge() -> None:
    trial = matmul.integer_trial(Problem(1, 2, 2**22 + 99))
    assert exact_product(*map(abs, trial.inputs)).max() <= 2**24
    assert np.array_equal(present(trial.exact), exact_product(*trial.inputs))
    sums = NumericContract("float16", "float16", sums_in="float16", result="float16")
    trial = matmul.integer_trial(Problem(1, 2, 10_000), sums)
    assert exact_product(*map(abs, trial.inputs)).max() <= 2**14


# -- the bound -----------------------------------------------------------------------------------


def test_the_bound_is_the_classical_one_and_from_32_terms_on_the_lesser() -> None:
    assert [oracle.error_factor(k) for k in (1, 2, 31)] == [2, 3, 32]
    assert oracle.error_factor(32) == pytest.approx(4 * math.sqrt(32))
    assert oracle.error_factor(1000) == pytest.approx(4 * math.sqrt(1000))
    # Truncated sums: twice as much, and from K = 1024 on a quarter of K.
    for k in (1, 31, 32, 1000, 1024):
        assert oracle.error_factor(k, truncated=True) == 2 * oracle.error_factor(k)
    assert oracle.error_factor(8192, truncated=True) == 2048


def float32_product(A: Float32, B: Float32, order: list[int] | None = None) -> Float32:
    """One term after the other, each rounded to float32."""
    C = np.zeros((A.shape[0], B.shape[1]), np.float32)
    for k in order or range(A.shape[1]):
        C += np.outer(A[:, k], B[k])
    return C


@given(
    st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 120)),
    st.sampled_from(KINDS),
    st.integers(0, 2**32),
    st.randoms(use_true_random=False),
)
def test_a_float32_product_in_any_order_is_right(
    shape: tuple[int, int, int], kind: Inputs, seed: int, random: Random
) -> None:
    problem = Problem(*shape, inputs=kind, seed=seed)
    trial = matmul.reference_trial(problem, Cache())
    order = list(range(problem.K))
    random.shuffle(order)
    factor = oracle.error_factor(problem.K)
    for C in (
        float32_product(trial.inputs[0], trial.inputs[1], order),
        trial.inputs[0] @ trial.inputs[1],
    ):
        verdict = judge(C, trial, Bound(factor * U32))
        assert verdict.wrong == 0
        assert present(verdict.accuracy.bound_ratio) <= 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["tf32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [32, 100, 300])
def test_too_little_precision(size: int, precision: Precision, kind: Inputs, cache: Cache) -> None:
    problem = Problem(size, size, size, inputs=kind)
    trial = matmul.reference_trial(problem, cache)
    A, B = oracle.round_to(trial.inputs[0], precision), oracle.round_to(trial.inputs[1], precision)
    assert not right(A @ B, trial, oracle.error_factor(size))
    # On inputs that were rounded first, the same arithmetic is right.
    rounded = matmul.rounded_trial(trial, NumericContract(precision), cache)
    assert right(A @ B, rounded, oracle.error_factor(size))


def test_where_everything_is_zero_only_zero_is_right() -> None:
    zero, nothing = np.zeros((1, 2), np.float32), np.zeros((1, 2))
    trial = Trial("reference", (zero[:, :1], zero), R=nothing, S=nothing)
    assert right(np.array([[0.0, -0.0]], np.float32), trial, 1000)
    assert not right(np.array([[0.0, 1e-45]], np.float32), trial, 1000)
    accuracy = judge(zero, trial, Bound(U32)).accuracy
    assert (accuracy.max_rel_err, accuracy.avg_rel_err) == (None, None)
    assert accuracy.bound_ratio == 0


def test_errors_are_over_the_elements_whose_reference_is_not_zero() -> None:
    R: Float64 = np.array([[1.0, 0.0, -2.0]])
    trial = Trial(
        "reference", (np.ones((1, 1), np.float32), np.ones((1, 3), np.float32)), R=R, S=abs(R) + 1
    )
    C = np.array([[1.5, 0.25, -2.5]], np.float32)
    accuracy = judge(C, trial, Bound(1.0)).accuracy
    assert accuracy.max_rel_err == 0.5
    assert accuracy.avg_rel_err == (0.5 + 0.25) / 2
    assert accuracy.bound_ratio == 0.25


@pytest.mark.parametrize("workload", ["matmul", "dot"])
def test_the_reference_is_of_the_numbers_that_float16_can_store(workload: WorkloadName) -> None:
    """Below 2⁻¹⁴ it has fewer bits: one product alone would be off by more than its bound."""
    sizes = (300, 300, 1) if workload == "matmul" else (1, 90000, 1)
    problem = Problem(*sizes, inputs="normal", workload=workload)
    made = oracle.trials(
        problem, NumericContract("float16", "float16", (-14, 15)), Cache()
    ).reference
    for values in made.inputs:
        assert (values == values.astype(np.float16)).all()
