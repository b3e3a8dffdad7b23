"""New inputs for each launch: what the device makes from a key, and its verdict on C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import product
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.optional import present
from support.samples import any_kernel, buffers_of, judge, prepared_on, problems

from matbench import workloads
from matbench.backends.protocol import Backend
from matbench.bench.device_kernels import UNWRITTEN, DeviceKernels
from matbench.bench.kernel_arguments import Memory
from matbench.bench.matrices import Buffers, Extent, allocated
from matbench.bench.samples import Draw, Samples
from matbench.cache import Cache
from matbench.errors import BuildError, CaseError
from matbench.model import U32, Inputs, NumericContract, Precision, Problem, Storage
from matbench.workloads import oracle


def downloaded(buffers: Buffers, backend: Backend, dtype: Any) -> list[Any]:
    found = []
    for matrix in buffers.inputs:
        array = np.empty(matrix.extent.words, dtype)
        backend.read(matrix.data, array)
        found.append(array)
    return found


def put(C: Any, buffers: Buffers, backend: Backend) -> None:
    backend.write(buffers.C.data, np.ascontiguousarray(C))


def right_result(trial: oracle.Trial) -> Any:
    """A C that is right: the reference, rounded."""
    if trial.exact is not None:
        return trial.exact
    return present(trial.R).astype(np.float32)


PROBLEMS = st.one_of(
    problems(70, 70, 90, alpha=(1.0, 1.0, -0.7), beta=(0.0, 0.0, 1.3)),
    *(
        problems(1, 3000, 1, inputs=workloads.WORKLOADS[name].inputs, workload=name)
        for name in ("dot", "cubes", "reverse")
    ),
)
KEYS = st.integers(0, 2**64 - 1)
DOUBLE = NumericContract("float64", "float64", sums_in="float64", result="float64")
READINGS = [
    NumericContract(), NumericContract(exponents=(-12, 15)), NumericContract(exact=False), DOUBLE,
]  # fmt: skip
#: Of 8 bits, with the scales of each kind.
EIGHT_BITS = [
    NumericContract("e4m3", "e4m3"),
    NumericContract("e4m3", "e4m3", scales="matrix"),
    NumericContract("e4m3", "e4m3", scales="rows", sums_in="float22"),
    NumericContract("e4m3", "e4m3", scales="blocks"),
    NumericContract("e5m2", "e5m2", scales="blocks"),
    NumericContract("int8", "int8", scales="rows"),
    NumericContract("int8", "int8", sums_in="int32", result="int32"),
]
#: With several blocks of 128 columns and terms, and a part of one.
BLOCKS = problems(40, 300, 400, alpha=(1.0, 1.0, -2.0), beta=(0.0, 0.0, 3.0))
KINDS: list[Inputs] = ["signed", "uniform"]
#: By the size of all terms, and by what is typical of sums whose terms have random signs.
BOUNDS = [
    oracle.Bound(2 * U32, of_term=4 * U32),
    oracle.Bound(2 * U32, of_T=U32 / 2, of_sparse=8 * U32, of_term=4 * U32),
    oracle.Bound(1e-5, 0.0, 1e-20, U32 / 2, 8 * U32, U32 / 10, of_term=4 * U32),
    oracle.Bound(1e-5, 0.0, 0.0, U32 / 2, 8 * U32, of_term=4 * U32),
]


def with_corners(test: Any) -> Any:
    """The test, in any case on every kind of reading and scaling."""
    for contract, alpha, beta in product(READINGS, (1.0, -0.7), (0.0, 1.3)):
        for number, kind in enumerate(KINDS):
            problem = Problem(33, 40, 70, inputs=kind, alpha=alpha, beta=beta)
            test = example(problem=problem, key=9 + number, contract=contract)(test)
    return test


def check_verdicts(
    samples: Samples, buffers: Buffers, key: int, right: Any, bound: oracle.Bound
) -> None:
    """The right C passes, one wrong element does not; of a C that is a little off, the same
    elements are wrong as on the host."""
    kernels, backend, draw = samples.kernels, samples.backend, samples.draw(key)
    trial = samples.trial(buffers, draw)
    place = key % right.size
    off = right.copy()
    off.flat[place] = off.flat[place] ^ 1 if off.dtype == np.int32 else off.flat[place] * 3 + 7
    near = right.copy()
    if right.dtype != np.int32:
        steps = [0, 1.2, 16] if key % 3 else [0, 0, 1.2]  # too large one by one, or together
        near *= 1 + np.resize(steps, right.shape).astype(right.dtype) * U32
    if trial.typical is not None and samples.is_sparse and bound.is_of_T:
        # The device does without S there, although some S may be smaller than 4·T.
        trial = trial._replace(S=np.where(trial.typical.dense, 1e300, present(trial.S)))
    for result, wrong in ((right, 0), (off, 1), (near, None)):
        expected = judge(result, trial, bound)
        put(result, buffers, backend)
        kernels.fill(samples.partial, 0, samples.partial.nbytes // 4, 1)  # of earlier launches
        samples.compare(buffers, draw, bound)
        [verdict] = samples.verdicts()
        assert (verdict.draw, verdict.wrong, verdict.forged) == (draw, expected.wrong, False)
        assert verdict.first == expected.first_wrong
        if result is not near:
            assert (verdict.wrong, verdict.first) == (wrong, place if wrong else None)


def sizes(matrix: Any) -> Any:
    """What powers of two and signs do not change, in each row."""
    return np.sort(np.frexp(np.abs(matrix))[0], axis=1)


def check_sample(
    kernels: DeviceKernels, problem: Problem, key: int, contract: NumericContract
) -> None:
    """Rows and terms have moved; the right C passes, one wrong element does not. Of a C that is a
    little off, the same elements are wrong as on the host."""
    backend = kernels.backend
    with prepared_on(kernels, problem, contract) as prepared:
        samples = Samples(prepared)
        buffers = buffers_of(prepared, contract)
        draw = samples.draw(key)
        trial = samples.trial(buffers, draw)
        if problem.workload == "matmul":
            rows = {row.tobytes() for row in sizes(prepared.reference.on_host().inputs[0])}
            moved = [row for row in sizes(trial.inputs[0]) if row[:-1].any() or row[-1] != 0.5]
            assert rows.issuperset(row.tobytes() for row in moved)
        samples.write(buffers, draw)
        right = present(trial.R) if contract == DOUBLE else right_result(trial)
        if contract.result == "int32":
            right = right.astype(np.int32)
        C = np.empty_like(right)
        backend.read(buffers.C.data, C)
        bound = BOUNDS[0 if contract == DOUBLE else key % len(BOUNDS)]
        if contract.result == "int32":
            bound = oracle.Bound(0.0)
        elif problem.beta:  # the result may be far larger than the sum
            bound = bound._replace(added=bound.added + U32)
        if trial.C is not None:
            assert np.array_equal(C, trial.C)
        else:
            assert (C.view(np.uint32) == UNWRITTEN).all()
            samples.compare(buffers, draw, bound)
            [unwritten] = samples.verdicts()
            assert (unwritten.wrong, unwritten.first) == (C.size, 0)
        check_verdicts(samples, buffers, key, right, bound)


@with_corners
@given(problem=PROBLEMS, key=KEYS, contract=st.sampled_from(READINGS))
def test_the_device_knows_what_its_inputs_give(
    kernels: DeviceKernels, problem: Problem, key: int, contract: NumericContract
) -> None:
    contract = contract if problem.workload == "matmul" else READINGS[0]
    check_sample(kernels, problem, key, contract)


@example(Problem(33, 290, 400, inputs="signed"), 5, EIGHT_BITS[3])
@example(Problem(33, 290, 400, inputs="uniform"), 6, EIGHT_BITS[4])
@example(Problem(40, 260, 390, inputs="signed", alpha=-2.0, beta=3.0), 7, EIGHT_BITS[6])
@given(problem=BLOCKS, key=KEYS, contract=st.sampled_from(EIGHT_BITS))
def test_the_device_knows_what_8_bit_inputs_and_scales_give(
    kernels: DeviceKernels, problem: Problem, key: int, contract: NumericContract
) -> None:
    check_sample(kernels, problem, key, contract)


def test_scales_are_read_back_from_any_layout(kernels: DeviceKernels) -> None:
    contract = NumericContract("e4m3", "e4m3", scales="blocks")
    with prepared_on(kernels, Problem(5, 300, 400), contract) as prepared:
        plain = any_kernel(scales="blocks")
        samples = Samples(prepared)
        one, other = (
            samples.trial(prepared.buffers((5, 300), kernel), samples.draw(7)).scales
            for kernel in (plain, msgspec.structs.replace(plain, transpose="TT"))
        )
    assert all(map(np.array_equal, present(one), present(other)))


def test_each_product_of_a_batch_has_inputs_of_its_own(kernels: DeviceKernels) -> None:
    with prepared_on(kernels, Problem(5, 6, 7, batch=3)) as prepared:
        kernel = any_kernel()
        samples, buffers = Samples(prepared), prepared.buffers((5, 6), kernel)
        trials = [samples.trial(buffers, samples.draw(1), item) for item in buffers.items]
        samples.write(buffers, samples.draw(1))
        A, B, _ = (matrix.contents().view(np.float32).reshape(3, -1) for matrix in buffers.given)
        for written, trial in zip(zip(A, B, strict=True), trials, strict=True):
            assert all(map(np.array_equal, written, map(np.ravel, trial.inputs)))


def test_each_dot_product_has_another_sum(kernels: DeviceKernels) -> None:
    """Terms that are all positive get random signs, of which A has all."""
    with prepared_on(kernels, Problem(1, 1000, 1, workload="dot")) as prepared:
        samples, buffers = Samples(prepared), prepared.buffers((1, 1))
        trials = [samples.trial(buffers, samples.draw(key)) for key in (1, 2)]
    for trial in trials:
        A, B = trial.inputs
        assert 400 < np.count_nonzero(A < 0) < 600
        assert (B >= 0).all()
    assert present(trials[0].R) != present(trials[1].R)


def test_sets_of_few_layouts_and_their_sources_are_kept(kernels: DeviceKernels) -> None:
    with prepared_on(kernels, Problem(5, 6, 7)) as prepared:
        before = len(prepared._held)
        for padding in (1, 2, 3, 4, 1):
            kernel = any_kernel(padding=padding)
            buffers = prepared.buffers((5, 6), kernel)
            for matrix in (*buffers.inputs, buffers.C, *buffers.given):
                assert matrix.arena.buffer in prepared._held
            assert len(prepared._held) <= before + 3
        for _ in range(2):
            prepared.move()
            assert len(prepared._held) == before + 1  # what lies before those to come


@pytest.fixture
def at_33(kernels: DeviceKernels) -> Iterator[tuple[Samples, Buffers]]:
    problem = Problem(33, 40, 50, inputs="signed")
    with prepared_on(kernels, problem) as prepared:
        buffers = prepared.buffers((33, 40))
        yield Samples(prepared), buffers


@pytest.mark.parametrize("side", ["before", "after", "between rows"])
def test_overwritten_guards_are_told_and_restored(side: str, kernels: DeviceKernels) -> None:
    """All of them, to the very first and last; then they are as they were."""
    with prepared_on(kernels, Problem(33, 40, 50, inputs="signed")) as prepared:
        kernel = any_kernel(padding=3)
        samples, buffers = Samples(prepared), prepared.buffers((33, 40), kernel)
        C, draw = buffers.given[-1], samples.draw(1)
        first, last = C.start // 4 - 2**16, C.start // 4 + C.extent.words + 2**16 - 1
        places, said = {
            "before": (
                [first, C.start // 4 - 1],
                "wrote outside C: 2 elements, starting 65,536 before",
            ),
            "after": ([last - 2**16 + 1, last], "wrote outside C: 2 elements, starting 1 after"),
            "between rows": (
                [C.start // 4 + word for word in (40, 42, 43 + 41)],
                "wrote between the rows of C: 3 elements",
            ),
        }[side]

        def touched(change: bool) -> bool:
            samples.write(buffers, draw)
            samples.hash_before([buffers])
            for place in places if change else ():
                kernels.fill(C.arena.buffer, place, 1, 7)
            samples.hash_after()
            samples.compare(buffers, draw, oracle.Bound(10 * U32))
            return samples.verdicts()[0].touched

        assert not touched(False)
        assert touched(True)
        assert present(C.arena.damage()).startswith(said)
        assert C.arena.damage() is None
        assert not touched(False)


@pytest.mark.parametrize("word_bytes", [1, 2, 4, 8])
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_hash_ends_at_the_last_byte(word_bytes: int, offset: int, kernels: DeviceKernels) -> None:
    """The last word of what it leaves out may change, and none beside it."""
    extent = Extent("C", 1, 7, 7, word_bytes, 0x7F)
    with Memory(kernels.backend) as memory:
        [C] = allocated(memory, kernels, [extent], 1)
        hashes = []
        for value in (1, 2):
            kernels.fill(C.arena.buffer, C.start // word_bytes + 7 + offset, 1, value, word_bytes)
            C.arena.hash(5, [C], part=0, more=False, also=None)
            reports = np.empty((kernels.blocks, 3), np.uint64)
            kernels.backend.read(kernels.partial, reports)
            hashes.append(reports[:, 0].sum())
    assert (hashes[0] == hashes[1]) == (offset < 0)


def test_each_verdict_belongs_to_its_launch(at_33: tuple[Samples, Buffers]) -> None:
    """More launches than fit at once: all verdicts are returned, in order."""
    samples, buffers = at_33
    wrong = {3, 70, 129}
    for key in range(130):
        draw = samples.draw(key)
        samples.write(buffers, draw)
        C = right_result(samples.trial(buffers, draw)) if key in (3, 4) else None
        if C is not None:
            C[5, 7] += key == 3
            put(C, buffers, samples.backend)
        samples.compare(buffers, draw, oracle.Bound(10 * U32))
    found = samples.verdicts()
    assert [verdict.draw.key for verdict in found] == list(range(130))
    assert found[3].wrong == 1
    assert found[3].first == 5 * 40 + 7
    assert found[4].wrong == 0
    assert all(found[key].wrong == 33 * 40 for key in wrong - {3})
    assert samples.verdicts() == []


@pytest.mark.parametrize("forged", [slice(4), 0, 1, 2, 3])
@pytest.mark.parametrize("value", [0, 1, 2**64 - 1, None])
def test_forged_verdicts(at_33: tuple[Samples, Buffers], value: int | None, forged: Any) -> None:
    """All of one or a word of it, also where C is right; those of the launch before, too."""
    samples, buffers = at_33
    before, words = (np.empty(4 * 64, np.uint64) for _ in "12")
    for key, kept in ((1, before), (2, words)):
        samples.verdicts()
        draw = samples.draw(key)
        samples.write(buffers, draw)
        put(right_result(samples.trial(buffers, draw)), buffers, samples.backend)
        samples.compare(buffers, draw, oracle.Bound(10 * U32))
        samples.backend.read(samples.results, kept)
    words[forged] = before[forged] if value is None else value
    samples.backend.write(samples.results, words)
    [verdict] = samples.verdicts()
    assert (verdict.forged, verdict.first) == (True, None)
    assert verdict.wrong > 0


def test_inputs_that_were_written_to_are_noticed(at_33: tuple[Samples, Buffers]) -> None:
    samples, buffers = at_33
    draw = samples.draw(1)
    for matrix in (None, *buffers.inputs):
        samples.write(buffers, draw)
        samples.hash_before([buffers])
        if matrix is not None:
            samples.kernels.fill(matrix.data, 3, 1, 1)
        samples.hash_after()
        samples.compare(buffers, draw, oracle.Bound(10 * U32))
        assert samples.verdicts()[0].touched == (matrix is not None)
        said = samples.changed_input(buffers, draw)
        if matrix is None:
            assert said is None
        else:
            assert (
                said == f"changed its input {matrix.extent.name}: 1 element, the first at offset 3"
            )


def test_nobody_can_foresee_a_hash(at_33: tuple[Samples, Buffers]) -> None:
    """Of the same memory, each launch has another one."""
    samples, buffers = at_33
    found = set()
    for _ in range(2):
        samples.write(buffers, samples.draw(1))
        samples.hash_before([buffers])
        reports = np.empty((3, samples.kernels.blocks, 3), np.uint64)
        samples.backend.read(samples.partial, reports)
        found.add(int(reports[1, :, 0].sum()))
    assert len(found) == 2


def test_answers_lie_masked(kernels: DeviceKernels) -> None:
    """The reference is nowhere on the device in plain form, and changing it makes C wrong."""
    backend = kernels.backend
    with prepared_on(kernels, Problem(33, 40, 50, inputs="signed")) as prepared:
        for trial in (prepared.reference, *prepared.others):
            expected = trial.on_host().expected
            there = np.empty(expected.shape, np.uint64)
            backend.read(present(trial.R).masked, there)
            assert (there == expected.astype(np.float64).view(np.uint64)).sum() == 0
        reference, samples = prepared.reference, Samples(prepared)
        buffers, draw = prepared.buffers((33, 40)), Draw(reference)
        put(right_result(reference.on_host()), buffers, backend)
        samples.compare(buffers, draw, oracle.Bound(10 * U32))
        C = right_result(reference.on_host()).astype(np.float64)
        backend.write(present(reference.R).masked, C)
        samples.compare(buffers, draw, oracle.Bound(10 * U32))
        right, wrong = samples.verdicts()
        assert right.wrong == 0
        assert wrong.wrong > 1000


def test_copies_of_inputs_are_watched(kernels: DeviceKernels) -> None:
    with prepared_on(kernels, Problem(33, 40, 50)) as prepared:  # more than one block hashes
        assert prepared.is_intact()
        for trial in (prepared.reference, prepared.signed, *prepared.others):
            for buffer in (*trial.inputs, *(trial.norms or ())):
                kept = np.empty(buffer.nbytes // 4, np.uint32)
                kernels.backend.read(buffer, kept)
                last = np.arange(kept.size) == kept.size - 1
                kernels.backend.write(buffer, kept ^ last.astype(np.uint32))
                assert not prepared.is_intact()
                kernels.backend.write(buffer, kept)
                assert prepared.is_intact()


def test_the_order_of_terms_is_drawn_for_each_launch(kernels: DeviceKernels) -> None:
    """Also of the inputs of the launch before, whose kernel may have written to it."""
    with prepared_on(kernels, Problem(9, 9, 9)) as prepared:
        samples, buffers, written = Samples(prepared), prepared.buffers((9, 9)), []
        draw = samples.draw(5)
        for _ in range(2):
            samples.write(buffers, draw)
            written.append(downloaded(buffers, kernels.backend, np.float32))
            samples.hash_before([buffers])
            samples.hash_after()
            samples.compare(buffers, draw, oracle.Bound(1.0))
            kernels.fill(samples._order[0], 0, 27, 0)
        first, second = written
        np.testing.assert_array_equal(first, second)


def test_a_device_without_float64_cannot_check_results(backend: Backend) -> None:
    said = BuildError("error: use of type 'double' requires cl_khr_fp64\nmore")
    without = mock.Mock(info=backend.info, build=mock.Mock(side_effect=said))
    with pytest.raises(
        CaseError, match=r"^cannot check results on .* needs float64: error: .*64\nmore$"
    ):
        DeviceKernels(without)


@pytest.mark.gpu
@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [(1, 1, 1), (33, 40, 50), (300, 130, 1100), (2, 3000, 5)], ids=str)
def test_a_gpu_knows_too(size: tuple[int, int, int], storage: Storage, cuda: Backend) -> None:
    precision: Precision = storage
    narrow = (-14, 15) if storage == "float16" else (-126, 127)
    contract = NumericContract(precision, storage, narrow)
    with closing(DeviceKernels(cuda)) as kernels:
        for key in range(5):
            check_sample(kernels, Problem(*size, inputs="signed"), key, contract)


@given(problems(40, 40, 60, alpha=(1.0, -0.7), beta=(0.0, 1.3), inputs=("uniform", "signed")), KEYS)
def test_meanwhile_a_number_of_a_is_0(kernels: DeviceKernels, problem: Problem, key: int) -> None:
    """What is expected changes with it; afterwards both are as before, bit for bit."""
    backend = kernels.backend
    with prepared_on(kernels, problem) as prepared:
        samples, buffers = Samples(prepared), prepared.buffers((problem.M, problem.N))
        bound = oracle.Bound((problem.K + 4) * U32, of_term=4 * U32)
        given = prepared.signed
        sources = *given.inputs, present(given.R).masked
        before_all = kernels.hashed(1, *sources)

        def of_inputs() -> tuple[Any, Any, Any]:
            samples.write(buffers, samples.draw(key))
            A, B = downloaded(buffers, backend, np.float32)
            C = np.zeros((problem.M, problem.N), np.float32)
            if problem.beta:
                backend.read(buffers.C.data, C)
            found = A.reshape(problem.M, -1).astype(np.float64) @ B.reshape(-1, problem.N)
            return A, B, (problem.alpha * found + problem.beta * C).astype(np.float32)

        def wrong(C: Any) -> int:
            put(C, buffers, backend)
            samples.compare(buffers, samples.draw(key), bound)
            return samples.verdicts()[0].wrong

        A, B, before = of_inputs()
        with samples.altered():
            *changed, during = of_inputs()
            assert (changed[0] != A).sum() <= 1
            assert np.array_equal(changed[1], B)
            assert wrong(during) == 0
            visible = np.abs(during - before) > 1e-3 * np.abs(before).max()
            assert wrong(before) >= visible.sum()
        assert np.array_equal(of_inputs()[2], before)
        assert wrong(before) == 0
        assert kernels.hashed(1, *sources) == before_all


def test_inputs_below_the_range_count_as_its_end() -> None:
    """The expected error of a kernel with few exponents does not shrink with its inputs."""
    problem, cache = Problem(5, 7, 9), Cache()
    plain = NumericContract()
    narrow = msgspec.structs.replace(plain, exponents=(-1, 15))
    norms = {}
    for contract in (plain, narrow):
        signed = present(oracle.trials(problem, contract, cache).signed)
        norms[contract.exponents] = present(signed.norms)
    for usual, larger in zip(norms[plain.exponents], norms[narrow.exponents], strict=True):
        assert (larger >= usual).all()
        assert (larger > usual).any()
