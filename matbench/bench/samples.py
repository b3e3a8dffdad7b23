"""New inputs for each launch, and the verdict on its result; all on the device.

All randomness follows from a 64-bit key, so that any launch can be repeated. Inputs are changed in
ways whose effect on the result is known exactly; `samples.cu` here and of each workload have the
details. No two launches have the same inputs, and all of each result is compared: a kernel that
skips work, or keeps results, is wrong.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from matbench import workloads
from matbench.backends import Argument, Buffer
from matbench.bench import launcher
from matbench.bench.judge import UNWRITTEN, DeviceTrial, Guarded, between, guards, of_C
from matbench.bench.layouts import Buffers
from matbench.bench.prepared import Prepared
from matbench.model import Kernel, Launch, MatrixLayout, Storage
from matbench.workloads import oracle, scaling
from matbench.workloads.cubes import trials as cubes
from matbench.workloads.dot import trials as dot
from matbench.workloads.matmul import trials as matmul
from matbench.workloads.matmul.trials import has_sparse_rows, selection_of
from matbench.workloads.reverse import trials as reverse
from matbench.workloads.rounding import decoded

_THREADS = 256
_BLOCKS = {"gpu": 8, "cpu": 4}  # of each multiprocessor
_RESULTS = 64  # verdicts read back at once
_SUMS = 4
_PLACES = 2 * oracle.SPARSE_TERMS  # of terms in sparse rows
_NONE = 2**64 - 1
#: Programs that depend on the type of C.
_OF_C = ("matrix_contents", "matrix_compare")
#: The kernels that compare C; a sum is compared by one block.
_COMPARED_BY = {
    "matmul": ("matrix_compare",),
    "dot": ("dot_sums", "sum_compare"),
    "cubes": ("cubes_sums", "sum_compare"),
    "reverse": ("reverse_compare",),
}


class SampleCheck(NamedTuple):
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


class Samples:
    """The launches on one prepared problem. Any of the switches is false only in controls."""

    def __init__(
        self,
        prepared: Prepared,
        *,
        vary: bool = True,
        select: bool = True,
        poison: bool = True,
        signed: bool = True,
    ) -> None:
        self.prepared = prepared
        self.judge = prepared.judge
        self.backend = prepared.backend
        self.problem = prepared.problem
        self.contract = prepared.contract
        self._is_matrix = self.problem.workload == workloads.DEFAULT
        self.vary = vary
        self.select = select
        self.poison = poison
        self.signed = signed and vary
        info = self.backend.info
        self.blocks = _BLOCKS[info.kind] * info.limits["multiprocessors"]
        self.partial = prepared.allocate(3 * 8 * self.blocks)
        self.results = prepared.allocate(3 * 8 * _RESULTS)
        self._column: Buffer | None = None  # of A, while it is NaN
        self.saved = prepared.allocate(8 * (self.problem.N + 1))
        self._sealed: list[tuple[int, int, str | None, int]] = []
        self._verdicts: list[SampleCheck] = []
        self._order: list[Buffer] = []
        self._known = self._arguments_of_all()

    @property
    def is_full(self) -> bool:
        """Whether verdicts must be read before more launches can be compared."""
        return len(self._sealed) == _RESULTS

    def write(self, buffers: Buffers, key: int) -> None:
        """Write new inputs for a launch, and poison to C."""
        for item in buffers.items:
            self._write(buffers, _key_of(key, item))
            buffers.place(self.judge, item)

    def compare(self, buffers: Buffers, key: int, bound: oracle.Bound) -> None:
        """Compare C after a launch, each product of a batch with its own."""
        for item in buffers.items:
            buffers.take(self.judge, item)
            arguments = self._drawn(buffers, _key_of(key, item)) | bound._asdict()
            if self._known.get("sparse_rows") and bound.is_of_T:
                arguments["has_S"] = 0
            *sums, compare = _COMPARED_BY[self.problem.workload]
            for entry in sums:
                self._start(entry, arguments)
            blocks = 1 if sums else self.blocks
            self._start(compare, arguments, grid=blocks)
            self._seal(key, blocks=blocks, item=item)

    @contextlib.contextmanager
    def altered(self) -> Iterator[None]:
        """A random number of A is 0 in all inputs that are written meanwhile, and in what is
        expected of them."""
        problem = self.problem
        rows, terms = (problem.M, problem.K) if self._is_matrix else (1, problem.N)
        place: dict[str, Argument] = {
            "row": secrets.randbelow(rows), "term": secrets.randbelow(terms), "terms": terms,
            "columns": problem.N if self._is_matrix else 0, "saved": self.saved,
        }  # fmt: skip
        arguments: dict[str, Argument] = {
            "R": self.saved, "R_key": 0, **self._known, **place, "B": self._given.inputs[-1]
        }  # fmt: skip
        self._start("alter", arguments | {"back": 0}, grid=1)
        try:
            yield
        finally:
            self._start("alter", arguments | {"back": 1}, grid=1)

    def set_aside(self, buffers: Buffers, kernel: Kernel) -> Callable[[], None]:
        """Make a random column of A NaN, as this kernel stores it; returns what puts it back."""
        place = launcher.matrix(kernel, self.problem, "A").place
        A = buffers.given[0]
        count = self.problem.M * self.problem.batch
        if self._column is None:
            self._column = self.prepared.allocate(A.word_bytes * count)
        arguments: dict[str, Argument] = {
            "own": A.data, "column": self._column, "rows": self.problem.M, "count": count,
            "item_step": place.lines * place.pitch, "row_step": place.row_step,
            "start": secrets.randbelow(self.problem.K) * place.column_step,
        }  # fmt: skip
        blocks = min(self.blocks, -(-count // _THREADS))
        launch = Launch(grid=(blocks, 1, 1), block=(_THREADS, 1, 1))
        params = {} if A.word_bytes == 4 else {"WORD_BYTES": A.word_bytes}

        def start(back: int) -> None:
            self.judge.run("set_aside", "places.cu", launch, {**arguments, "back": back}, params)

        start(0)
        return lambda: start(1)

    def compare_guards(self, buffers: Buffers, key: int) -> None:
        """Whether a launch wrote outside its matrices; the guards are restored."""
        for matrix in buffers.passed:
            # A number of 8 bytes is two words; one of 2 bytes is a word of bfloat16.
            storages: dict[int, Storage] = {1: "int8", 2: "bfloat16"}
            storage = storages.get(matrix.word_bytes, "float32")
            if matrix.guard_words:
                self._start("guards_changed", guards(matrix), storage=storage)
                self._seal(key, outside=matrix.name)
            if matrix.pitch > matrix.width and (matrix.guard_words or matrix.start):
                self._start("between_changed", between(matrix), storage=storage)
                self._seal(key, outside=matrix.name)

    def changed_inputs(self, buffers: Buffers, key: int) -> SampleCheck | None:
        """The verdict on inputs that changed since `write`; None if none did."""
        before = self.verdicts()
        for item in buffers.items:
            buffers.take_inputs(self.judge, item)
            self._start(f"{self._inputs}_changed", self._drawn(buffers, _key_of(key, item)))
            self._seal(key)
        verdicts = self.verdicts()
        self._verdicts = before
        return next((verdict for verdict in verdicts if verdict.wrong), None)

    def verdicts(self) -> list[SampleCheck]:
        """The verdicts since the last call, in order."""
        if self._sealed:
            words = np.empty((_RESULTS, 3), np.uint64)
            self.backend.read(self.results, words)
            for (key, seal, outside, item), row in zip(self._sealed, words.tolist(), strict=False):
                wrong, first = row[0] ^ drawn(seal, 0), row[1] ^ drawn(seal, 1)
                forged = row[2] != drawn(drawn(seal, wrong), first)
                place = None if first == _NONE or forged else first
                verdict = SampleCheck(key, max(wrong, forged), place, forged, outside, item)
                self._verdicts.append(verdict)
            self._sealed = []
        verdicts, self._verdicts = self._verdicts, []
        return verdicts

    def trial(self, buffers: Buffers, key: int, item: int = 0) -> oracle.Trial:
        """The inputs of a launch, written again and read back, with their expected C; what is in C
        is lost."""
        problem, contract, storage = self.problem, self.contract, self.contract.storage
        self._write(buffers, _key_of(key, item))
        of_integers = {"cubes": cubes.trial, "reverse": reverse.trial}.get(problem.workload)
        if of_integers is not None:
            return of_integers("sample", self._read(buffers.inputs[0], "i4"))
        kind = np.float64 if storage == "float64" else np.float32
        a, b = (
            decoded(self._read(matrix, f"u{matrix.word_bytes}"), storage).astype(kind)
            for matrix in buffers.inputs
        )
        if problem.workload == "dot":
            return dot.sample_trial(a, b, typical=self.signed)
        made = oracle.Trial("sample", (a, b))
        if buffers.scales:
            made = made._replace(scales=self._read_scales(buffers))
        count = problem.M + problem.N + problem.K
        order = matmul.DrawnOrder(*(np.empty(count, kind) for kind in ("i4", "f4", "i4")))
        for buffer, values in zip(self._order, order, strict=True):
            self.backend.read(buffer, values)
        return matmul.sample_trial(problem, contract, self._given.on_host(), made, order)

    def _read(self, matrix: Guarded, dtype: str) -> oracle.Array:
        values = np.empty((matrix.words // matrix.pitch, matrix.pitch), dtype)
        self.backend.read(matrix.data, values)
        return values

    def _read_scales(self, buffers: Buffers) -> tuple[oracle.Float32, oracle.Float32]:
        def scales(name: str, matrix: Guarded, place: MatrixLayout) -> oracle.Float32:
            assert self.contract.scales is not None
            shape = scaling.shape(self.contract.scales, name, self.problem)
            rows, columns = map(np.arange, shape)
            offsets = np.add.outer(rows * place.row_step, columns * place.column_step)
            values: oracle.Float32 = self._read(matrix, "f4").ravel()[offsets]
            return values

        of_A, of_B = map(scales, "AB", buffers.scales, buffers.scale_places)
        return of_A, of_B

    # -- launches of `samples.cu` --------------------------------------------------------------

    @property
    def _given(self) -> DeviceTrial:
        """What samples are made from."""
        return self.prepared.signed if self.signed else self.prepared.reference

    @property
    def _inputs(self) -> str:
        """The kernel that writes inputs."""
        return "matrix_inputs" if self._is_matrix else f"{self.problem.workload}_inputs"

    def _arguments_of_all(self) -> dict[str, Argument]:
        """The arguments of kernels that are the same for all launches."""
        problem, trial = self.problem, self._given
        up, down = oracle.shifts(self.contract)
        known: dict[str, Argument] = {
            "M": problem.M, "N": problem.N, "K": problem.K,
            "alpha": problem.alpha, "beta": problem.beta,
            "up": up, "down": down, "most": min(up, down),
            "vary": int(self.vary), "select": int(self.select), "poison": UNWRITTEN,
            "partial": self.partial, "sealed": self.results, "blocks": self.blocks,
            "floats": int(trial.dtype == np.float32),
            "elements": problem.M * problem.N, "most_excess": oracle.MOST_EXCESS,
        }  # fmt: skip
        known |= zip(workloads.workload_of(problem).reads, trial.inputs, strict=True)
        allocate = self.prepared.allocate
        of_A, of_B = trial.scales or (self.partial, self.partial)
        groups = scaling.groups(self.contract.scales)
        known |= {
            "scales_A": of_A, "scales_B": of_B, "scaled": int(trial.scales is not None),
            "scaled_rows": groups.rows, "scaled_columns": groups.columns,
            "scaled_terms": groups.terms,
        }  # fmt: skip
        if not self._is_matrix:
            sums = allocate(8 * _SUMS * self.blocks)
            return known | {"sums": sums, "typical": int(self.signed)}
        assert trial.R is not None
        assert trial.S is not None
        (R, R_key), (S, S_key) = trial.R, trial.S
        order_bytes = 4 * (problem.M + problem.N + problem.K)
        self._order = [allocate(order_bytes) for _ in matmul.DrawnOrder._fields]
        rows, columns = trial.norms or (self.partial, self.partial)
        is_sparse = trial.norms is not None and has_sparse_rows(problem, self.contract)
        return known | {
            **dict(zip(("from", "factor", "selects"), self._order, strict=True)),
            "R": R, "R_key": R_key, "S": S, "S_key": S_key, "S_is_R": int(S is R),
            "exact": int(selection_of(problem, self.contract)),
            "reads": int(trial.C is not None),
            "row_norms": rows, "column_norms": columns, "typical": int(trial.norms is not None),
            "sparse_rows": int(is_sparse), "places": allocate(4 * _PLACES), "has_S": 1,
        }  # fmt: skip

    def _drawn(self, buffers: Buffers, key: int) -> dict[str, Argument]:
        """The arguments of kernels for one launch, and the order of a matrix product for its key,
        made each time because a kernel may have overwritten it."""
        C, contents = buffers.C, self._given.C
        arguments: dict[str, Argument] = {
            **{matrix.name.lower(): matrix.data for matrix in buffers.inputs},
            "key": key,
            "C": C.data,
            "C_words": C.words,
            "contents": C.data if contents is None else contents,
        }
        if self._is_matrix:
            self._start("draw_order", arguments)
        return arguments

    def _write(self, buffers: Buffers, key: int) -> None:
        arguments, C = self._drawn(buffers, key), buffers.C
        poisoned = C.words * C.word_bytes // 4 if self.poison else 0
        self._start(self._inputs, {**arguments, "C_words": poisoned})
        if buffers.scales:
            self._start("matrix_scales", arguments | _scales_of(buffers))
        if self._given.C is not None:
            self._start("matrix_contents", arguments)

    def _start(
        self,
        entry: str,
        arguments: Mapping[str, Argument],
        *,
        grid: int | None = None,
        storage: Storage | None = None,
    ) -> None:
        """Launch a kernel for the inputs' storage type or another."""
        kind = storage or self.contract.storage
        params = {kind.upper(): 1} if kind not in ("float32", "int32") else {}
        if entry in _OF_C:
            params |= of_C(self._given.dtype)
        launch = Launch(grid=(grid or self.blocks, 1, 1), block=(_THREADS, 1, 1))
        file = f"{self.problem.workload}/samples.cu"
        self.judge.run(entry, file, launch, {**self._known, **arguments}, params)

    def _seal(
        self, key: int, *, blocks: int | None = None, outside: str | None = None, item: int = 0
    ) -> None:
        """Add up the results of the comparing blocks, and seal them against forgery."""
        if self.is_full:
            self._verdicts = self.verdicts()
        seal = secrets.randbits(64)
        place = {"key": seal, "place": len(self._sealed), "blocks": blocks or self.blocks}
        self._start("seal", place, grid=1)
        self._sealed.append((key, seal, outside, item))


def _scales_of(buffers: Buffers) -> dict[str, Argument]:
    """Where the scales of a launch are, and how they lie."""
    arguments: dict[str, Argument] = {}
    for scales, place, side in zip(buffers.scales, buffers.scale_places, "ab", strict=True):
        arguments |= {
            scales.name: scales.data,
            f"row_step_{side}": place.row_step,
            f"column_step_{side}": place.column_step,
        }
    return arguments


def _key_of(key: int, item: int) -> int:
    """The key of one product of a batch."""
    return key if item == 0 else drawn(key, 1000 + item)


def mixed(x: int) -> int:
    """splitmix64's finalizer: a bijection of 64-bit words."""
    x = (x + 0x9E3779B97F4A7C15) & _NONE
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _NONE
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _NONE
    return x ^ (x >> 31)


def drawn(key: int, index: int) -> int:
    """The random 64-bit word at an index, for a key; as in `device_code/draws.cu`."""
    return mixed(key ^ mixed(index))


def keys(seed: int) -> Iterator[int]:
    """The keys of successive launches, from a seed."""
    return (drawn(seed, index) for index in itertools.count())
