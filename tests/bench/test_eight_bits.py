"""FP8 and INT8 operands: right kernels are accepted, and each usual mistake is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.cli import Matbench, last_run
from support.golden import TableRegression
from support.kernels import saved, text_of
from support.optional import half, present, some
from support.paths import KERNELS
from support.samples import judge, prepared_on, problems, sampled
from support.toml import table

from matbench.backends.protocol import Backend
from matbench.bench.device_kernels import DeviceKernels
from matbench.bench.session import Session
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.model import Inputs, Problem, Scales, Storage
from matbench.records.outcome import Outcome
from matbench.workloads import MATMUL, oracle, rounding

_SCALED = {
    None: ("1.0f", "1.0f"),
    "matrix": ("scale_a[0]", "scale_b[0]"),
    "rows": ("scale_a[i]", "scale_b[j]"),
    "blocks": ("scale_a[i * steps + k / 128]", "scale_b[j / 128 * steps + k / 128]"),
}
_FOLDER = KERNELS / "eight-bits"
_TEMPLATE = (_FOLDER / "template.cu").read_text(encoding="utf-8")
_DECODED = table(_FOLDER / "decoded.toml")


class Variant(NamedTuple):
    """A right kernel. `result` is the C type of C, `keys` are more lines of front matter.

    All are one source, which an OpenCL device can run: operands are decoded in the kernel.
    """

    storage: str = "e4m3"
    scales: str | None = None
    result: str = "float"
    keys: str = ""

    @property
    def source(self) -> str:
        whole = self.result == "int"
        of_a, of_b = _SCALED[self.scales]
        scaled = self.scales is not None
        text = _TEMPLATE.replace("STORAGE", self.storage)
        text = text.replace("DECODED", _DECODED[self.storage].rstrip()).replace(
            "RESULT", self.result
        )
        text = text.replace("NUMBER", "int" if whole else "float")
        text = text.replace("TERM", f"{of_a} * a * ({of_b} * b)" if scaled else "a * b")
        arguments = '"scale_a", "scale_b", ' if scaled else ""
        parameters = "const float *scale_a, const float *scale_b, " if scaled else ""
        text = text.replace("ARGUMENTS", arguments).replace("PARAMETERS", parameters)
        keys = f'scales = "{self.scales}"\n' if scaled else ""
        keys = "".join(f"// {line}\n" for line in (keys + self.keys).splitlines())
        return text.replace("KEYS", keys)


class Mistake(NamedTuple):
    """What is wrong in a variant: `old` is replaced by `new`. `size` shows it."""

    variant: Variant
    old: str
    new: str
    size: str = "40x300x400"
    inputs: Inputs = "signed"

    @property
    def source(self) -> str:
        source = self.variant.source
        assert source.count(self.old) == 1, self.old
        return source.replace(self.old, self.new)


E4M3 = Variant()
MATRIX, ROWS, BLOCKS = (Variant(scales=scales) for scales in ("matrix", "rows", "blocks"))
VARIANTS = {
    "e4m3": E4M3,
    "e5m2": Variant("e5m2"),
    "a scale for each matrix": MATRIX,
    "scales of rows": ROWS,
    "scales of blocks": BLOCKS,
    "e5m2 with scales of blocks": Variant("e5m2", "blocks"),
    "int8": Variant("int8", result="int"),
    "int8 with scales": Variant("int8", "rows"),
    "sums in float22": Variant(keys='accumulator = "float22"'),
    "promoted sums": Variant(scales="blocks", keys='accumulator = "float22"\npromotes = 128'),
}
MISTAKES = {
    name: Mistake(VARIANTS[row.pop("of")], **row)
    for name, row in table(_FOLDER / "mistakes.toml").items()
}


def measured(session: Session, source: str, problem: Problem, folder: Path) -> Outcome:
    file = saved(folder / "eight-bits.cu", source)
    case = sweep.case(catalogue.load(file), problem, {}, session.backend.info)
    assert case.skip is None, case.skip
    return session.measure(case, variants=("plain",))


def at(size: str, alpha: float = 1.0, inputs: Inputs = "signed") -> Problem:
    [problem] = parse_problems(size, MATMUL, inputs)
    return Problem(problem.M, problem.N, problem.K, inputs=inputs, alpha=alpha)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_right_kernel_is_accepted(name: str, anywhere: Session, tmp_path: Path) -> None:
    more = ("40x300x400", "1000") if anywhere.backend.info.kind == "gpu" else ()
    for size in ("1", "17x129x255", *more):
        outcome = measured(anywhere, VARIANTS[name].source, at(size), tmp_path)
        assert outcome.status == "measured", outcome.reason


TYPED = text_of("typed.cu")
OPERANDS = ["__nv_fp8_e4m3", "__nv_fp8_e5m2", "signed char"]
RESULTS = ["float", "__half", "__nv_bfloat16"]


@pytest.mark.gpu
@pytest.mark.parametrize(("operand", "result"), half(itertools.product(OPERANDS, RESULTS)))
def test_types_of_cuda(operand: str, result: str, checks: Session, tmp_path: Path) -> None:
    source = TYPED.replace("OPERAND", operand).replace("RESULT", result)
    for factors in ((1.0, 0.0), (-0.5, 1.25)):
        at = Problem(65, 190, 333, inputs="signed", alpha=factors[0], beta=factors[1])
        if result == "__half" and operand == "__nv_fp8_e5m2":
            continue  # its largest numbers, scaled, are beyond float16
        outcome = measured(checks, source, at, tmp_path)
        assert outcome.status == "measured", outcome.reason
        wrong = source.replace("scale_b[j]", "scale_b[0]")
        assert measured(checks, wrong, at, tmp_path).status == "wrong"


#: Right kernels that were accepted, which many mistakes have in common.
ACCEPTED: set[tuple[str, str, Problem]] = set()


@pytest.mark.parametrize("name", some(MISTAKES, *[*MISTAKES][::2]))
def test_each_mistake_is_refused(name: str, anywhere: Session, tmp_path: Path) -> None:
    mistake, device = MISTAKES[name], anywhere.backend.info.label
    problem = at(mistake.size, -2.0 if name == "no alpha" else 1.0, mistake.inputs)
    right = mistake.variant.source
    if (device, right, problem) not in ACCEPTED:
        assert measured(anywhere, right, problem, tmp_path).status == "measured"
        ACCEPTED.add((device, right, problem))
    outcome = measured(anywhere, mistake.source, problem, tmp_path)
    assert outcome.status == "wrong", f"accepted: {name}"


def test_there_are_enough_mistakes() -> None:
    assert len(MISTAKES) >= 30
    assert len({mistake.source for mistake in MISTAKES.values()}) == len(MISTAKES)


@example(problem=Problem(33, 290, 400, inputs="normal"), name="scales of blocks")
@settings(max_examples=12)
@given(problem=problems(70, 300, 600, alpha=(1.0, -2.0, 3.0)), name=st.sampled_from([*VARIANTS]))
def test_right_kernels_pass(problem: Problem, name: str, session: Session, tmp_path: Path) -> None:
    outcome = measured(session, VARIANTS[name].source, problem, tmp_path)
    assert outcome.status == "measured", outcome.reason


def test_errors_are_of_sums_and_not_of_rounded_inputs(session: Session, tmp_path: Path) -> None:
    for variant in (E4M3, ROWS):
        outcome = measured(session, variant.source, at("64x64x1000"), tmp_path)
        assert present(present(outcome.accuracy).avg_rel_err) < 1e-5


def test_a_single_term_has_a_small_bound_however_many_there_are(tmp_path: Path) -> None:
    """So a scale that is 1% wrong shows in samples, where sums in float22 may err by a third."""
    rows = Variant(scales="rows", keys='accumulator = "float22"')
    kernel = catalogue.load(saved(tmp_path / "fp8.cu", rows.source))
    bound = oracle.bound(kernel, Problem(64, 64, 8192))
    assert bound.of_S > 0.3
    assert bound.of_term < 0.001
    kernel = catalogue.load(saved(tmp_path / "fp8.cu", VARIANTS["promoted sums"].source))
    promoted = oracle.bound(kernel, Problem(64, 64, 8192)).of_S
    assert oracle.bound(kernel, Problem(64, 64, 128)).of_S < promoted < 0.01


@pytest.mark.parametrize("scales", [None, "matrix", "rows"])
def test_lost_sums_are_found(scales: Scales | None, kernels: DeviceKernels, tmp_path: Path) -> None:
    """Terms have random signs there: 0 is off by more than such sums in float22 may be, although
    it is within their bound for terms of one sign."""
    variant = Variant(scales=scales, keys='accumulator = "float22"')
    kernel = catalogue.load(saved(tmp_path / "fp8.cu", variant.source))
    problem = Problem(33, 40, 4096)
    [sample] = sampled(kernels, problem, [5], kernel.contract)
    bound, right = oracle.bound(kernel, problem), present(sample.R)
    assert judge(right.astype(np.float32), sample, bound).wrong == 0
    assert judge(np.zeros_like(right, np.float32), sample, bound).wrong > right.size // 2
    is_single = np.inf == present(sample.typical).T
    skipped = np.where(is_single, right, 0).astype(np.float32)
    assert judge(skipped, sample, bound).wrong > right.size // 2


def test_scales_are_inputs_and_no_results(kernels: DeviceKernels, tmp_path: Path) -> None:
    """Whatever a launch of a batch writes but its C and its workspace is noticed."""
    kernel = catalogue.load(saved(tmp_path / "fp8.cu", ROWS.source))
    with prepared_on(kernels, Problem(8, 9, 10), kernel.contract) as prepared:
        buffers = prepared.buffers((8, 9), kernel)
        passed = [matrix.extent.name for matrix in buffers.passed]
        assert passed == ["A", "B", "C", "scale_a", "scale_b"]
        assert [matrix.extent.name for matrix in buffers.results] == ["C"]
        moved = buffers.moved(buffers.passed)
        assert [m.extent.name for m in moved.scales] == ["scale_a", "scale_b"]


def test_whole_numbers_have_no_errors(session: Session, tmp_path: Path) -> None:
    source = Variant("int8", result="int").source
    accuracy = present(measured(session, source, at("64x64x1000"), tmp_path).accuracy)
    assert (accuracy.max_rel_err, accuracy.bound_ratio) == (0, 0)


def test_a_kernel_that_writes_scales_later_is_found(session: Session, tmp_path: Path) -> None:
    """One thread reads its scale, and only then changes it: C is right, the inputs are not."""
    source = ROWS.source.replace("const float *scale_a", "float *scale_a")
    ending = "= (float)(alpha * sum);\n"
    assert ending in source
    changed = source.replace(ending, ending + "    if (j == 0) scale_a[i] = 3.0f;\n")
    changed = changed.replace("scale_a[i] * a", "scale * a")
    changed = changed.replace(
        "float sum = 0;", "float sum = 0;\n    const float scale = scale_a[i];"
    )
    outcome = measured(session, changed, Problem(40, 1, 70, inputs="signed"), tmp_path)
    assert (outcome.status, outcome.check) == ("wrong", "inputs")
    assert "changed its input scale_a" in present(outcome.reason)


@pytest.mark.parametrize(
    ("problem", "needs"),
    [
        (Problem(4, 4, 2**17), None),
        (Problem(4, 4, 2**17 + 1), "max(alpha, -alpha) * K <= 2**17"),
        (Problem(4, 4, 2**16, alpha=-2.0), None),
        (Problem(4, 4, 2**16, alpha=-3.0), "max(alpha, -alpha) * K <= 2**17"),
        (Problem(4, 4, 4, alpha=0.5), "alpha % 1 == 0"),
    ],
)
def test_whole_sums(problem: Problem, needs: str | None, backend: Backend, tmp_path: Path) -> None:
    file = saved(tmp_path / "int8.cu", VARIANTS["int8"].source)
    case = sweep.case(catalogue.load(file), problem, {}, backend.info)
    assert (case.skip.needs if case.skip else None) == needs


# -- commands -----------------------------------------------------------------------------------


Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda name, source: saved(tmp_path / name, source)


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *(
            pytest.param(name, "sums of 24 bits (float32), rounded to nearest", marks=LONG)
            for name in ("e4m3", "scales of blocks")
        ),
        ("sums of 13 bits that declare float32", "sums of 14 bits (float22), truncated"),
    ],
)
def test_grade_tells_bits_of_sums(name: str, told: str, write: Write, matbench: Matbench) -> None:
    source = VARIANTS[name].source if name in VARIANTS else MISTAKES[name].source
    printed = " ".join(matbench("grade", write("fp8.cu", source)).stdout.split())
    assert told in printed
    assert "inputs read with 4 bits" in printed
    assert "as K to the power" in printed


@pytest.mark.long
def test_adopt_finds_the_call_of_an_int8_kernel(write: Write, matbench: Matbench) -> None:
    source = VARIANTS["int8"].source.split("// ///\n", 1)[1].replace("unsigned char", "signed char")
    file = write("int8.cu", source)
    assert "computes alpha·A·Bᵀ" in matbench("adopt", file).stdout
    assert 'transpose = "NT"' in file.with_suffix(".toml").read_text(encoding="utf-8")


def test_back_to_back_launches_have_their_own_scales(write: Write, matbench: Matbench) -> None:
    file = write("fp8.cu", VARIANTS["scales of rows"].source)
    matbench("run", file, "--sizes", "64", "--method", "hot")
    assert [outcome.status for outcome in last_run()] == ["measured"]


def test_a_mistake_in_a_table_is_one_line(
    write: Write, matbench: Matbench, table_regression: TableRegression
) -> None:
    def refusal(change: str) -> str:
        old, new = change.split(" -> ")
        assert old in ROWS.source
        file = write("fp8.cu", ROWS.source.replace(old, new, 1))
        [said] = matbench("run", file, code=2).stderr.splitlines()
        return said.replace(str(file.parent), "")

    table_regression("tables-of-eight-bits.txt", refusal)


def test_scales_are_for_8_bits_alone(write: Write, matbench: Matbench) -> None:
    source = ROWS.source.replace('// storage = "e4m3"\n', "").replace("unsigned char *", "float *")
    said = matbench("run", write("wide.cu", source), code=2).stderr
    assert "scales: only for operands of e4m3, e5m2 or int8, not float32" in " ".join(said.split())


# -- the types ----------------------------------------------------------------------------------


def test_e5m2_is_the_upper_half_of_float16() -> None:
    codes = np.arange(256, dtype=np.uint8)
    wanted = (codes.astype(np.uint16) << 8).view(np.float16).astype(np.float64)
    np.testing.assert_array_equal(rounding.decoded(codes, "e5m2"), wanted)


def test_the_numbers_of_e4m3() -> None:
    """Those that the specification lists: the largest, the smallest of both kinds, NaN."""
    codes = np.array([0x00, 0x01, 0x07, 0x08, 0x38, 0x7E, 0x7F, 0x80, 0xB8, 0xFE], np.uint8)
    wanted = [0, 2**-9, 7 * 2**-9, 2**-6, 1, 448, np.nan, -0.0, -1, -448]
    np.testing.assert_array_equal(rounding.decoded(codes, "e4m3"), wanted)


@pytest.mark.parametrize("storage", ["e4m3", "e5m2"])
def test_numbers_are_stored_as_the_nearest(storage: Storage) -> None:
    codes = np.arange(256, dtype=np.uint8)
    values = rounding.decoded(codes, storage)
    finite = np.isfinite(values)
    np.testing.assert_array_equal(rounding.encoded(values[finite], storage), codes[finite])
    assert np.isnan(rounding.decoded(rounding.encoded(np.array([np.nan]), storage), storage))
    ordered = np.unique(values[finite])
    between = np.random.default_rng(3).uniform(ordered[0], ordered[-1], 5000)
    nearest = np.abs(between[:, None] - ordered).min(axis=1)
    stored = rounding.decoded(rounding.encoded(between, storage), storage)
    np.testing.assert_array_equal(np.abs(stored - between), nearest)


def test_whole_numbers_are_limited_to_those_with_a_negative() -> None:
    given = np.array([-200.0, -127.5, -0.5, 0.5, 1.5, 126.6, 128.0])
    stored = rounding.encoded(given, "int8")
    assert stored.tolist() == [-127, -127, 0, 0, 2, 127, 127]
