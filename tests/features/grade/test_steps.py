"""Steps of a grade, each on its own: products in NumPy stand in for a kernel; and the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from support.cli import Matbench
from support.kernels import KernelWriter
from support.optional import present, some
from support.paths import KERNELS

from matbench.errors import CaseError
from matbench.features.grade import order_probes, steps, summation_tree
from matbench.features.grade.multiplier import Multiplier
from matbench.features.grade.record import Batches, Grade, Order, Statements, Sums
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, DeviceInfo, Kernel, Problem, Storage
from matbench.records import reading
from matbench.worker.worker import LateError
from matbench.workloads.rounding import decoded, encoded

Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


BUILTIN = catalogue.Catalogue(catalogue.builtin())
NUMPY = BUILTIN.get("numpy")


class Simulated(Multiplier):
    """A kernel whose products are computed here."""

    def __init__(self, device: DeviceInfo, product: Product, kernel: Kernel = NUMPY) -> None:
        backend: Any = SimpleNamespace(info=device)
        super().__init__(backend, lambda case: backend, kernel, {})
        self.product = product
        self.launches = 0

    def multiply(self, A: Any, B: Any) -> Any:
        self.launches += 1
        with np.errstate(all="ignore"):
            return self.product(A, B)

    def case(self, M: int, N: int, K: int) -> Case:
        return Case(self.kernel, Problem(M, N, K), {}, None)


def summed(tree: summation_tree.Tree) -> Product:
    """Products summed in the order of a tree for as many terms as there are."""

    def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        terms = (A[:, :, None] * B[None]).astype(np.float32)

        def add(node: summation_tree.Tree) -> np.ndarray:
            if isinstance(node, int):
                leaf: np.ndarray = terms[:, node]
                return leaf
            first, *others = map(add, node)
            for other in others:
                first = (first + other).astype(np.float32)
            return first

        whole: np.ndarray = add(tree).astype(np.float64)
        return whole

    return product


def probed(device: DeviceInfo, product: Product, kernel: Kernel = NUMPY) -> tuple[Order, Sums]:
    random = np.random.default_rng(1)
    found = order_probes.order_and_sums(Simulated(device, product, kernel), random)
    made, sums = found
    assert isinstance(made, Order)
    assert isinstance(sums, Sums)
    return made, sums


def any_length(make: Callable[[int], summation_tree.Tree]) -> Product:
    return lambda A, B: summed(make(A.shape[1]))(A, B)


def chained(step: int) -> Product:
    return any_length(lambda K: tuple_chain(list(range(K))[::step]))


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        (np.s_[:, 1::2], "3 terms in a sum of 4"), (np.s_[1::2], "3 terms in a sum of 4"),
        (np.s_[-1], "other probes give another tree"),  # a sum in order needs 31 of 32 rows
    ],
)  # fmt: skip
def test_an_order_that_depends_on_the_place_is_unclear(
    device: DeviceInfo, others: Any, reason: str
) -> None:
    forwards, backwards = chained(1), chained(-1)

    def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        C = forwards(A, B)
        C[others] = backwards(A, B)[others]
        return C

    found, sums = probed(device, product)
    assert (found.verdict, found.reason) == ("unclear", reason)
    assert sums.accumulator_bits is None


def tuple_chain(terms: list[int]) -> summation_tree.Tree:
    tree: summation_tree.Tree = terms[0]
    for term in terms[1:]:
        tree = (tree, term)
    return tree


def test_exact_sums_show_no_order(device: DeviceInfo) -> None:
    def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        wide = A.astype(np.longdouble)[:, :, None] * B.astype(np.longdouble)[None]
        huge = np.abs(wide) > 2.0**50
        return np.asarray(np.where(huge, wide, 0).sum(1) + np.where(huge, 0, wide).sum(1), float)

    found, _ = probed(device, product)
    assert found.verdict == "exact"


def of_type(storage: Storage) -> Kernel:
    name = {"float16": "cublas-f16", "bfloat16": "cublas-bf16", "float64": "cublas-f64"}[storage]
    kernel = BUILTIN.get(name)
    assert kernel.contract.storage == storage
    return kernel


def typed(storage: Storage, result: Storage, at_a_time: int = 1) -> Product:
    """A sum in float32 (float64 for that type), of inputs and with a result of these types;
    several terms at a time are aligned to the largest and truncated, as on tensor cores."""
    kind = np.float64 if storage == "float64" else np.float32

    def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        A, B = (decoded(encoded(X, storage), storage) for X in (A, B))
        total = np.zeros((A.shape[0], B.shape[1]), kind)
        for start in range(0, A.shape[1], at_a_time):
            stop = start + at_a_time
            terms = np.moveaxis(A[:, start:stop, None] * B[None, start:stop], 1, 0)
            if at_a_time == 1:
                total = (total + terms[0]).astype(kind)
                continue
            every = np.concatenate([terms, total[None].astype(np.float64)])
            most = np.abs(every).max(axis=0)
            unit = np.ldexp(1.0, np.frexp(np.where(most == 0, 1, most))[1] - 24)
            added = (np.trunc(every / unit) * unit).sum(axis=0)
            unit = np.ldexp(1.0, np.frexp(np.where(added == 0, 1, added))[1] - 24)
            total = (np.trunc(added / unit) * unit).astype(kind)
        return decoded(encoded(total.astype(np.float64), result), result)

    return product


@pytest.mark.parametrize(
    ("storage", "result", "inputs", "bits"),
    [
        ("float16", "float16", 11, 24),
        ("bfloat16", "float32", 8, 24),
        ("float64", "float64", 53, 53),
    ],
)
def test_each_type_is_probed_within_its_range(
    device: DeviceInfo, storage: Storage, result: Storage, inputs: int, bits: int
) -> None:
    found, sums = probed(device, typed(storage, result), of_type(storage))
    assert [(level.how, level.terms) for level in found.levels] == [("in order", 256)]
    assert (sums.input_bits, sums.accumulator_bits, sums.rounding) == (inputs, bits, "nearest")


@pytest.mark.parametrize("storage", some(["float16", "bfloat16"], "bfloat16"))
def test_tensor_cores_are_recognised_in_each_type(device: DeviceInfo, storage: Storage) -> None:
    kernel = of_type(storage)
    found, sums = probed(device, typed(storage, kernel.contract.result, 16), kernel)
    assert [(level.how, level.at_a_time) for level in found.levels] == [("in order", 16)]
    assert (sums.accumulator_bits, sums.rounding) == (24, "truncated")


@pytest.mark.parametrize("storage", ["float16", "bfloat16", "float64"])
def test_a_plain_sum_of_each_type_has_grade_A(device: DeviceInfo, storage: Storage) -> None:
    kernel = of_type(storage)
    subject = Simulated(device, typed(storage, kernel.contract.result), kernel)
    assert steps.bounds(subject).verdict == "A"
    assert steps.range_(subject).verdict == "whole"
    assert steps.specials(subject).differ == {}
    assert steps.algorithm(subject).verdict == "classical"


def test_rows_that_depend_on_others_are_noticed(device: DeviceInfo) -> None:
    def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        unit = np.abs(A).max() * 2.0**-24
        return typed_float(np.rint(A / unit) * unit, B)

    found = steps.batches(Simulated(device, product))
    assert (found.verdict, found.differ_at) == ("varies", (2, 7, 64, 1000))
    same = steps.batches(Simulated(device, typed_float))
    assert (same.verdict, same.differ_at) == ("invariant", ())


def test_specials_meet_no_chance_zeros(device: DeviceInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Multiplier, "signed", lambda _, __, *shape: np.zeros(shape))

    special: list[int] = []

    def skips_zeros(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        special.append(int((~np.isfinite(A)).sum()))
        return np.asarray(np.where(B[None] == 0, 0, A[:, :, None] * B[None]).sum(axis=1))

    found = steps.specials(Simulated(device, skips_zeros))
    assert "Inf · 0" in found.differ
    assert "Inf in A" not in found.differ
    assert max(special) == 2  # all others must come out as they are


def test_a_kernel_that_accepts_one_number_of_rows_has_no_batches(device: DeviceInfo) -> None:
    class OneSize(Simulated):
        def case(self, M: int, N: int, K: int) -> Case:
            return super().case(64, N, K)

    found = steps.batches(OneSize(device, typed_float))
    assert found == Batches(reason="the kernel accepts only one number of rows of these")
    assert (found.verdict, found.probes) == ("unclear", 0)


def test_of_each_constant_three_other_values_are_tried(device: DeviceInfo) -> None:
    [tiled] = [kernel for kernel in catalogue.builtin() if kernel.name == "tiled"]
    swept = msgspec.structs.replace(tiled, sweep={"TILE": (8, 1, 2, 4, 16)})
    case = sweep.case(swept, Problem(64, 64, 64), {"TILE": 8}, device)
    tried = [(name, other.params["TILE"]) for name, other in steps.variations(case, device)]
    assert tried == [("TILE", 1), ("TILE", 2), ("TILE", 4)]


def typed_float(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return summed(tuple_chain(list(range(A.shape[1]))))(A, B)


#: What each step says of a right product, which takes it seconds.
SAID: dict[str, Statements] = {}


class Failing:
    """A worker in which one step fails."""

    def __init__(
        self, device: DeviceInfo, *failing: str, error: type[CaseError] = CaseError
    ) -> None:
        self.device = device
        self.failing = failing
        self.error = error

    def run(
        self, _: object, kernel: Kernel, params: object, step: str, seed: int, case: Case
    ) -> Statements:
        if step in self.failing:
            raise self.error("it broke")
        if step not in SAID:
            SAID[step] = steps.step(Simulated(self.device, lambda A, B: A @ B, NUMPY), step)
        return SAID[step]


@pytest.mark.parametrize("failing", ["growth", "order", "specials", "ulps"])
def test_a_step_that_fails_leaves_the_others(device: DeviceInfo, failing: str) -> None:
    case = Case(NUMPY, Problem(256, 256, 256), {}, None)
    told: list[str] = []
    worker: Any = Failing(device, failing)
    grade = steps.grade(worker, case, 0, "", told.append)
    assert len(told) == len(steps.STEPS)
    assert grade.reason is None
    assert present(grade.bounds).verdict == "A"
    if failing == "ulps":
        assert grade.ulps == ()
    else:
        assert getattr(grade, failing).reason == "it broke"
    if failing == "order":
        order = present(grade.order)
        assert (order.terms, order.levels) == (0, ())
    assert grade.letter == ("unclear" if failing == "growth" else "A")


def test_a_kernel_that_is_often_late_is_given_up(device: DeviceInfo) -> None:
    case = Case(NUMPY, Problem(256, 256, 256), {}, None)
    worker: Any = Failing(device, "growth", "order", error=LateError)
    grade = steps.grade(worker, case, 0, "", lambda what: None)
    assert (grade.letter, grade.reason, grade.bounds) == ("unclear", "it broke", None)
    assert grade.duration_s == 0


# The command


GRADED = KERNELS / "graded"
TF32, STRASSEN = GRADED / "graded-tf32.cu", GRADED / "graded-strassen.cu"
CHUNKS = GRADED / "graded-chunks-8.cu"


def test_one_kernel_has_a_profile_and_a_tree(matbench: Matbench) -> None:
    text = matbench("grade", CHUNKS, "--tree").stdout
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].startswith("graded-chunks-8: grade A, ")
    assert any(
        line.startswith(
            "order of sums 32 chunks of 8 terms, each in order; then in order (K = 256)"
        )
        for line in lines
    )
    assert text.rstrip().endswith(
        "graded-chunks-8: order of addition\n"
        "sum of, in order\n"
        "  0 + 1 + … + 7\n"
        "  8 + 9 + … + 15\n"
        "  16 + 17 + … + 23\n"
        "  24 + 25 + … + 31"
    )
    assert "Kernels compared" not in text
    assert "evidence from the probes counted here, not proof" in text


@pytest.fixture(scope="module")
def recorded(matbench: Matbench, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The text of two grades, and their file."""
    path = tmp_path_factory.mktemp("grades") / "grades.jsonl"
    arguments = ("grade", "tiled", TF32, "--set", "TILE=16", "--output", path)
    return matbench(*arguments, "--format", "plain").stdout, path


