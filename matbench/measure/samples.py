"""New inputs for each launch, and the verdict on its result; all on the device.

All randomness follows from a 64-bit key, so that any launch can be repeated. Inputs are changed in
ways whose effect on the result is known exactly; `device_code/samples.cu` has the details, and
`oracle.sample_trial` does the same on the host. No two launches have the same inputs, and all of
each result is compared: a kernel that skips work, or keeps results, is wrong.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from matbench.backends import Argument
from matbench.measure import oracle, places
from matbench.measure.judge import UNWRITTEN, between, guards
from matbench.measure.oracle.draws import drawn
from matbench.measure.oracle.matmul import selects_exactly
from matbench.measure.prepared import Buffers, Prepared
from matbench.model import Launch, Storage

_THREADS = 256
_BLOCKS = {"gpu": 8, "cpu": 4}  # of each multiprocessor
_RESULTS = 64  # verdicts read back at once
_SUMS = 3
_NONE = 2**64 - 1
_JUDGED = -1  # on the host
#: Programs that depend on the type of C.
_OF_C = ("matrix_contents", "matrix_compare")


class Verdict(NamedTuple):
    """How many elements of C were wrong after the launch with that key, and the first of them.

    `forged`: something other than the judge wrote the verdict. `outside`: the matrix whose guards
    were checked instead of C. `item`: the product of a batch.
    """

    key: int
    wrong: int
    first: int | None
    forged: bool = False
    outside: str | None = None
    item: int = 0


class _Method(Protocol):
    """Makes new inputs of one workload, and compares its results."""

    def write(self, buffers: Buffers, key: int, *, check: bool) -> None:
        """Write a launch's inputs, and poison to C; or, with `check`, find changed inputs."""

    def compare(self, buffers: Buffers, key: int, bound: oracle.Bound) -> int | None:
        """Compare C; returns the number of blocks with a result (None: all), or `_JUDGED`."""


