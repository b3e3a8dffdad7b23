"""Verifies C on the device: comparisons, guarded buffers, poison.

Every buffer that a kernel may touch lies between guard bands of NaNs that arithmetic cannot make.
An out-of-bounds write changes a guard; an out-of-bounds read returns a NaN, which multiplying by
zero does not remove. Expected results are masked with random keys that only comparisons receive.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.backends import Argument, Backend, Buffer, Program
from matbench.bench.launcher import Memory
from matbench.errors import BuildError, CaseError
from matbench.kernelfile import signature
from matbench.model import Kernel, Launch, LaunchRules, NumericContract, Storage
from matbench.workloads import oracle
from matbench.workloads.rounding import stored

# Quiet NaNs with payloads that arithmetic does not make. Each place has its own: some devices keep
# payloads in arithmetic, so a stray value written to a guard must differ from the guard, and the
# payload of a NaN in C shows where it came from. Two equal ones are a NaN as a float64, too.
#: C before a launch.
UNWRITTEN = 0x7FF8DEAD
#: The guards around C.
OUTSIDE_C = 0x7FF8C0DE
#: The guards around A and B.
OUTSIDE_INPUTS = 0x7FF8A5B5
#: Shared memory before a launch.
UNSHARED = 0x7FF85EED
#: A workspace before a launch, and the guards around it. Their halves are NaNs of 16 bits, too.
UNWORKED = 0x7FF87FDB
OUTSIDE_WORKSPACE = 0x7FF87FD5
#: The same for matrices of 16 bits: NaN as bfloat16 and as float16.
#: Bytes are NaN in both 8-bit floating-point types; as int8 they are its largest number.
UNWRITTEN_NARROW = 0x7FDE
OUTSIDE_C_NARROW = 0x7FC3
OUTSIDE_NARROW = 0x7FC1
OUTSIDE_BYTES = 0x7F
_ALIGNMENT_BYTES = 4096  # views start at multiples of it
#: So many that far out-of-bounds writes are noticed and do not reach other buffers.
GUARD_ROWS = 256
_LEAST_GUARD_WORDS = 2**16
_LARGEST_GUARD_WORDS = 2**22
_THREADS = 256
_MOST_BLOCKS = 128
_NO_PARAMS: Mapping[str, int] = MappingProxyType({})
_FOLDER = Path(__file__).parent / "device_code"
_WORKLOADS = Path(workloads.__file__).parent
_SAMPLES = ("elements.cu", "draws.cu", "samples.cu")
#: The files that are put before a file when it is compiled.
_BEHIND = {
    "judge.cu": ("elements.cu", "draws.cu"),
    "matmul/samples.cu": _SAMPLES,
    **{f"{name}/samples.cu": (*_SAMPLES, "vectors.cu") for name in ("dot", "cubes", "reverse")},
    "places.cu": ("elements.cu",),
}


class Difference(NamedTuple):
    """How many words differ, and the first of them."""

    words: int
    first: int | None


class Guarded(NamedTuple):
    """A matrix on the device between two guard bands; `data` is what a kernel receives.

    A word is one number, of 2, 4 or 8 bytes. If its lines of `width` words begin `pitch` words
    apart, the words between them are guards, too. In an arena `start` is its first page.
    """

    name: str
    raw: Buffer
    data: Buffer
    words: int
    word_bytes: int
    guard_words: int
    guard: int
    width: int = 1
    pitch: int = 1
    start: int = 0


class Answer(NamedTuple):
    """The expected C, or the size of its terms, masked on the device with a key."""

    masked: Buffer
    key: int


class DeviceTrial(NamedTuple):
    """An uploaded trial. The host keeps no expected results, which a CPU kernel could read.

    `on_host` makes them again. `shape` and `dtype` are C's.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    on_host: Callable[[], oracle.Trial]
    inputs: tuple[Buffer, ...]
    exact: Answer | None = None
    R: Answer | None = None
    S: Answer | None = None
    C: Buffer | None = None
    scales: tuple[Buffer, Buffer] | None = None
    norms: tuple[Buffer, Buffer] | None = None


class Seal(NamedTuple):
    """A buffer that must not change, and the sum of its words hashed with a key."""

    buffer: Buffer
    key: int
    total: int


