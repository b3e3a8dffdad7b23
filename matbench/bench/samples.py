"""New inputs for each launch, and the verdict on its result and on memory; all on the device.

All randomness follows from a 64-bit key, so that any launch can be repeated. Inputs are changed in
ways whose effect on the result is known exactly; `samples.cuh`, and `samples.cu` of each workload,
have the details. No two launches have the same inputs, and all of each result is compared: a kernel
that skips work, or keeps results, is wrong. A trial is a launch whose inputs are not changed.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from matbench import workloads
from matbench.backends.protocol import Argument, Buffer
from matbench.bench import kernel_arguments
from matbench.bench.device_kernels import ANY, THREADS, UNWORKED, UNWRITTEN
from matbench.bench.matrices import Arena, Buffers, Guarded, aligned
from matbench.bench.options import CHECKS
from matbench.bench.prepared import DeviceTrial, Prepared
from matbench.model import EIGHT_BITS, INTEGERS, WORD_BYTES, Kernel
from matbench.records.outcome import Accuracy
from matbench.workloads import oracle, scaling
from matbench.workloads.cubes import trials as cubes
from matbench.workloads.dot import trials as dot
from matbench.workloads.matmul import trials as matmul
from matbench.workloads.matmul.trials import selection_of
from matbench.workloads.reverse import trials as reverse
from matbench.workloads.rounding import decoded

#: Problems with fewer rows or columns than this have little that can vary.
FEW_LINES = 8
_RESULTS = 64  # verdicts read back at once
_SUMS = 4
_PLACES = 2 * oracle.SPARSE_TERMS  # of terms in sparse rows
_NONE = 2**64 - 1
_EXACT = oracle.Bound(0.0)
_BEFORE, _AFTER = 1, 2  # parts of what blocks report


class Draw(NamedTuple):
    """The inputs of one launch: a trial's, which are changed as a key says, or as they are."""

    trial: DeviceTrial
    key: int = 0
    is_changed: bool = False


#: The buffers of a launch, and its inputs.
Placed = tuple[Buffers, Draw]


class SampleCheck(NamedTuple):
    """How many elements of C were wrong after a launch, and the first of them.

    `forged`: something other than matbench wrote the verdict. `touched`: memory other than results
    changed during the launch. `item`: the product of a batch.
    """

    draw: Draw
    wrong: int
    first: int | None
    forged: bool = False
    touched: bool = False
    item: int = 0