class Samples:
    """The launches on one prepared problem. `vary` and `select` are false in controls."""

    def __init__(
        self, prepared: Prepared, *, vary: bool = True, select: bool = True, poison: bool = True
    ) -> None:
        self.prepared = prepared
        self.judge = prepared.judge
        self.backend = prepared.backend
        self.problem = prepared.problem
        self.reading = prepared.reading
        self.vary = vary
        self.select = select
        self.poison = poison
        info = self.backend.info
        self.blocks = _BLOCKS[info.kind] * info.limits["multiprocessors"]
        self.partial = prepared.allocate(2 * 8 * self.blocks)
        self.results = prepared.allocate(3 * 8 * _RESULTS)
        self._sealed: list[tuple[int, int, str | None, int]] = []
        self._verdicts: list[Verdict] = []
        self._method: _Method = (
            _METHODS[self.problem.workload](self) if self.judge.has_float64 else _OnHost(self)
        )

    @property
    def is_full(self) -> bool:
        """Whether verdicts must be read before more launches can be compared."""
        return len(self._sealed) == _RESULTS

    def write(self, buffers: Buffers, key: int) -> None:
        """Write new inputs for a launch, and poison to C."""
        for item in buffers.items:
            self._method.write(buffers, _key_of(key, item), check=False)
            if buffers.own is not None:
                places.write(self.judge, buffers.all, buffers.own, item)

    def compare(self, buffers: Buffers, key: int, bound: oracle.Bound) -> None:
        """Compare C after a launch, each product of a batch with its own."""
        for item in buffers.items:
            if buffers.own is not None:
                places.take(self.judge, buffers.all, buffers.own, item)
            blocks = self._method.compare(buffers, _key_of(key, item), bound)
            if blocks != _JUDGED:
                self.seal(key, blocks=blocks, item=item)

    def compare_guards(self, buffers: Buffers, key: int) -> None:
        """Whether a launch wrote outside its matrices; the guards are restored."""
        if not self.judge.has_float64:
            return  # `samples.cu` cannot be built there; guards are checked at the end
        for matrix in buffers.passed:
            if matrix.guard_words:
                # A number of 8 bytes is two words; one of 2 bytes is a word of bfloat16.
                storage: Storage = "bfloat16" if matrix.word_bytes == 2 else "float32"
                sizes = guards(matrix)
                self.start("guards_changed", [matrix.raw, *sizes, self.partial], storage=storage)
                self.seal(key, outside=matrix.name)
                if matrix.pitch > matrix.width:
                    arguments = [*between(matrix), self.partial]
                    self.start("between_changed", arguments, storage=storage)
                    self.seal(key, outside=matrix.name)

    def changed_inputs(self, buffers: Buffers, key: int) -> Verdict | None:
        """The verdict on inputs that changed since `write`; None if none did."""
        before = self.verdicts()
        for item in buffers.items:
            if buffers.own is not None:
                places.take_inputs(self.judge, buffers.all, buffers.own, item)
            self._method.write(buffers, _key_of(key, item), check=True)
        found = self.verdicts()
        self._verdicts = before
        return next((verdict for verdict in found if verdict.wrong), None)

    def verdicts(self) -> list[Verdict]:
        """The verdicts since the last call, in order."""
        if self._sealed:
            words = np.empty((_RESULTS, 3), np.uint64)
            self.backend.read(self.results, words)
            for (key, own, outside, item), row in zip(self._sealed, words.tolist(), strict=False):
                wrong, first = row[0] ^ drawn(own, 0), row[1] ^ drawn(own, 1)
                forged = row[2] != drawn(drawn(own, wrong), first)
                place = None if first == _NONE or forged else first
                verdict = Verdict(key, max(wrong, forged), place, forged, outside, item)
                self._verdicts.append(verdict)
            self._sealed = []
        found, self._verdicts = self._verdicts, []
        return found

    def trial(self, key: int, item: int = 0) -> oracle.Trial:
        """The inputs of a launch and its expected C, made on the host."""
        given = self.prepared.reference.on_host()
        if not given.inputs:
            problem, reading, cache = self.problem, self.reading, self.prepared.cache
            given = oracle.trials(problem, reading, cache).reference
        sample = oracle.Sample(_key_of(key, item), self.vary, self.select)
        return oracle.sample_trial(self.problem, self.reading, given, sample)

    # -- for the methods -----------------------------------------------------------------------

    def start(
        self,
        entry: str,
        arguments: list[Argument],
        *,
        blocks: int | None = None,
        storage: Storage | None = None,
    ) -> None:
        """Launch one of the kernels of `samples.cu`, for the inputs' storage type or another."""
        kind = storage or self.reading.storage
        params = {kind.upper(): 1} if kind in ("float16", "bfloat16", "float64") else {}
        if entry in _OF_C and self.reading.result == "float64":
            params["DOUBLE_C"] = 1
        program = self.judge.program(entry, "samples.cu", params)
        launch = Launch(grid=(blocks or self.blocks, 1, 1), block=(_THREADS, 1, 1))
        program.launch(launch, arguments)

    def seal(
        self, key: int, *, blocks: int | None = None, outside: str | None = None, item: int = 0
    ) -> None:
        """Add up the results of the comparing blocks, and seal them against forgery."""
        if self.is_full:
            self._verdicts = self.verdicts()
        own = secrets.randbits(64)
        arguments: list[Argument] = [self.partial, blocks or self.blocks, own, self.results]
        self.start("seal", [*arguments, len(self._sealed)], blocks=1)
        self._sealed.append((key, own, outside, item))

    def write_or_check(
        self, entry: str, arguments: list[Argument], buffers: Buffers, key: int, *, check: bool
    ) -> None:
        """Launch the kernel that writes inputs and poisons C, or that finds changed inputs."""
        if check:
            self.start(f"{entry}_changed", [*arguments, self.partial])
            self.seal(key)
        else:
            words = buffers.C.words * buffers.C.word_bytes // 4 if self.poison else 0
            self.start(entry, [*arguments, buffers.C.data, words, UNWRITTEN])

    def judged(self, key: int, verdict: oracle.Verdict) -> None:
        """Add a verdict reached on the host."""
        self._verdicts.append(Verdict(key, verdict.wrong, verdict.first_wrong))


class _Matrices:
    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        problem = samples.problem
        self.sizes: list[Argument] = [problem.M, problem.N, problem.K]
        places = problem.M + problem.N + problem.K
        allocate = samples.prepared.allocate
        self.order = [allocate(4 * places) for _ in range(3)]

    def _draw(self, key: int) -> list[Argument]:
        """The order for a key; made each time, because a kernel may have overwritten it."""
        samples = self.samples
        flags = [int(samples.vary), int(samples.select)]
        limits = oracle.shifts(samples.reading)
        samples.start("draw_order", [key, *self.sizes, *limits, *flags, *self.order])
        return [*self.order]

    def write(self, buffers: Buffers, key: int, *, check: bool) -> None:
        samples = self.samples
        order = self._draw(key)
        targets = [matrix.data for matrix in buffers.inputs]
        arguments = [*samples.prepared.reference.inputs, *order, *targets, *self.sizes]
        samples.write_or_check("matrix_inputs", arguments, buffers, key, check=check)
        contents = samples.prepared.reference.C
        if contents is not None and not check:
            moved = [contents, *order[:2], *self.sizes[:2], buffers.C.data]
            samples.start("matrix_contents", moved)

    def compare(self, buffers: Buffers, key: int, bound: oracle.Bound) -> int | None:
        samples, problem = self.samples, self.samples.problem
        order = self._draw(key)
        trial = samples.prepared.reference
        assert trial.R is not None
        assert trial.S is not None
        (R, R_key), (S, S_key) = trial.R, trial.S
        exactly = selects_exactly(problem, samples.reading)
        contents = buffers.C.data if trial.C is None else trial.C
        arguments: list[Argument] = [buffers.C.data, R, S, R_key, S_key, int(S is R)]
        arguments += [*trial.inputs, contents, int(trial.C is not None), *order, *self.sizes]
        arguments += [problem.alpha, problem.beta, *bound, -1 if exactly is None else int(exactly)]
        samples.start("matrix_compare", [*arguments, samples.partial])
        return None


