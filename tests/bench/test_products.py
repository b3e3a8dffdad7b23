"""C := alpha·op(A)·op(B) + beta·C in every layout, type and batch; and mistakes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.gemm import Gemm
from support.kernels import saved
from support.optional import half, present, some
from support.paths import KERNELS
from support.products import opened, right
from support.toml import table

from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.model import DeviceInfo, NumericContract, Problem, Skip
from matbench.records.outcome import Outcome
from matbench.workloads import doubled, oracle
from matbench.workloads.matmul import trials as matmul
from matbench.workloads.oracle import Bound

SIZE = (19, 33, 26)
Judged = Callable[..., Outcome]


@pytest.fixture
def judged(session: Session, tmp_path: Path) -> Judged:
    """The outcome of a kernel, on a problem scaled as in its table."""
    return judging(session, tmp_path)


def judging(session: Session, folder: Path) -> Judged:
    def judge(gemm: Gemm, size: tuple[int, int, int] = SIZE, name: str = "gemm") -> Outcome:
        kernel = catalogue.load(saved(folder / f"{name}.cu", gemm.source(name)))
        problem = Problem(*size, alpha=gemm.alpha, beta=gemm.beta, batch=gemm.batch)
        case = sweep.case(kernel, problem, {}, session.backend.info)
        return session.measure(case, variants=("plain",))

    return judge


GEMMS = st.fixed_dictionaries(
    {
        "layout": st.sampled_from(["row-major", "column-major"]),
        "transpose": st.sampled_from(["NN", "NT", "TN", "TT"]),
        "padding": st.sampled_from([0, 1, 4]),
        "alpha": st.sampled_from([1.0, 0.0, -0.75, 2.5]),
        "beta": st.sampled_from([0.0, 1.0, -1.25]),
        "batch": st.sampled_from([1, 1, 3]),
    }
).map(lambda fields: Gemm(**cast(Any, fields)))


@settings(max_examples=6)
@given(GEMMS, *[st.sampled_from(["float", "double"])] * 2, st.tuples(*[st.integers(1, 40)] * 3))
@example(Gemm(), "double", "float", SIZE)
def test_every_product_of_blas_is_right(
    judged: Judged, gemm: Gemm, operand: str, result: str, size: tuple[int, int, int]
) -> None:
    kind = "double" if "double" in (operand, result) else "float"
    outcome = judged(gemm._replace(operand=operand, result=result, sum=kind), size)
    assert (outcome.status, outcome.reason) == ("measured", None)
    # On average: where terms cancel, single errors are larger.
    limit = 1e-12 if result == "double" else 1e-3
    error = present(outcome.accuracy).avg_rel_err
    assert error is None or error < limit


WRONG = table(KERNELS / "gemm" / "wrong.toml")


def gemm_of(row: dict[str, Any]) -> Gemm:
    fields = {name: row[name] for name in row.keys() & {*Gemm._fields} - {"mistakes"}}
    return Gemm(**fields, mistakes=tuple((old, new) for old, new in row.get("mistakes", ())))


#: Right kernels, which many mistakes have in common.
ACCEPTED: set[Gemm] = set()


@pytest.mark.parametrize("name", WRONG["mistakes"])
def test_a_mistake_is_found(judged: Judged, name: str) -> None:
    row = WRONG["mistakes"][name]
    gemm = gemm_of(row)
    outcome = judged(gemm)
    assert outcome.status == "wrong", name
    assert row["reason"] in f"wrong {present(outcome.reason)}"
    fixed = gemm._replace(mistakes=())  # the control: otherwise it is right
    if fixed not in {gemm, *ACCEPTED}:
        assert judged(fixed, name="fixed").status == "measured"
        ACCEPTED.add(fixed)


@pytest.mark.parametrize("words", WRONG["likenesses"])
def test_what_a_wrong_result_is_instead(words: str, session: Session, tmp_path: Path) -> None:
    row = WRONG["likenesses"][words]
    gemm, told = gemm_of(row), row["told"]
    path = tmp_path / "gemm.cu"
    text = gemm.source()
    by_rows = gemm.layout == "row-major"
    for letter, transposed, sides in zip(
        "ABC", f"{gemm.transpose}N", ("MK", "KN", "MN"), strict=True
    ):
        pitch = sides[by_rows != (transposed == "T")]  # which it derives itself
        text = text.replace(f" ld{letter.lower()} +", f" {pitch} +")
    for key, value in told.items():
        right = f'{key} = "{getattr(gemm, key)}"'
        assert right in text
        text = text.replace(right, f'{key} = "{value}"')
    path.write_text(text, encoding="utf-8")
    problem = Problem(*SIZE, alpha=gemm.alpha, beta=gemm.beta)
    case = sweep.case(catalogue.load(path), problem, {}, session.backend.info)
    outcome = session.measure(case)
    assert outcome.status == "wrong"
    assert present(outcome.reason).endswith(words)


@pytest.mark.parametrize(
    ("kind", "where", "step", "place"),
    [
        ("float", "blockIdx.z == 0 && i + j == 0", "2e-7f", "at offset 0 of C"),
        ("double", "i == M - 1 && j == N - 1", "4e-16", "C[18, 32]"),
    ],
)
def test_every_element_has_to_be_the_same_again_unless_declared(
    kind: str, where: str, step: str, place: str, judged: Judged
) -> None:
    """One that differs from run to run, within the bound."""
    drift = '__device__ int runs;\nextern "C" __global__'
    moving = Gemm(
        batch=3 if kind == "float" else 1,
        operand=kind, result=kind, sum=kind,
        mistakes=(
            ('extern "C" __global__', drift),
            ("*c = beta", f"if ({where}) sum *= 1 + runs++ * {step}; *c = beta"),
        ),
    )  # fmt: skip
    outcome = judged(moving)
    assert outcome.status == "wrong"
    assert present(outcome.reason).startswith("determinism: ")
    assert f"elements differ, first {place} between two runs" in present(outcome.reason)
    assert judged(moving._replace(more="deterministic = false")).status == "measured"


def test_a_factor_beyond_its_parameter_is_skipped(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "gemm.cu"
    double = Gemm(alpha=0.1, operand="double", result="double", sum="double")
    path.write_text(double.source().replace("double alpha", "float alpha"), encoding="utf-8")
    kernel = catalogue.load(path)
    for alpha, reason in ((0.1, "alpha = 0.1 does not fit into alpha, of type float"), (0.5, None)):
        case = sweep.case(kernel, Problem(*SIZE, alpha=alpha), {}, session.backend.info)
        assert case.skip == (Skip("argument", reason) if reason else None)


def test_a_kernel_that_reads_C_at_beta_0_is_measured_and_told(judged: Judged) -> None:
    gemm = Gemm(store="*c = alpha * sum + beta * *c;")
    outcome = judged(gemm)
    assert (outcome.status, outcome.reason) == ("measured", None)
    assert "reads C at beta = 0" in outcome.notes
    declared = judged(gemm._replace(more='reads = ["C"]'), name="declared")
    assert declared.status == "measured"
    assert "reads C at beta = 0" in declared.notes
    honest = judged(Gemm())  # another file of that name
    assert "reads C at beta = 0" not in honest.notes


def test_a_zero_may_have_either_sign(judged: Judged) -> None:
    negative = Gemm(store="*c = sum == 0 ? -0.0f : alpha * sum;")
    assert judged(negative, (19, 33, 1)).status == "measured"  # some products are 0


def test_skipping_what_C_holds_already_is_no_reading_of_C(judged: Judged) -> None:
    outcome = judged(Gemm(store="if (*c == *c) return; *c = alpha * sum;", more='reads = ["C"]'))
    assert outcome.status == "wrong"


@pytest.mark.parametrize("kind", some(["float", "double"], "float"))
def test_timed_launches_are_verified_too(kind: str, tmp_path: Path, device: DeviceInfo) -> None:
    """New inputs in each sample; hot samples use several sets."""
    options = Options(cold=False, hot=True, max_time_s=0.05, uncertainty=0.5, blocks=True)
    with opened(device, options) as timed:
        judged = judging(timed, tmp_path)
        gemm = Gemm(
            layout="column-major", transpose="TN", padding=3, alpha=2.0, beta=0.5, batch=2,
            operand=kind, result=kind, sum=kind,
        )  # fmt: skip
        outcome = judged(gemm)
        assert (outcome.status, outcome.reason) == ("measured", None)
        assert outcome.median_ns is not None
        late = gemm._replace(
            mistakes=(("if (i >= M", "if ((*A < 0 && i + j == 0) || i >= M"),)
        )  # right on the original inputs, which are not negative, but not on those of samples
        outcome = judged(late, name="late")
        assert outcome.status == "wrong"
        assert present(outcome.reason).startswith("samples: ")


# -- the reference -------------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    st.tuples(*[st.integers(1, 4)] * 2), st.integers(1, 60), st.integers(0, 99), st.integers(0, 40)
)
def test_float64_is_rounded_once(sides: tuple[int, int], K: int, seed: int, spread: int) -> None:
    M, N = sides
    from fractions import Fraction

    random = np.random.default_rng(seed)
    A = random.standard_normal((M, K)) * np.exp2(random.integers(-spread, spread + 1, (M, K)))
    B = random.standard_normal((K, N))
    found = doubled.product(A, B)
    for i in range(M):
        for j in range(N):
            terms = (Fraction(float(A[i, k])) * Fraction(float(B[k, j])) for k in range(K))
            exact = sum(terms, Fraction())
            size = float(np.abs(A[i]) @ np.abs(B[:, j]))
            assert abs(Fraction(float(found[i, j])) - exact) <= abs(exact) * Fraction(
                2.0**-53
            ) + Fraction(size * 2.0**-90)


def test_a_plain_float64_product_is_not() -> None:
    """The control: the test above detects the errors of NumPy's own product."""
    random = np.random.default_rng(1)
    A, B = random.standard_normal((3, 1000)), random.standard_normal((1000, 3))
    assert (doubled.product(A, B) != A @ B).any()