class Comparator:
    """The device-side comparisons of one backend, built once and cached."""

    def __init__(self, backend: Backend, *, masked: bool = True) -> None:
        self.backend = backend
        self.masked = masked  # false in controls
        self.programs: dict[tuple[object, ...], Program] = {}
        try:
            self.program("compare_reference", "judge.cu")
        except BuildError as error:
            raise CaseError(
                f"cannot check results on {backend.info.label}, which needs float64: {error.reason}"
            ) from None
        units = backend.info.limits["multiprocessors"]
        # Each thread's result is read back, so there are no more threads than needed.
        self.most_blocks = _MOST_BLOCKS if backend.info.kind == "gpu" else 4 * units
        self.partial = backend.allocate(7 * 8 * self.most_blocks * _THREADS)
        self.sink = backend.allocate(4)

    def close(self) -> None:
        for buffer in (self.partial, self.sink):
            self.backend.release(buffer)

    def program(self, entry: str, file: str, params: Mapping[str, int] = _NO_PARAMS) -> Program:
        """A kernel of `device_code`, built once."""
        key = entry, tuple(params.items())
        if key not in self.programs:
            self.programs[key] = self.backend.build(device_kernel(file, entry), dict(params))
        return self.programs[key]

    def run(
        self,
        entry: str,
        file: str,
        launch: Launch,
        arguments: Mapping[str, Argument],
        params: Mapping[str, int] = _NO_PARAMS,
    ) -> None:
        """Launch a kernel of `device_code`, which takes the arguments that its parameters name."""
        named = [arguments[parameter.name] for parameter in device_kernel(file, entry).parameters]
        self.program(entry, file, params).launch(launch, named)

    def _run(
        self,
        entry: str,
        size: int,
        params: Mapping[str, int] = _NO_PARAMS,
        /,
        **arguments: Argument,
    ) -> Launch:
        """Launch a kernel of `judge.cu` on so many words."""
        blocks = min(self.most_blocks, max(1, -(-size // _THREADS)))
        launch = Launch(grid=(blocks, 1, 1), block=(_THREADS, 1, 1))
        known: dict[str, Argument] = {"count": size, "partial": self.partial}
        self.run(entry, "judge.cu", launch, known | arguments, params)
        return launch

    def _rows(self, launch: Launch, rows: int) -> npt.NDArray[np.float64]:
        partial = np.empty((rows, launch.blocks * _THREADS), np.float64)
        self.backend.read(self.partial, partial)
        return partial

    def fill(self, buffer: Buffer, start: int, count: int, value: int, word_bytes: int = 4) -> None:
        """Write `value` into words `start` to `start + count` of a buffer."""
        start, count = _halves(word_bytes, start, count)
        if count:
            params = _word(word_bytes)
            self._run("fill_words", count, params, words=buffer, start=start, value=value)

    def poison(self, matrix: Guarded, value: int) -> None:
        """Write `value` into every word of a matrix."""
        self.fill(matrix.raw, matrix.guard_words, matrix.words, value, matrix.word_bytes)

    def differing(self, matrix: Guarded, expected: Buffer) -> Difference:
        """The words of a matrix that differ in any bit."""
        (words,) = _halves(matrix.word_bytes, matrix.words)
        params = _word(matrix.word_bytes)
        launch = self._run("compare_words", words, params, words=matrix.data, expected=expected)
        return _whole(matrix.word_bytes, _difference(self._rows(launch, 2)))

    def not_filled(
        self, buffer: Buffer, start: int, count: int, value: int, word_bytes: int = 4
    ) -> Difference:
        """The words of a range that no longer hold `value`."""
        start, count = _halves(word_bytes, start, count)
        params = _word(word_bytes)
        launch = self._run("compare_fill", count, params, words=buffer, start=start, value=value)
        return _whole(word_bytes, _difference(self._rows(launch, 2)))

    def guarded(
        self,
        memory: Memory,
        name: str,
        shape: tuple[int, int],
        value: int,
        *,
        word_bytes: int = 4,
        guard_rows: int = GUARD_ROWS,
        width: int | None = None,
    ) -> Guarded:
        """A matrix between guards of at least so many rows each, filled with `value`; 0: without.

        Of each row, only the first `width` words belong to the matrix.
        """
        rows, columns = shape
        words = rows * columns
        lines = width or columns, columns
        nbytes = word_bytes * max(words, 1)  # an empty workspace has an address, too
        if not guard_rows:
            raw = memory.allocate(nbytes)
            return Guarded(name, raw, raw, words, word_bytes, 0, value, *lines)
        alignment = _ALIGNMENT_BYTES // word_bytes
        wanted = min(max(guard_rows * columns, _LEAST_GUARD_WORDS), _LARGEST_GUARD_WORDS)
        guard = -(-wanted // alignment) * alignment
        raw = memory.allocate(word_bytes * (words + 2 * guard))
        self.fill(raw, 0, words + 2 * guard, value, word_bytes)
        data = raw.view(word_bytes * guard, nbytes)
        return Guarded(name, raw, data, words, word_bytes, guard, value, *lines)

    def broken_guard(self, matrix: Guarded) -> str | None:
        """Which guard was overwritten, and how far out of bounds; both guards are restored."""
        guard = matrix.guard_words
        if guard == 0:
            return None
        reports = []
        if matrix.pitch > matrix.width and (changed := self._changed_between(matrix)):
            reports.append(f"wrote between the rows of {matrix.name}: {changed:,} elements")
        for side, start in (("before", 0), ("after", guard + matrix.words)):
            damage = self.not_filled(matrix.raw, start, guard, matrix.guard, matrix.word_bytes)
            if damage.first is not None:
                self.fill(matrix.raw, start, guard, matrix.guard, matrix.word_bytes)
                distance = guard - damage.first if side == "before" else damage.first + 1
                reports.append(
                    f"wrote outside {matrix.name}: {damage.words:,} element"
                    f"{'s' if damage.words > 1 else ''}, starting {distance:,} {side} "
                    f"its {'start' if side == 'before' else 'end'}"
                )
        return reports[0] if reports else None

    def _changed_between(self, matrix: Guarded) -> int:
        """The number of overwritten words between the lines of a matrix; they are restored."""
        params = _word(matrix.word_bytes)
        launch = self._run("compare_between", matrix.words, params, **between(matrix))
        return -(-_difference(self._rows(launch, 2)).words * 4 // max(4, matrix.word_bytes))

    def upload(
        self,
        memory: Memory,
        trial: oracle.Trial,
        contract: NumericContract,
        on_host: Callable[[], oracle.Trial],
    ) -> DeviceTrial:
        """Copy a trial to the device; S shares R's buffer if they are the same array."""

        def answer(array: oracle.Array) -> Answer:
            key = secrets.randbits(64) if self.masked else 0
            buffer = memory.upload(np.ascontiguousarray(array))
            entry = "mask_doubles" if array.dtype == np.float64 else "mask_words"
            self._run(entry, array.size, words=buffer, key=key)
            return Answer(buffer, key)

        expected = trial.expected
        dtype = expected.dtype
        if dtype == np.float64 and contract.result != "float64":
            dtype = np.dtype(np.int32 if contract.result == "int32" else np.float32)
        inputs = tuple(map(memory.upload, self.stored(trial, contract.storage)))
        uploaded = DeviceTrial(trial.name, expected.shape, dtype, on_host, inputs)
        if trial.C is not None:
            uploaded = uploaded._replace(C=memory.upload(trial.C.astype(dtype)))
        if trial.scales is not None:
            of_A, of_B = map(memory.upload, trial.scales)
            uploaded = uploaded._replace(scales=(of_A, of_B))
        if trial.exact is not None:
            return uploaded._replace(exact=answer(trial.exact))
        if trial.scale is not None:  # the host compares it
            answers = trial._replace(inputs=())
            return uploaded._replace(on_host=lambda: answers)
        assert trial.R is not None
        assert trial.S is not None
        R = answer(trial.R)
        return uploaded._replace(R=R, S=R if trial.S is trial.R else answer(trial.S))

    @staticmethod
    def stored(trial: oracle.Trial, storage: Storage) -> list[oracle.Array]:
        """A trial's inputs in the storage type of a kernel."""
        return [np.ascontiguousarray(_stored(array, storage)) for array in trial.inputs]

    def compare(self, C: Guarded, trial: DeviceTrial, bound: oracle.Bound) -> oracle.TrialResult:
        """The verdict of `oracle.judge` on C, found on the device unless C is in parts."""
        count = math.prod(trial.shape)
        if C.words != count:
            return oracle.judge(self.result(C, trial), trial.on_host(), bound)
        if trial.exact is not None:
            masked, key = trial.exact
            floats = int(trial.dtype == np.float32)
            launch = self._run(
                "compare_exact", count, C=C.data, expected=masked, key=key, floats=floats
            )
            wrong, first = _difference(self._rows(launch, 2))
            return oracle.TrialResult(oracle.UNKNOWN, wrong, first)
        if trial.R is None or trial.S is None:
            return oracle.judge(self.result(C, trial), trial.on_host(), bound)
        (R, R_key), (S, S_key) = trial.R, trial.S
        launch = self._run(
            "compare_reference",
            count,
            of_C(trial.dtype),
            C=C.data, R=R, S=S, R_key=R_key, S_key=S_key,
            **bound._asdict(),
        )  # fmt: skip
        rows = self._rows(launch, 7)
        wrong, first = _difference(rows)
        _, _, wild, largest, total, nonzero, share = rows
        if wild.any():
            return oracle.TrialResult(oracle.UNKNOWN, wrong, first)
        accuracy = oracle.accuracy_of(
            float(largest.max()), float(total.sum()), int(nonzero.sum()), float(share.max())
        )
        return oracle.TrialResult(accuracy, wrong, first)

    def result(self, C: Guarded, trial: DeviceTrial) -> oracle.Array:
        """C on the host, in its expected shape: the sum of its parts if it has parts."""
        if C.words == math.prod(trial.shape):
            values = np.empty(trial.shape, trial.dtype)
            self.backend.read(C.data, values)
            return values
        return oracle.total(self.parts(C, trial))

    def parts(self, C: Guarded, trial: DeviceTrial) -> oracle.Array:
        """The partial results on the host, one per block."""
        values = np.empty((1, C.words), trial.dtype)
        self.backend.read(C.data, values)
        return values

    def seal(self, buffer: Buffer) -> Seal:
        """Remember the contents of a buffer, for `is_intact`."""
        key = secrets.randbits(64)
        return Seal(buffer, key, self._hashed(buffer, key))

    def is_intact(self, seal: Seal) -> bool:
        """Whether a buffer is unchanged."""
        return self._hashed(seal.buffer, seal.key) == seal.total

    def _hashed(self, buffer: Buffer, key: int) -> int:
        word_bytes = next(size for size in (4, 2, 1) if buffer.nbytes % size == 0)
        count = buffer.nbytes // word_bytes
        launch = self._run("hash_words", count, _word(word_bytes), words=buffer, key=key)
        return self._total(launch)

    def hashed_without(self, buffer: Buffer, left_out: Buffer, page_words: int, key: int) -> int:
        """The keyed hash of a buffer without the first `left_out` words of each of its pages."""
        launch = self._run(
            "hash_pages",
            buffer.nbytes // 4,
            {"PAGE_WORDS": page_words},
            words=buffer,
            left_out=left_out,
            key=key,
        )
        return self._total(launch)

    def _total(self, launch: Launch) -> int:
        return int(self._rows(launch, 1).view(np.uint64).sum())

    def empty_launch_ns(self) -> float:
        """The median event time of launches that do nothing."""
        program = self.program("empty", "empty.cu")
        once = Launch(grid=(1, 1, 1), block=(1, 1, 1))
        times = [self.backend.time_ns(program, once, [0], cold=True) for _ in range(5)]
        return float(np.median(times))

    def clear(self) -> None:
        """Remove all traces of earlier launches from the judge's own memory."""
        self.fill(self.partial, 0, self.partial.nbytes // 4, 0)

    def hold(self, duration_ns: int) -> None:
        """Keep a CUDA device busy for about this long, counting 2 cycles per nanosecond."""
        if self.backend.info.backend == "cuda":
            once = Launch(grid=(1, 1, 1), block=(1, 1, 1))
            self.run("hold", "hold.cu", once, {"cycles": 2 * duration_ns})

    def poison_shared(self, value: int = UNSHARED) -> None:
        """Fill the shared memory of every multiprocessor with `value`."""
        limits = self.backend.info.limits
        launch = Launch(
            # Enough blocks to reach all; a CPU distributes blocks less evenly.
            grid=((2 if self.backend.info.kind == "gpu" else 8) * limits["multiprocessors"], 1, 1),
            block=(min(1024, limits["max_threads_per_block"]), 1, 1),
            shared_bytes=limits["max_shared_bytes_per_block"],
        )
        words = launch.shared_bytes // 4
        arguments: dict[str, Argument] = {"sink": self.sink, "value": value, "count": words}
        self.run("poison_shared", "poison.cu", launch, arguments)


def _word(word_bytes: int) -> Mapping[str, int]:
    """The parameters of a kernel of `judge.cu` for words of this size; 8 bytes are two words."""
    return {"WORD_BYTES": word_bytes} if word_bytes < 4 else _NO_PARAMS


def of_C(dtype: np.dtype[Any]) -> Mapping[str, int]:
    """The parameter of a kernel that reads C of this type."""
    return {"f8": {"DOUBLE_C": 1}, "i4": {"INT_C": 1}}.get(dtype.str[1:], _NO_PARAMS)


def guards(matrix: Guarded) -> dict[str, Argument]:
    """Arguments of a kernel: the words of a guard, those of the matrix, and the guards' value."""
    guard, words = _halves(matrix.word_bytes, matrix.guard_words, matrix.words)
    return {"raw": matrix.raw, "guard": guard, "words": words, "value": matrix.guard}


def between(matrix: Guarded) -> dict[str, Argument]:
    """Arguments of a kernel: the place of the words between a matrix's lines, and their value."""
    sizes = _halves(matrix.word_bytes, matrix.words, matrix.width, matrix.pitch)
    count, width, pitch = sizes
    place: dict[str, Argument] = {"count": count, "width": width, "pitch": pitch}
    return place | {"words": matrix.data, "value": matrix.guard}


def _halves(word_bytes: int, *words: int) -> tuple[int, ...]:
    """Counts of words, where a word of 8 bytes counts as two."""
    return tuple(2 * count for count in words) if word_bytes == 8 else words


def _whole(word_bytes: int, diff: Difference) -> Difference:
    if word_bytes != 8:
        return diff
    return Difference(-(-diff.words // 2), None if diff.first is None else diff.first // 2)


def _stored(array: oracle.Array, storage: Storage) -> oracle.Array:
    """Numbers in a storage type, to which they are already rounded."""
    if storage == "float16":
        most, largest = float(np.abs(array).max(initial=0)), float(np.finfo(np.float16).max)
        if most > largest:
            raise CaseError(
                f"inputs up to {most:,.0f} exceed {largest:,.0f}, the maximum of float16; "
                "use other --inputs or smaller --sizes"
            )
    return array if storage in ("float32", "float64") else stored(array, storage)


def _difference(rows: npt.NDArray[np.float64]) -> Difference:
    count, first = int(rows[0].sum()), rows[1]
    return Difference(count, int(first[first >= 0].min()) if count else None)


def device_source(file: str, folder: Path = _FOLDER) -> str:
    """The source text to compile for a file of `device_code`, or of a feature."""
    files = (*_BEHIND.get(file, ()), file)
    return "".join(_place(name, folder).read_text(encoding="utf-8") for name in files)


def _place(file: str, folder: Path) -> Path:
    """The file in this folder, or in that of the workloads."""
    return folder / file if (folder / file).is_file() else _WORKLOADS / file


@cache
def device_kernel(file: str, entry: str, folder: Path = _FOLDER) -> Kernel:
    """One of matbench's own kernels, from `device_code` or a feature."""
    source = device_source(file, folder)
    return Kernel(
        name=entry,
        summary="",
        launch=LaunchRules(block=(1,), grid=(1,)),
        entry=entry,
        source=source,
        path=_place(file, folder).relative_to(Path(__file__).parents[2]).as_posix(),
        sha256=hashlib.sha256(source.encode()).hexdigest(),
        parameters=signature.parameters(source, entry),
    )