class _Vectors:
    """The common part of the workloads of one dimension."""

    name = ""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.N = samples.problem.N
        self.flag = int(samples.vary)
        self.sums = samples.prepared.allocate(8 * _SUMS * samples.blocks)

    def _arguments(self, key: int) -> list[Argument]:
        return [*self.samples.prepared.reference.inputs, key, self.N, self.flag]

    def write(self, buffers: Buffers, key: int, *, check: bool) -> None:
        samples = self.samples
        arguments = [*self._arguments(key), *(vector.data for vector in buffers.inputs)]
        samples.write_or_check(f"{self.name}_inputs", arguments, buffers, key, check=check)

    def _compare_sum(self, buffers: Buffers, bound: float, *, floats: bool) -> None:
        samples = self.samples
        C = buffers.C
        arguments: list[Argument] = [C.data, C.words, int(floats), self.sums, samples.blocks]
        samples.start("sum_compare", [*arguments, bound, samples.partial], blocks=1)


class _Dot(_Vectors):
    name = "dot"

    def __init__(self, samples: Samples) -> None:
        super().__init__(samples)
        self.most = min(oracle.shifts(samples.reading))

    def _arguments(self, key: int) -> list[Argument]:
        inputs = self.samples.prepared.reference.inputs
        return [*inputs, key, self.N, self.most, self.flag]

    def compare(self, buffers: Buffers, key: int, bound: oracle.Bound) -> int | None:
        inputs = self.samples.prepared.reference.inputs
        self.samples.start("dot_sums", [*inputs, key, self.N, self.flag, self.sums])
        self._compare_sum(buffers, bound.of_S, floats=True)
        return 1


class _Cubes(_Vectors):
    name = "cubes"

    def compare(self, buffers: Buffers, key: int, bound: oracle.Bound) -> int | None:
        self.samples.start("cubes_sums", [*self._arguments(key), self.sums])
        self._compare_sum(buffers, 0.0, floats=False)
        return 1


class _Reverse(_Vectors):
    name = "reverse"

    def compare(self, buffers: Buffers, key: int, bound: oracle.Bound) -> int | None:
        samples = self.samples
        arguments = [*self._arguments(key), buffers.C.data, samples.partial]
        samples.start("reverse_compare", arguments)
        return None


class _OnHost:
    """The same with NumPy, for devices without float64."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def write(self, buffers: Buffers, key: int, *, check: bool) -> None:
        samples, judge = self.samples, self.samples.judge
        uploaded = judge.stored(samples.trial(key), samples.reading.storage)
        wrong = 0
        for matrix, array in zip(buffers.inputs, uploaded, strict=True):
            if check:
                found = np.empty_like(array)
                samples.backend.read(matrix.data, found)
                wrong += int((found.view(np.uint8) != array.view(np.uint8)).sum())
            else:
                samples.backend.write(matrix.data, array)
        if check:
            samples.judged(key, oracle.Verdict(oracle.UNKNOWN, wrong, None))
        elif (C := samples.trial(key).C) is not None:
            samples.backend.write(buffers.C.data, C)
        elif samples.poison:
            judge.fill(buffers.C.raw, buffers.C.guard_words, buffers.C.words, UNWRITTEN)

    def compare(self, buffers: Buffers, key: int, bound: oracle.Bound) -> int | None:
        samples, trial = self.samples, self.samples.trial(key)
        C = samples.judge.result(buffers.C, samples.prepared.reference)
        samples.judged(key, oracle.judge(C, trial, bound))
        return _JUDGED


_METHODS: dict[str, type[_Matrices] | type[_Dot] | type[_Cubes] | type[_Reverse]] = {
    "matmul": _Matrices,
    "dot": _Dot,
    "cubes": _Cubes,
    "reverse": _Reverse,
}


def _key_of(key: int, item: int) -> int:
    """The key of one product of a batch."""
    return key if item == 0 else drawn(key, 1000 + item)


def keys(seed: int) -> Iterator[int]:
    """The keys of successive launches, from a seed."""
    return (drawn(seed, index) for index in itertools.count())