def test_what_scaling_adds_to_the_reference() -> None:
    problem = Problem(5, 6, 7, alpha=-0.5, beta=2.0)
    made = matmul.trials(problem, NumericContract(), Cache())
    A, B = (matrix.astype(np.float64) for matrix in made.reference.inputs)
    C = present(made.reference.C)
    assert np.allclose(present(made.reference.R), -0.5 * (A @ B) + 2.0 * C, rtol=1e-14)
    assert np.allclose(present(made.reference.S), 0.5 * (A @ B) + 2.0 * np.abs(C), rtol=1e-14)
    plain = matmul.trials(
        msgspec.structs.replace(problem, alpha=1.0, beta=0.0), NumericContract(), Cache()
    )
    assert plain.reference.C is None
    assert plain.others[0]().exact is not None


def test_integers_that_alpha_and_beta_round_may_be_off() -> None:
    """By one rounding, as when a device fuses multiplication and addition."""
    for contract in (
        NumericContract(),
        NumericContract("float64", "float64", sums_in="float64", result="float64"),
    ):
        problem = Problem(5, 6, 1, alpha=0.7, beta=0.1)
        [made] = (make() for make in matmul.trials(problem, contract, Cache()).others)
        assert made.exact is None
        assert (np.abs(present(made.R)) <= present(made.S)).all()
        [make] = matmul.trials(Problem(5, 6, 1), contract, Cache()).others
        plain = make()
        assert plain.exact is not None or not present(plain.S).any()