class Samples:
    """The launches on one prepared problem. All `checks` are on but in controls."""

    def __init__(self, prepared: Prepared, checks: frozenset[str] = CHECKS) -> None:
        self.prepared = prepared
        self.kernels = prepared.kernels
        self.backend = prepared.backend
        self.problem = prepared.problem
        self.contract = prepared.contract
        self.vary = "transform" in checks
        self.select = {"transform", "selection"} <= checks
        self.poison = "poison" in checks
        self.signed = {"transform", "precision"} <= checks
        #: What samples are made from.
        self.given = prepared.signed if self.signed else prepared.reference
        self.is_matrix = self.problem.workload == workloads.DEFAULT
        # There are enough terms for sparse rows, and the kernel takes the small ones.
        is_wide = self.contract.storage not in (*EIGHT_BITS, *INTEGERS)
        is_wide &= self.contract.exponents[0] <= -126
        is_long = self.problem.K >= oracle.LEAST_SPARSE
        #: Whether samples have sparse rows.
        self.is_sparse = self.given.norms is not None and is_long and is_wide
        self._file = f"{self.problem.workload}/samples.cu"
        blocks, allocate, problem = self.kernels.blocks, prepared.allocate, self.problem
        self.partial = self.kernels.partial
        self.results = allocate(4 * 8 * _RESULTS)
        self.saved = allocate(8 * (problem.N + 1))
        self._aside: Buffer | None = None  # a column of A or all of it, while it is NaN
        self._is_hashed = False
        self._hashes: list[partial[None]] = []  # of the memory of the last launches
        self._orders: Buffer | None = None  # where the order of a product is, with its parts
        self._order: list[Buffer] = []
        self._drawn: tuple[Draw, int] | None = None  # the sample that it is of, and its key
        self._hashed: tuple[Draw, int] | None = None  # the same, if a hash shows that it still is
        self._sealed: list[tuple[Draw, int, bool, int]] = []
        self._verdicts: list[SampleCheck] = []
        if self.is_matrix:
            lines = 4 * (problem.M + problem.N + problem.K)
            sizes = [*(lines for _ in matmul.DrawnOrder._fields), 4 * _PLACES]
            starts = [0, *itertools.accumulate(aligned(size) for size in sizes)]
            self._orders = allocate(starts[-1])
            self._order = list(map(self._orders.view, starts, sizes))
            self._figures = allocate(5 * 8 * blocks * THREADS)
        else:
            self._sums = allocate(8 * _SUMS * blocks)

    def draw(self, key: int) -> Draw:
        """The sample of a key."""
        return Draw(self.given, key, is_changed=True)

    def write(self, buffers: Buffers, draw: Draw) -> None:
        """Write the inputs of a launch, and poison to its workspace and to C, or what the kernel
        reads there."""
        for item in buffers.items:
            self._write(buffers, draw, _key_of(draw.key, item))
            for index in range(len(buffers.given)):
                buffers.copy(self.kernels, item, "place", index)
        if self.poison and buffers.workspace is not None:
            extent, _, _, data = buffers.workspace
            self.kernels.fill(data, 0, extent.words, UNWORKED)

    def compare(
        self, buffers: Buffers, draw: Draw, bound: oracle.Bound, *, accuracy: bool = False
    ) -> None:
        """Compare C after a launch, each product of a batch with its own."""
        trial, blocks, problem, N = draw.trial, self.kernels.blocks, self.problem, self.problem.N
        bound = _EXACT if trial.is_exact and not draw.is_changed else bound
        varied = int(self.vary and draw.is_changed)
        for item in buffers.items:
            buffers.copy(self.kernels, item, "take")
            key = _key_of(draw.key, item)
            compared, C = blocks, buffers.C
            if self.is_matrix:
                assert trial.R is not None
                assert trial.S is not None
                (R, R_key), (S, S_key) = trial.R, trial.S
                self._draw_order(draw, key)
                contents = C.data if trial.C is None else trial.C
                norms = trial.norms or (self.partial, self.partial)
                has_S = not (draw.is_changed and self.is_sparse and bound.is_of_T)
                self._start(
                    "matrix_compare", C.data, R, S, R_key, S_key, int(S is R), *trial.inputs,
                    contents, int(trial.C is not None), *self._order, *self._scales(trial), *norms,
                    int(draw.is_changed and trial.norms is not None), int(has_S), problem.M, N,
                    problem.K, problem.alpha, problem.beta, *bound,
                    int(selection_of(problem, self.contract)), self.partial, self._figures,
                    reads_C=True, accuracy=accuracy,
                )  # fmt: skip
            elif problem.workload == "reverse":
                place = trial.inputs[0], key, N, varied, C.data, self.partial
                self._start("reverse_compare", *place)
            else:
                sums, compared = self._sums, 1
                ends = trial.inputs[0], trial.inputs[-1]  # the same if there is one
                self._start(f"{problem.workload}_sums", *ends, key, N, varied, sums)
                self._start(
                    "sum_compare", C.data, C.extent.words, int(trial.dtype == np.float32), sums,
                    blocks, int(self.signed and draw.is_changed), bound.of_S, bound.of_T,
                    bound.added, self.partial, size=1,
                )  # fmt: skip
            # Add up what the blocks report, and seal it against forgery.
            if len(self._sealed) == _RESULTS:
                self._verdicts = self.verdicts()
            seal, hashed, self._is_hashed = secrets.randbits(64), self._is_hashed, False
            self.kernels.start(
                "memory.cu", "seal", self.partial, blocks, compared, int(hashed), seal,
                self.results, len(self._sealed), problem.M * N, oracle.MOST_EXCESS, size=1,
            )  # fmt: skip
            self._sealed.append((draw, seal, hashed, item))

    def hash_before(self, sets: Sequence[Buffers], *, with_inputs: bool = True) -> None:
        """Hash the memory of some launches but their results, with their inputs written; or, if an
        input will change, only what lies around them."""
        without: dict[Arena, list[Guarded]] = {}
        for buffers in sets:
            left_out = buffers.results if with_inputs else buffers.passed
            for arena in buffers.arenas:
                own = [matrix for matrix in left_out if matrix.arena is arena]
                without.setdefault(arena, []).extend(own)
        key = secrets.randbits(64)
        self._hashes = []
        for number, (arena, matrices) in enumerate(without.items()):
            also = None if number else self._orders
            self._hashes.append(partial(arena.hash, key, matrices, more=number > 0, also=also))
            self._hashes[-1](part=_BEFORE)

    def hash_after(self) -> None:
        """The same after them; the next verdict says whether anything has changed."""
        for start in self._hashes:
            start(part=_AFTER)
        self._is_hashed, self._hashed = True, self._drawn

    def changed_input(self, buffers: Buffers, draw: Draw) -> str | None:
        """Which input of the last launch is another one now, in words; C is lost."""
        names = [matrix for matrix in buffers.passed if matrix not in buffers.results]
        found = [matrix.contents() for matrix in names]
        self.write(buffers, draw)
        for matrix, words in zip(names, found, strict=True):
            places = np.flatnonzero(words != matrix.contents())
            if places.size:
                s, name = "s" if places.size > 1 else "", matrix.extent.name
                count = f"{places.size:,} element{s}, the first at offset {places[0]:,}"
                return f"changed its input {name}: {count}"
        return None

    def accuracy(self, C: oracle.Array, trial: DeviceTrial, bound: oracle.Bound) -> Accuracy:
        """The errors of C on a trial that was just compared with `accuracy`; C is read for vectors
        only."""
        if trial.is_exact:
            return oracle.UNKNOWN
        if not self.is_matrix:
            return oracle.accuracy(C, trial.on_host(), bound)
        figures = np.empty((5, self.kernels.blocks * THREADS), np.float64)
        self.backend.read(self._figures, figures)
        wild, largest, total, nonzero, share = figures
        if wild.any():
            return oracle.UNKNOWN
        return oracle.accuracy_of(
            float(largest.max()), float(total.sum()), int(nonzero.sum()), float(share.max())
        )

    @contextlib.contextmanager
    def altered(self) -> Iterator[None]:
        """A random number of A is 0 in all inputs that are written meanwhile, and in what is
        expected of them."""
        problem, trial = self.problem, self.given
        rows, terms, columns = 1, problem.N, 0
        R, R_key = self.saved, 0
        if self.is_matrix:
            assert trial.R is not None
            rows, terms, columns, (R, R_key) = problem.M, problem.K, problem.N, trial.R
        where = secrets.randbelow(rows), secrets.randbelow(terms), terms, columns, problem.alpha
        given = trial.inputs[0], trial.inputs[-1], R, R_key, *where, *self._scales(trial)
        self._start("alter", *given, 0, self.saved, size=1)
        try:
            yield
        finally:
            self._start("alter", *given, 1, self.saved, size=1)

    def set_aside(
        self, buffers: Buffers, kernel: Kernel, *, whole: bool = False
    ) -> Callable[[], None]:
        """Make a random column of A NaN, as this kernel stores it, or the `whole` A; returns what
        puts it back."""
        A = buffers.given[0]
        if whole:
            count = A.extent.words  # with the padding, which is a kernel's own
            steps = count, count, 0, 0, 1
        else:
            place = kernel_arguments.matrix(kernel, self.problem, "A").place
            count = self.problem.M * self.problem.batch
            first = secrets.randbelow(self.problem.K) * place.column_step
            steps = self.problem.M, count, place.lines * place.pitch, first, place.row_step
        params = {"WORD_BYTES": A.extent.word_bytes}
        nbytes = A.extent.word_bytes * count
        if self._aside is None or self._aside.nbytes < nbytes:
            self._aside = self.prepared.allocate(nbytes)
        start = partial(self.kernels.start, "places.cu", "set_aside", A.data, self._aside, *steps)
        start(0, size=count, params=params)
        return partial(start, 1, size=count, params=params)

    def verdicts(self) -> list[SampleCheck]:
        """The verdicts since the last call, in order."""
        if self._sealed:
            words = np.empty((_RESULTS, 4), np.uint64)
            self.backend.read(self.results, words)
            for (draw, seal, hashed, item), row in zip(self._sealed, words.tolist(), strict=False):
                wrong, first, change = (word ^ drawn(seal, n) for n, word in enumerate(row[:3]))
                forged = row[3] != drawn(drawn(drawn(seal, wrong), first), change)
                place = None if first == _NONE or forged else first
                touched = hashed and change != 0
                verdict = SampleCheck(draw, max(wrong, forged), place, forged, touched, item)
                self._verdicts.append(verdict)
            self._sealed = []
        verdicts, self._verdicts = self._verdicts, []
        return verdicts

    def trial(self, buffers: Buffers, draw: Draw, item: int = 0) -> oracle.Trial:
        """The inputs of a launch, written again and read back, with their expected C; what is in C
        is lost."""
        if not draw.is_changed:
            return draw.trial.on_host()
        problem, contract, storage = self.problem, self.contract, self.contract.storage
        self._write(buffers, draw, _key_of(draw.key, item))
        of_integers = {"cubes": cubes.trial, "reverse": reverse.trial}.get(problem.workload)
        if of_integers is not None:
            return of_integers("sample", buffers.inputs[0].contents().view("i4"))
        kind = np.float64 if storage == "float64" else np.float32
        a, b = (decoded(one.contents(), storage).astype(kind) for one in buffers.inputs)
        if problem.workload == "dot":
            return dot.sample_trial(a, b, typical=self.signed)
        made = oracle.Trial("sample", (a, b))
        if contract.scales is not None:
            factors = []
            for name, matrix, at in zip("AB", buffers.scales, buffers.scale_places, strict=True):
                rows, columns = map(np.arange, scaling.shape(contract.scales, name, problem))
                offsets = np.add.outer(rows * at.row_step, columns * at.column_step)
                factors.append(matrix.contents().view("f4").ravel()[offsets])
            made = made._replace(scales=(factors[0], factors[1]))
        count = problem.M + problem.N + problem.K
        order = matmul.DrawnOrder(*(np.empty(count, kind) for kind in ("i4", "f4", "i4")))
        for buffer, values in zip(self._order, order, strict=False):
            self.backend.read(buffer, values)
        return matmul.sample_trial(problem, contract, draw.trial.on_host(), made, order)

    # -- launches of `samples.cu` --------------------------------------------------------------

    def _scales(self, trial: DeviceTrial) -> tuple[Argument, ...]:
        """The scales that inputs are made from, whether there are any, and what has one."""
        groups = scaling.GROUPS[self.contract.scales]
        scales = trial.scales or (self.partial, self.partial)
        return *scales, int(trial.scales is not None), *groups

    def _draw_order(self, draw: Draw, key: int) -> None:
        """Draw the order of a product, unless it is there, and a hash shows that no kernel has
        overwritten it."""
        if self._hashed == (draw, key):
            return
        self._hashed, self._drawn = None, (draw, key)
        problem, is_sample = self.problem, draw.is_changed
        up, down = oracle.shifts(self.contract)
        switches = (int(is_sample and on) for on in (self.vary, self.select, self.is_sparse))
        sizes, groups = (problem.M, problem.N, problem.K), scaling.GROUPS[self.contract.scales]
        self._start("draw_order", key, *sizes, up, down, *switches, *groups, *self._order)

    def _write(self, buffers: Buffers, draw: Draw, key: int) -> None:
        trial, C, problem, self._hashed = draw.trial, buffers.C, self.problem, None
        poisoned = C.extent.words * C.extent.word_bytes // 4 if self.poison else 0
        to_C = C.data, poisoned, UNWRITTEN
        given, made = trial.inputs, [matrix.data for matrix in buffers.inputs]
        if not self.is_matrix:
            most = min(oracle.shifts(self.contract))
            how = key, problem.N, most, int(self.vary and draw.is_changed), made[0], made[-1]
            self._start(f"{problem.workload}_inputs", given[0], given[-1], *how, *to_C)
            return
        self._draw_order(draw, key)
        origin, factor, *_ = self._order
        sizes = problem.M, problem.N, problem.K
        self._start("matrix_inputs", *given, *self._order, *made, *sizes, *to_C)
        if buffers.scales:
            of_A, of_B, _, *groups = self._scales(trial)
            steps = [s for at in buffers.scale_places for s in (at.row_step, at.column_step)]
            targets = (scales.data for scales in buffers.scales)
            where = of_A, of_B, origin, factor, *sizes, *groups, *steps, *targets
            self._start("matrix_scales", *where)
        if trial.C is not None:
            where = trial.C, origin, factor, problem.M, problem.N, C.data
            self._start("matrix_contents", *where, reads_C=True)

    def _start(
        self,
        entry: str,
        *arguments: Argument,
        size: int = ANY,
        reads_C: bool = False,
        accuracy: bool = False,
    ) -> None:
        """Launch a kernel for the inputs' storage type, and for the type of C if it reads it."""
        kind = self.contract.storage
        params = {} if kind == "float32" else {kind.upper(): 1, "WORD_BYTES": WORD_BYTES[kind]}
        if reads_C:
            params |= {"f8": {"DOUBLE_C": 1}, "i4": {"INT_C": 1}}.get(self.given.dtype.str[1:], {})
        if accuracy:
            params |= {"ACCURACY": 1}
        self.kernels.start(self._file, entry, *arguments, size=size, params=params)


def _key_of(key: int, item: int) -> int:
    return key if item == 0 else drawn(key, 1000 + item)


def mixed(x: int) -> int:
    """splitmix64's finalizer: a bijection of 64-bit words."""
    x = (x + 0x9E3779B97F4A7C15) & _NONE
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _NONE
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _NONE
    return x ^ (x >> 31)


def drawn(key: int, index: int) -> int:
    """The random 64-bit word at an index, for a key; as in `draws.cuh`."""
    return mixed(key ^ mixed(index))
