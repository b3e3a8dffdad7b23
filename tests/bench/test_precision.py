"""Sums whose terms have random signs: they reveal rounded inputs and missing terms at any size."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.optional import present
from support.paths import KERNELS
from support.products import opened
from support.samples import judge, sampled

from matbench.backends import host
from matbench.bench import diagnosis
from matbench.bench.device_kernels import DeviceKernels
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.model import U32, Case, Inputs, Kernel, NumericContract, Precision, Problem
from matbench.workloads import MATMUL, oracle
from matbench.workloads.matmul import trials as matmul
from matbench.workloads.oracle import Array, Float32, Trial, Typical

KINDS: list[Inputs] = ["uniform", "signed", "normal"]
[HONEST] = [kernel for kernel in catalogue.builtin() if kernel.name == "naive-2d"]
Sample = Callable[..., Trial]
CLAIMS_EIGHT = msgspec.structs.replace(HONEST, error_constant=8.0)


@pytest.fixture(scope="module")
def sample(kernels: DeviceKernels) -> Sample:
    """The sample of a problem for a key, and a kernel other than `HONEST`."""

    def one(problem: Problem, key: int, kernel: Kernel = HONEST) -> Trial:
        [trial] = sampled(kernels, problem, [key], kernel.contract)
        return trial

    return one


def is_right(C: Array, trial: Trial, problem: Problem, kernel: Kernel = HONEST) -> bool:
    return judge(C, trial, oracle.bound(kernel, problem)).wrong == 0


# -- the samples -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [1.0, -0.7])
@pytest.mark.parametrize("size", [(40, 33, 100), (1, 5, 64), (33, 20, 63)], ids=str)
def test_samples_have_the_sizes_that_they_say(
    sample: Sample, size: tuple[int, int, int], alpha: float, kind: Inputs
) -> None:
    problem = Problem(*size, inputs=kind, alpha=alpha)
    sparse_rows = 0
    for key in range(6):
        trial = sample(problem, key)
        typical = present(trial.typical)
        A, B = (matrix.astype(np.float64) for matrix in trial.inputs)
        products = (alpha * A[:, :, np.newaxis] * B).transpose(0, 2, 1)
        sums = np.isfinite(typical.T)  # no single term is selected
        S, squares = np.abs(products).sum(axis=2), np.linalg.norm(products, axis=2)
        assert np.allclose(present(trial.S)[sums], S[sums], rtol=1e-12)
        shares = typical.T[typical.dense] / squares[typical.dense]
        assert ((shares > 0.3) & (shares < 3)).all()
        few = sums & ~typical.dense
        terms = np.sort(np.abs(products[few]), axis=1)
        assert (terms[:, 0] > 0).all()
        if few.any():
            assert (terms[:, -33] < 1e-5 * terms[:, -1]).all()
            assert (terms[:, -20] > 1e-5 * terms[:, -1]).all()
        sparse_rows += int(typical.sparse.sum())
    assert (sparse_rows > 0) == (problem.K >= oracle.LEAST_SPARSE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_signs_of_terms_are_random(sample: Sample, kind: Inputs) -> None:
    trial = sample(Problem(40, 50, 300, inputs=kind), 1)
    A, B = trial.inputs
    dense = present(trial.typical).dense
    signs = np.sign(A[:, :, np.newaxis] * B).transpose(0, 2, 1)[dense]
    assert np.abs(signs.mean(axis=1)).max() < 6 / np.sqrt(300)
    alike = signs[:200] @ signs[-200:].T / 300  # no two elements add up the same signs
    assert np.abs(alike).max() < 6 / np.sqrt(300)


def test_kernels_that_claim_lower_precision_have_no_random_signs() -> None:
    """Nor do float64 sums, which are far more precise than their reference."""
    problem = Problem(8, 8, 8)
    for contract in (
        NumericContract("tf32"),
        NumericContract("bfloat16", "bfloat16"),
        NumericContract("float64", "float64", sums_in="float64", result="float64"),
    ):
        assert matmul.trials(problem, contract, Cache()).signed is None


def test_a_range_that_does_not_hold_the_small_terms_has_no_sparse_rows(sample: Sample) -> None:
    narrow = msgspec.structs.replace(HONEST, exponents=(-14, 15))
    assert not any(
        present(sample(Problem(40, 40, 100), key, narrow).typical).sparse.any() for key in range(4)
    )


def test_what_a_claim_allows_is_allowed_whatever_the_signs(sample: Sample) -> None:
    problem = Problem(40, 40, 1000)
    trial = sample(problem, 1, CLAIMS_EIGHT)
    C = present(trial.R) + 7.9 * U32 * present(trial.S)
    assert is_right(C, trial, problem, CLAIMS_EIGHT)
    assert not is_right(C, trial, problem)


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_no_dot_product_is_so_long_that_zero_is_right(precision: Precision) -> None:
    kernel = msgspec.structs.replace(HONEST, workload="dot", precision=precision)
    for N in (2**20, 2**27, 2**30):
        T = np.ones((1, 1))
        allowed = oracle.bound(kernel, Problem(1, N, 1, workload="dot")).allowed(
            T, 0.75 * np.sqrt(N) * T, Typical(T, np.zeros(1, bool))
        )
        assert allowed <= 0.25


# -- honest sums -----------------------------------------------------------------------------------


def added(A: Float32, B: Float32, terms: range, *, fused: bool) -> Float32:
    """One term after the other."""
    C = np.zeros((A.shape[0], B.shape[1]), np.float32)
    wide_A, wide_B = A.astype(np.float64), B.astype(np.float64)
    for k in terms:
        if fused:
            C = (C + np.outer(wide_A[:, k], wide_B[k])).astype(np.float32)
        else:
            C += np.outer(A[:, k], B[k])
    return C


def sequential(A: Float32, B: Float32, parts: int, fused: bool) -> Float32:
    return added(A, B, range(A.shape[1]), fused=fused)


def total(parts: list[Float32]) -> Float32:
    result: Float32 = np.add.reduce(parts, dtype=np.float32)
    return result


def in_lanes(A: Float32, B: Float32, parts: int, fused: bool) -> Float32:
    """Each of several threads adds up every n-th term; then their sums are added."""
    K = A.shape[1]
    lanes = [added(A, B, range(lane, K, parts), fused=fused) for lane in range(min(parts, K))]
    return total(lanes)


def in_slices(A: Float32, B: Float32, parts: int, fused: bool) -> Float32:
    K = A.shape[1]
    width = -(-K // parts)
    starts = range(0, K, width)
    slices = [added(A, B, range(s, min(K, s + width)), fused=fused) for s in starts]
    return total(slices)


def pairwise(A: Float32, B: Float32, parts: int, fused: bool) -> Float32:
    terms = (A[:, :, np.newaxis] * B).transpose(1, 0, 2)
    while len(terms) > 1:
        half = len(terms) // 2
        terms = np.concatenate([terms[:half] + terms[half : 2 * half], terms[2 * half :]])
    return total([*terms])


SUMS = [sequential, in_lanes, in_slices, pairwise]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    problem=st.builds(
        Problem,
        st.sampled_from([1, 2, 7, 8, 33, 40]),
        st.sampled_from([1, 3, 8, 32, 40]),
        st.one_of(st.integers(1, 70), st.integers(71, 1500)),
        inputs=st.sampled_from(KINDS),
        seed=st.integers(0, 10**6),
    ),
    key=st.integers(0, 2**64 - 1),
    sums=st.sampled_from(SUMS),
    parts=st.sampled_from([2, 3, 4, 8, 32]),
    fused=st.booleans(),
)
def test_no_honest_sum_is_refused(
    sample: Sample, problem: Problem, key: int, sums: Callable[..., Float32], parts: int,
    fused: bool,
) -> None:  # fmt: skip
    trial = sample(problem, key)
    C = sums(*trial.inputs, parts, fused)
    bound = oracle.bound(HONEST, problem)
    assert judge(C, trial, bound).wrong == 0
    assert bound.excess(C, trial) < oracle.MOST_EXCESS / 2


@given(
    st.integers(1, 40), st.integers(1, 40), st.integers(1, 700), st.sampled_from(KINDS),
    st.integers(0, 2**64 - 1),
)  # fmt: skip
def test_three_parts_claim(sample: Sample, M: int, N: int, K: int, kind: Inputs, key: int) -> None:
    problem = Problem(M, N, K, inputs=kind)
    trial = sample(problem, key, CLAIMS_EIGHT)
    large = [oracle.round_to(matrix, "tf32") for matrix in trial.inputs]
    small = [
        oracle.round_to(matrix - part, "tf32")
        for matrix, part in zip(trial.inputs, large, strict=True)
    ]
    (A, B), (rest_of_A, rest_of_B), terms = large, small, range(K)
    C = added(rest_of_A, B, terms, fused=True) + added(A, rest_of_B, terms, fused=True)
    one = added(A, B, terms, fused=True)
    assert is_right(C + one, trial, problem, CLAIMS_EIGHT)
    if present(trial.typical).dense.sum() > 30:  # the control: two of the products are needed
        assert not is_right(one, trial, problem, CLAIMS_EIGHT)


# -- rounded inputs --------------------------------------------------------------------------------


def rounded(matrix: Float32, bits: int) -> Float32:
    mantissa, exponent = np.frexp(matrix)
    result: Float32 = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
    return result.astype(np.float32)


@pytest.mark.parametrize("operands", ["A", "B", "AB"])
@pytest.mark.parametrize(
    ("size", "bits"),
    [((32, 32, 1024), 18), ((32, 32, 2**14), 16), ((8, 12, 100), 18), ((1, 1000, 64), 18)],
    ids=str,
)
def test_no_rounding(sample: Sample, size: tuple[int, int, int], bits: int, operands: str) -> None:
    """By the errors of all elements together, as well as by sparse rows, whatever K."""
    problem = Problem(*size)
    bound = oracle.bound(HONEST, problem)
    together, sparse_rows = 0, 0
    for key in range(4):
        trial = sample(problem, key)
        A, B = (
            rounded(matrix, bits) if name in operands else matrix
            for name, matrix in zip("AB", trial.inputs, strict=True)
        )
        C = A.astype(np.float64) @ B.astype(np.float64)
        typical = present(trial.typical)
        wrong = diagnosis.wrong_elements(C, trial, bound)
        together += bound.excess(C, trial) > oracle.MOST_EXCESS
        sparse_rows += bool((wrong & np.isfinite(typical.T) & ~typical.dense).any())
    assert together == 4 or min(size) < 32
    assert sparse_rows > 0  # one that selects a term, too, is not sparse


def case_of(session: Session, size: str, bits: int, operands: int, spared: int) -> Case:
    [problem] = parse_problems(size, MATMUL, "uniform")
    kernel = catalogue.load(KERNELS / "cheats" / "cheat-spares-few-terms.cu")
    params = {"BITS": bits, "OPERANDS": operands, "SPARED": spared}
    return sweep.case(kernel, problem, params, session.backend.info)


LONG_SUMS = [
    ("64x64x65536", 8, 3), ("64x64x8192", 11, 3), ("64x64x8192", 12, 2), ("256x256x16384", 10, 3),
    ("256x256x16384", 11, 3), ("64x64x4096", 12, 1), ("32x32x2^20", 12, 1), ("32x32x2^20", 12, 2),
    ("32x32x2^18", 14, 1), ("32x32x2^18", 14, 2), ("64x64x2^14", 16, 1), ("64x64x2^14", 16, 2),
    ("64x64x1024", 18, 1), ("64x64x1024", 18, 2),
]  # fmt: skip
SHORT = [("32x32x8192", 11, 3), ("64x64x1024", 18, 2), ("32x32x4096", 12, 1)]


@pytest.mark.parametrize("spared", [1, 8])
@pytest.mark.parametrize(
    ("size", "bits", "operands"),
    [*SHORT, *(pytest.param(*case, marks=pytest.mark.long) for case in LONG_SUMS)],
)
def test_a_kernel_that_rounds_its_inputs_is_wrong(
    size: str, bits: int, operands: int, spared: int, session: Session
) -> None:
    """Although single terms, or sums of few, and whole numbers are computed as they are."""
    outcome = session.measure(case_of(session, size, bits, operands, spared))
    assert (outcome.status, outcome.check) == ("wrong", "samples")
    likely = [f"rounded to about {b} bits" for b in (bits - 1, bits, bits + 1)]
    assert any(words in present(outcome.reason) for words in likely), outcome.reason


@pytest.mark.parametrize(
    ("bits", "advice"),
    [
        (9, 'if they are, declare `precision = "bfloat16"`'),
        (10, 'if they are, declare `precision = "tf32"`'),
        (14, "if its inputs are split, declare `error_constant`"),
    ],
)
def test_the_reason_says_what_to_declare(
    bits: int, advice: str, sample: Sample, session: Session
) -> None:
    problem = Problem(32, 32, 8192)
    trial = sample(problem, 1)
    A, B = (rounded(matrix, bits).astype(np.float64) for matrix in trial.inputs)
    case = sweep.case(HONEST, problem, {"TILE": 16}, session.backend.info)
    reason = diagnosis.explain(A @ B, trial, oracle.bound(HONEST, problem), case)
    assert reason.endswith(f"as with inputs rounded to about {bits} bits: {advice}")


def test_what_is_not_rounding_is_not_called_so(sample: Sample, session: Session) -> None:
    """Errors as large as terms, a single one, and those of honest sums."""
    problem = Problem(32, 32, 200)
    trial = sample(problem, 1)
    A, B = (matrix.astype(np.float64) for matrix in trial.inputs)
    case = sweep.case(HONEST, problem, {"TILE": 16}, session.backend.info)
    one, typical = A @ B, present(trial.typical)
    place = np.unravel_index(typical.dense.argmax(), one.shape)
    one[place] += 0.05 * typical.T[place]
    for C in (A[:, 1:] @ B[1:], one, A @ B):
        assert "rounded" not in diagnosis.explain(C, trial, oracle.bound(HONEST, problem), case)


def test_a_library_that_rounds_its_inputs_is_wrong() -> None:
    numpy, info = catalogue.Catalogue(catalogue.builtin()).get("numpy"), host.devices()[0]
    rounds = numpy.source.replace("matmul(A", "matmul((A.view('u4') + 32 & 0xFFFFFFC0).view('f4')")
    with opened(info, Options(timed=False)) as session:
        for source, status in ((numpy.source, "measured"), (rounds, "wrong")):
            kernel = msgspec.structs.replace(numpy, source=source, sha256=status)
            [case] = sweep.cases([kernel], [Problem(64, 64, 1000)], {}, info)
            outcome = session.measure(case)
            assert (outcome.status, outcome.case.device) == (status, info.name)
            assert not case.can_be_sustained
    assert "about 18 bits" in present(outcome.reason)


def test_errors_that_are_too_large_only_together_are_told(sample: Sample) -> None:
    problem = Problem(100, 100, 40)
    trial = sample(problem, 3)
    T = present(trial.typical).T
    signs = np.where(np.indices(T.shape).sum(axis=0) % 2, 1, -1)
    bound = oracle.bound(HONEST, problem)
    for factor, wrong in ((0.9, 0), (1.2, 10_000)):
        off = np.where(np.isfinite(T), factor * bound.of_T * T * signs, 0)
        verdict = judge(present(trial.R) + off, trial, bound)
        assert (verdict.wrong, verdict.first_wrong) == (wrong, None)
