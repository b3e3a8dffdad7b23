"""One problem on the device: its trials, and the guarded buffers that kernels work on."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import psutil

from matbench import workloads
from matbench.backends.protocol import Buffer
from matbench.bench import kernel_arguments
from matbench.bench.device_kernels import OUTSIDE_WORKSPACE, DeviceKernels
from matbench.bench.kernel_arguments import Memory
from matbench.bench.matrices import GUARD_ROWS, Buffers, Extent, Guarded, Own, allocated
from matbench.cache import Cache
from matbench.errors import CaseError, OutOfMemoryError
from matbench.model import SCALE_OF, WORD_BYTES, Kernel, NumericContract, Placing, Problem
from matbench.workloads import oracle, scaling
from matbench.workloads.rounding import stored

#: Memory moves by a random number of these.
_STEP_BYTES, _MOST_STEPS = 4096, 256
#: How many sets of buffers are kept: a kernel's, another's that takes turns with it, and matbench's
#: own, from which those of other layouts are made.
_MOST_SETS = 3


class Answer(NamedTuple):
    """The expected C, or the size of its terms, masked on the device with a key."""

    masked: Buffer
    key: int


class DeviceTrial(NamedTuple):
    """An uploaded trial. The host keeps no expected matrix, which a CPU kernel could read.

    `on_host` makes it again. `shape` and `dtype` are C's. C is `exact` if it has no error bound.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    on_host: Callable[[], oracle.Trial]
    inputs: tuple[Buffer, ...]
    is_exact: bool
    R: Answer | None = None
    S: Answer | None = None
    C: Buffer | None = None
    scales: tuple[Buffer, Buffer] | None = None
    norms: tuple[Buffer, Buffer] | None = None