#: Results, the unit of their sums, and that of their rounding.
RESULTS = [
    ("float", 2.0**-24, 0.0), ("__half", 2.0**-24, 2.0**-11), ("double", 2.0**-53, 0.0),
    ("__nv_bfloat16", 2.0**-24, 2.0**-8),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "unit", "of_result"), RESULTS)
def test_the_bound_is_of_types(kind: str, unit: float, of_result: float, tmp_path: Path) -> None:
    kernel = catalogue.load(saved(tmp_path / "gemm.cu", Gemm(operand=kind, result=kind).source()))
    problem = Problem(8, 8, 8)
    bound = oracle.bound(kernel, problem)
    terms = 2 * 9 if kind.startswith("__") else 9  # tensor cores may truncate
    assert bound.of_S == (terms + 2 * (kind == "double")) * unit
    assert bound.of_R == of_result
    assert bound.least == (2.0**-25 if kind == "__half" else 0)
    narrow = msgspec.structs.replace(kernel, accumulator="float16")
    assert oracle.bound(narrow, problem).of_S >= 9 * 2.0**-11
    scaled = msgspec.structs.replace(problem, alpha=2.0, beta=1.0)
    more = 3 * unit + 3 * of_result
    assert oracle.bound(kernel, scaled).of_S == pytest.approx(bound.of_S + more, rel=1e-12)
    R, S = np.array([4.0]), np.array([8.0])
    assert Bound(0.5, 0.25, 0.125).allowed(R, S).tolist() == [4 + 1 + 0.125]


