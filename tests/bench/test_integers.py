"""Operands of int32: right modulo 2³², on a CPU, a GPU and in functions; mistakes are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from support import toml
from support.cli import Matbench
from support.golden import TableRegression
from support.kernels import saved, text_of
from support.optional import present
from support.products import case_of

import matbench as api
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import UsageError
from matbench.kernelfile import catalogue
from matbench.model import Inputs, NumericContract, Problem
from matbench.records.outcome import Outcome
from matbench.workloads.matmul import trials

SOURCE = text_of("integers.cu")
#: What takes the place of what.
CHANGES = toml.table(Path(__file__).with_name("integers.toml"))
RIGHT, WRONG = CHANGES["right"], CHANGES["wrong"]
PROBLEMS = [
    Problem(1, 1, 1),
    Problem(65, 31, 129, inputs="signed", alpha=-3.0, beta=2.0),
    Problem(40, 70, 300, inputs="normal"),
]


def measured(session: Session, source: str, problem: Problem, folder: Path) -> Outcome:
    case = case_of(saved(folder / "ints.cu", source), problem, session.backend.info)
    assert case.skip is None
    return session.measure(case, variants=("plain",))


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_accepted(name: str, anywhere: Session, tmp_path: Path) -> None:
    for problem in PROBLEMS:
        outcome = measured(anywhere, SOURCE.replace(*RIGHT[name]), problem, tmp_path)
        assert (outcome.status, outcome.reason) == ("measured", None)
        assert present(outcome.accuracy).max_rel_err in (0, None)


@pytest.mark.parametrize("name", WRONG)
def test_each_mistake_is_refused(name: str, anywhere: Session, tmp_path: Path) -> None:
    outcome = measured(anywhere, SOURCE.replace(*WRONG[name]), PROBLEMS[1], tmp_path)
    assert outcome.status == "wrong"
    assert "of 2,015 elements wrong" in present(outcome.reason)
    assert "the bound" not in present(outcome.reason)


@pytest.mark.parametrize("type_", ["int", "unsigned int", "uint4"])
def test_four_bytes_may_be_packed_in_a_word(type_: str, session: Session, tmp_path: Path) -> None:
    """They are what `storage` says, whatever the pointer is."""
    source = SOURCE.replace("const int *A, const int *B", f"const {type_} *A, const {type_} *B")
    source = source.replace("// batch", '// storage = "int8"\n// batch')
    for name in "AB":
        source = source.replace(f"{name}[", f"((const signed char *){name})[")
    outcome = measured(session, source, PROBLEMS[1], tmp_path)
    assert (outcome.status, outcome.reason) == ("measured", None)
    assert outcome.case.claims.precision == "int8"


def test_types_that_do_not_fit(tmp_path: Path, table_regression: TableRegression) -> None:
    """A line of front matter more, or another type."""

    def said(change: str) -> str:
        old, arrow, new = change.partition(" -> ")
        source = (
            SOURCE.replace(old, new) if arrow else SOURCE.replace("// batch", f"{old}\n// batch")
        )
        try:
            return catalogue.load(saved(tmp_path / "ints.cu", source)).precision
        except UsageError as error:
            return str(error).replace(str(tmp_path), "")

    table_regression("types-of-integers.txt", said)


def test_a_function_gets_arrays_of_int32(tmp_path: Path) -> None:
    right = saved(tmp_path / "f.py", text_of("integers.txt"))
    with api.Judge("64,65x31x129", backend="opencl", max_time=0.02) as judge:
        verdict = judge.run(f"{right}::f")
        assert (verdict.status, verdict.reason) == ("measured", None)
        wrong = saved(tmp_path / "g.py", right.read_text().replace("A @ B", "A[:, :-1] @ B[:-1]"))
        assert judge.run(f"{wrong}::f").status == "wrong"


@pytest.mark.parametrize("inputs", ["uniform", "signed", "normal"])
def test_products_of_the_inputs_leave_the_range_of_int32(inputs: Inputs) -> None:
    """What is expected is modulo 2³², without a rounding error; some numbers use all 32 bits."""
    contract = NumericContract("int32", "int32", sums_in="int32", result="int32")
    made = trials.trials(Problem(9, 8, 700, inputs=inputs), contract, Cache())
    A, B = (matrix.astype(np.int64) for matrix in made.reference.inputs)
    assert abs(A @ B).max() > 2**32
    assert np.array_equal(made.reference.expected, (A @ B).astype(np.int32))
    largest = [np.abs(matrix).max() for make in made.others for matrix in make().inputs]
    assert max(largest) > 2**30


@pytest.mark.parametrize(("storage", "deviation"), [("int8", 32), ("int32", 2**15)])
def test_normal_inputs_have_a_quarter_of_the_range(
    storage: Literal["int8", "int32"], deviation: int
) -> None:
    contract = NumericContract(storage, storage, sums_in="int32", result="int32")
    A, _ = trials.inputs(Problem(500, 1, 500, inputs="normal"), contract)
    assert A.std() == pytest.approx(deviation, rel=0.01)
    assert abs(A).max() <= 4 * deviation


@pytest.mark.usefixtures("few_probes")
def test_no_rounding_to_grade_and_no_float_to_try(matbench: Matbench, tmp_path: Path) -> None:
    file = saved(tmp_path / "ints.cu", SOURCE)
    assert "without rounding errors to grade" in matbench("grade", file, code=2).stderr
    checked = matbench("check", file, "--backend", "opencl").stdout
    assert 'precision = "int32": needed: it reads int32 from memory' in checked
    explained = matbench("explain", file, "--sizes", "64", "--backend", "opencl").stdout
    assert "with integers, for which no limit is measured" in explained