class Prepared(Memory):
    """The data shared by all cases of one problem whose kernels read their inputs alike.

    `release` gives the memory back. `is_masked` is false only in controls. `OutOfMemoryError`: the
    trials do not fit in the host's memory, or the device's.
    """

    def __init__(
        self,
        kernels: DeviceKernels,
        problem: Problem,
        contract: NumericContract,
        cache: Cache,
        *,
        guards: bool,
        is_masked: bool = True,
    ) -> None:
        needed = workloads.workload_of(problem).host_bytes(problem)
        available = psutil.virtual_memory().total
        if needed > 0.8 * available:  # before the host swaps
            raise OutOfMemoryError(
                f"out of host memory: the inputs and references of {problem.size} need "
                f"{needed:,} bytes; this machine has {available:,}"
            )
        super().__init__(kernels.backend)
        self.kernels = kernels
        self.problem = problem
        self.contract = contract
        self.cache = cache
        self.workload = workloads.workload_of(problem)
        self.is_masked = is_masked
        self._guard_rows = (1 if len(self.workload.dimensions) == 1 else GUARD_ROWS) * guards
        self.is_spoiled = False  # by a kernel that may have written anywhere
        self._sets: dict[tuple[object, ...], Buffers] = {}
        self._spacer: list[Buffer] = []
        trials = oracle.trials(problem, contract, cache)
        with contextlib.ExitStack() as unwind:
            unwind.callback(self.release)
            self.reference = self._upload(trials.reference, partial(self._again, "reference"))
            self.given = trials.given and self._upload(trials.given, partial(self._again, "given"))
            #: What samples are made from; it shares what is equal with the reference.
            self.signed = self.reference
            signed, others = trials.signed, trials.others
            if signed is not None:
                assert signed.norms is not None
                rows, columns = map(self.upload, signed.norms)
                again = partial(self._again, "signed")
                self.signed = self.signed._replace(on_host=again, norms=(rows, columns))
                if signed.R is not trials.reference.R:
                    other = self._upload(signed._replace(S=signed.R, C=None), again)
                    self.signed = self.signed._replace(inputs=other.inputs, R=other.R)
            del trials, signed  # the reference is large
            self.others = [
                self._upload(make(), partial(self._again, "others", number))
                for number, make in enumerate(others)
            ]
            self.sources = [
                buffer
                for trial in (self.reference, self.given, self.signed, *self.others)
                if trial
                for buffer in (*trial.inputs, *(trial.scales or ()), *(trial.norms or ()))
            ]
            self._key = secrets.randbits(64)
            self._total = kernels.hashed(self._key, *self.sources)
            unwind.pop_all()

    def buffers(self, shape: tuple[int, int], kernel: Kernel | None = None) -> Buffers:
        """Buffers with a C of that shape: the kernel's own if its layout is not matbench's."""
        own = None  # unless its layout or type of C differs from matbench's
        if kernel is not None and self.problem.workload == workloads.DEFAULT:
            is_plain = kernel.placing == Placing() and self.problem.batch == 1
            own = kernel if not is_plain or WORD_BYTES[kernel.contract.result] == 2 else None
        plain = self.buffers(shape) if own is not None else None
        key = shape, (own.placing, own.contract.result) if own else None, kernel is None
        if key in self._sets:
            self._sets[key] = self._sets.pop(key)  # the last one used
            return self._sets[key]
        while len(self._sets) >= _MOST_SETS:
            for arena in self._sets.pop(next(iter(self._sets))).arenas:
                arena.release()
        extents, names, laid_out = list[Extent](), (*self.workload.reads, "C"), None
        if own is not None and plain is not None:
            matrices = [kernel_arguments.matrix(own, self.problem, name) for name in names]
            for name, (storage, place, _, batch) in zip(names, matrices, strict=True):
                lines, word_bytes = batch * place.lines, WORD_BYTES[storage]
                extents.append(Extent(name, lines, place.pitch, place.width, word_bytes))
            places, last = tuple(matrix.place for matrix in matrices), matrices[-1]
            laid_out = Own(plain.given, places, last.batch, last.storage)
        else:
            word_bytes_of = dict.fromkeys(names, WORD_BYTES[self.contract.storage])
            word_bytes_of["C"] = 8 if self.contract.result == "float64" else 4
            shapes = {name: self.workload.shape(name, self.problem) for name in names}
            shapes["C"] = shape  # with parts, not that of the final result
            extents = [
                Extent(name, m, n, n, word_bytes_of[name]) for name, (m, n) in shapes.items()
            ]
        scale_places = []
        if self.contract.scales is not None:
            for buffer, name in SCALE_OF.items():
                rows, columns = scaling.shape(self.contract.scales, buffer, self.problem)
                extents.append(Extent(name, rows, columns, columns, 4))
                if kernel is not None:
                    scale_places.append(kernel_arguments.matrix(kernel, self.problem, name).place)
        made, count = allocated(self, self.kernels, extents, self._guard_rows), len(names)
        buffers = Buffers(made[:count], laid_out, None, made[count:], tuple(scale_places))
        self._sets[key] = buffers
        return buffers

    def move(self) -> None:
        """Free all matrices that kernels work on; `buffers` returns others, at other places."""
        while self._sets:
            for arena in self._sets.popitem()[1].arenas:
                arena.release()
        for buffer in self._spacer:
            self.free(buffer)
        steps = 1 + secrets.randbelow(_MOST_STEPS)
        self._spacer = [self.allocate(steps * _STEP_BYTES)]

    def workspace(self, nbytes: int) -> Guarded:
        """Scratch memory of whole words between guards; to be given back by its arena's `release`,
        because cases differ in its size."""
        words = -(-nbytes // 4)
        extent = Extent("the workspace", 1, words, words, 4, OUTSIDE_WORKSPACE)
        return allocated(self, self.kernels, [extent], min(1, self._guard_rows))[0]

    def is_intact(self) -> bool:
        """Whether all uploaded inputs are unchanged."""
        return self.kernels.hashed(self._key, *self.sources) == self._total

    def _again(self, name: str, number: int = 0) -> oracle.Trial:
        """One of the trials of that name, made again."""
        found: Any = getattr(oracle.trials(self.problem, self.contract, self.cache), name)
        trial: oracle.Trial = found[number]() if name == "others" else found
        return trial

    def _upload(self, trial: oracle.Trial, again: Callable[[], oracle.Trial]) -> DeviceTrial:
        """Copy a trial to the device. Vectors have no answers there, because comparisons compute
        them; S shares R's buffer if they are the same array."""
        expected = trial.expected
        dtype = expected.dtype
        if dtype == np.float64 and self.contract.result != "float64":
            dtype = np.dtype(np.int32 if self.contract.result == "int32" else np.float32)
        kind, inputs = self.contract.storage, trial.inputs
        for array in inputs if kind == "float16" else ():
            most, largest = float(np.abs(array).max(initial=0)), float(np.finfo(np.float16).max)
            if most > largest:
                raise CaseError(
                    f"inputs up to {most:,.0f} exceed {largest:,.0f}, the maximum of float16; "
                    "use other --inputs or smaller --sizes"
                )
        if kind not in ("float32", "float64"):
            inputs = tuple(stored(array, kind) for array in inputs)
        uploaded = DeviceTrial(
            trial.name,
            expected.shape,
            dtype,
            again,
            tuple(self.upload(np.ascontiguousarray(array)) for array in inputs),
            trial.exact is not None,
        )
        if trial.scale is not None:  # the host compares it
            answers = trial._replace(inputs=())
            uploaded = uploaded._replace(on_host=lambda: answers)
        if self.problem.workload != workloads.DEFAULT:
            return uploaded
        C = None if trial.C is None else self.upload(trial.C.astype(dtype))
        scales = trial.scales and (self.upload(trial.scales[0]), self.upload(trial.scales[1]))
        R = self._answer(expected.astype(np.float64))
        S = R if trial.S is None or trial.S is trial.R else self._answer(trial.S)
        return uploaded._replace(R=R, S=S, C=C, scales=scales)

    def _answer(self, values: oracle.Float64) -> Answer:
        key = secrets.randbits(64) if self.is_masked else 0
        buffer = self.upload(np.ascontiguousarray(values))
        self.kernels.start("memory.cu", "mask_words", buffer, values.size, key, size=values.size)
        return Answer(buffer, key)