# -- on an NVIDIA GPU: types of CUDA alone, and cuBLAS -------------------------------------------


KINDS = ("float", "double", "__half", "__nv_bfloat16")


@pytest.fixture
def judged_on_gpu(checks: Session, tmp_path: Path) -> Judged:
    return judging(checks, tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize(("operand", "result"), half(itertools.product(KINDS, KINDS)))
def test_every_pair_of_types(operand: str, result: str, judged_on_gpu: Judged) -> None:
    total = "double" if result == "double" else "float"
    gemm = Gemm(operand=operand, result=result, sum=total)
    for size in ((1, 1, 1), (33, 47, 65), (128, 256, 300)):
        outcome = judged_on_gpu(gemm, size)
        assert (outcome.status, outcome.reason) == ("measured", None), size


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("layout", "transpose"),
    half(
        (one, other) for one in ("row-major", "column-major") for other in ("NT", "NN", "TN", "TT")
    ),
)
def test_every_layout_with_all_of_blas(
    layout: str, transpose: str, kind: str, judged_on_gpu: Judged
) -> None:
    total = "double" if kind == "double" else "float"
    gemm = Gemm(
        layout, transpose, padding=3, alpha=-1.5, beta=0.75, batch=3,
        operand=kind, result=kind, sum=total,
    )  # fmt: skip
    outcome = judged_on_gpu(gemm, (33, 47, 65))
    assert (outcome.status, outcome.reason) == ("measured", None)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["__half", "__nv_bfloat16"])
def test_sums_of_16_bits_have_to_be_declared(kind: str, judged_on_gpu: Judged) -> None:
    narrow = Gemm(operand=kind, result=kind, sum=kind, store="*c = sum;")
    narrow = narrow._replace(
        mistakes=(("sum += ", "sum = sum + "), (f"{kind} sum = 0", f"{kind} sum = 0.0f"))
    )
    size = (33, 47, 600)
    outcome = judged_on_gpu(narrow, size)
    assert outcome.status == "wrong"
    name = "float16" if kind == "__half" else "bfloat16"
    declared = narrow._replace(more=f'accumulator = "{name}"')
    outcome = judged_on_gpu(declared, size)
    assert (outcome.status, outcome.reason) == ("measured", None)
    assert outcome.case.claims.accumulator == name


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("kind", "mistake"),
    [
        ("__half", ("if (i >= M", "if ((i == 5 && j == 7) || i >= M")),
        ("__half", ("*c = beta", "if (i == 0 && j == 0) c[-1] = 0; *c = beta")),
        ("double", ("*c = beta", "if (i == 0 && j == 0) c[-1] = 0; *c = beta")),
        ("__nv_bfloat16", ("alpha * sum + ", "1.01f * alpha * sum + ")),
    ],
)
def test_a_mistake(kind: str, mistake: tuple[str, str], judged_on_gpu: Judged) -> None:
    total = "double" if kind == "double" else "float"
    gemm = Gemm(beta=0.5, operand=kind, result=kind, sum=total, mistakes=(mistake,))
    assert judged_on_gpu(gemm).status == "wrong"
    assert judged_on_gpu(gemm._replace(mistakes=())).status == "measured"


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["", "-tf32", "-bf16", "-f16", "-f64"])
@pytest.mark.parametrize(
    ("alpha", "beta", "batch"), [(1.0, 0.0, 1), (-1.5, 0.75, 1), (1.0, 0.0, 5), (2.0, 1.0, 3)]
)
def test_cublas_does_all(kind: str, alpha: float, beta: float, batch: int, checks: Session) -> None:
    kernel = catalogue.Catalogue(catalogue.builtin()).get(f"cublas{kind}")
    for size in ((1, 1, 1), (33, 47, 65), (256, 256, 256)):
        problem = Problem(*size, alpha=alpha, beta=beta, batch=batch)
        right(checks, sweep.case(kernel, problem, {}, checks.backend.info))