def test_records_are_read_back(matbench: Matbench, recorded: tuple[str, Path]) -> None:
    text, path = recorded
    assert matbench("report", path, "--format", "plain").stdout == text
    assert text.startswith("tiled TILE=16: grade A")
    contents = reading.Contents(path)
    tiled, tf32 = (finding for finding, _ in contents.findings)
    assert isinstance(tiled, Grade)
    assert isinstance(tf32, Grade)
    assert (tiled.letter, tiled.case.params, tiled.seed) == ("A", {"TILE": 16}, 0)
    assert tf32.letter == "D"
    assert present(tf32.bounds).bits == 11
    assert present(tiled.order).steps[:2] == ((0, 1), (32, 2))
    assert contents.environments[0].settings == {"seed": 0}


def test_page_of_grades(matbench: Matbench, recorded: tuple[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    matbench("report", recorded[1], "--page", page)
    text = page.read_text()
    assert '<a href="#arithmetic">Arithmetic</a>' in text
    section = text.partition('<section id="arithmetic"')[2].partition("</section>")[0]
    for said in ("tiled TILE=16: grade A", "graded-tf32: grade D", "Kernels compared", "in order"):
        assert said in section


@pytest.mark.parametrize(("least", "code"), [("A", 1), ("C", 0)])
def test_a_grade_too_low_sets_the_exit_code(matbench: Matbench, least: str, code: int) -> None:
    matbench("grade", STRASSEN, "--at-least", least, "--format", "csv", code=code)


def test_what_cannot_run_here_has_no_grade(matbench: Matbench, write_kernel: KernelWriter) -> None:
    path = write_kernel("elsewhere", front='requires = ["sm_123"]')
    arguments = ("grade", path, CHUNKS, "--format", "csv")
    rows = matbench(*arguments).stdout.splitlines()
    assert "needs sm_123" in rows[1]
    assert ",A," in rows[2]
    matbench(*arguments, "--at-least", "C", code=1)
    alone = matbench("grade", path, code=1).stdout
    assert alone.startswith("not graded: elsewhere: needs sm_123")


def test_a_failed_build_has_its_message(matbench: Matbench, write_kernel: KernelWriter) -> None:
    body = 'extern "C" __global__ void ENTRY(float *A, float *B, float *C, int M, int N, int K)\n'
    path = write_kernel("typo", body=body + "{\n    C[0] = missing;\n}\n")
    text = matbench("grade", path, "--format", "csv", code=1).stdout
    assert "missing" in text


def test_functions_are_graded_on_the_host(matbench: Matbench) -> None:
    assert matbench("grade", "numpy").output.startswith("numpy: grade A")  # without warnings
    isolated = f"{KERNELS / 'functions' / 'on_cpu.py'}::honest"
    assert matbench("grade", isolated).stdout.startswith("honest: grade A")
