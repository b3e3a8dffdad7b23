"""One problem on the device: its trials, and the guarded buffers that kernels work on."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from functools import partial
from operator import attrgetter

import psutil

from matbench import workloads
from matbench.backends import Backend, Buffer
from matbench.bench import launcher, layouts
from matbench.bench.judge import (
    GUARD_ROWS,
    OUTSIDE_BYTES,
    OUTSIDE_C,
    OUTSIDE_C_NARROW,
    OUTSIDE_INPUTS,
    OUTSIDE_NARROW,
    OUTSIDE_WORKSPACE,
    Comparator,
    DeviceTrial,
    Guarded,
)
from matbench.bench.launcher import Memory
from matbench.bench.layouts import Buffers
from matbench.cache import Cache
from matbench.errors import OutOfMemoryError
from matbench.model import SCALE_OF, WORD_BYTES, Kernel, NumericContract, Problem
from matbench.workloads import oracle, scaling

#: Memory moves by a random number of these.
_STEP_BYTES, _MOST_STEPS = 4096, 256


class Prepared(Memory):
    """The data shared by all cases of one problem whose kernels read their inputs alike.

    `release` gives the memory back. Outputs are by their shape: some kernels leave one partial
    result per block.
    """

    def __init__(
        self,
        backend: Backend,
        judge: Comparator,
        problem: Problem,
        contract: NumericContract,
        cache: Cache,
        *,
        guards: bool,
    ) -> None:
        require_host_memory(problem)
        super().__init__(backend)
        self.judge = judge
        self.problem = problem
        self.contract = contract
        self.cache = cache
        is_vector = len(workloads.workload_of(problem).dimensions) == 1
        self._guard_rows = (1 if is_vector else GUARD_ROWS) if guards else 0
        self.is_spoiled = False  # by a kernel that may have written anywhere
        self._buffers: dict[tuple[object, ...], Buffers] = {}
        self._first: dict[int, Buffer] = {}
        self._spacer: list[Buffer] = []
        self._C_bytes = 8 if contract.result == "float64" else 4
        trials = oracle.trials(problem, contract, cache)
        with contextlib.ExitStack() as unwind:
            unwind.callback(self.release)
            self.reference = self._upload(trials.reference, attrgetter("reference"))
            self.given: DeviceTrial | None = None
            if trials.given is not None:
                self.given = self._upload(trials.given, attrgetter("given"))
            self.signed = self._upload_signed(trials)
            others = trials.others
            del trials  # the reference is large
            self.others = [
                self._upload(make(), partial(_other, number)) for number, make in enumerate(others)
            ]
            uploaded = (self.reference, self.given, self.signed, *self.others)
            self.seals = [
                judge.seal(buffer)
                for trial in uploaded
                if trial
                for buffer in (*trial.inputs, *(trial.scales or ()), *(trial.norms or ()))
            ]
            self.inputs = self._guarded_inputs()
            self.scales = self._guarded_scales()
            unwind.pop_all()

    def is_for(self, problem: Problem, contract: NumericContract) -> bool:
        return not self.is_spoiled and (self.problem, self.contract) == (problem, contract)

    def buffers(self, shape: tuple[int, int], kernel: Kernel | None = None) -> Buffers:
        """Buffers with a C of that shape, made on first use.

        A kernel whose matrices are not row-major gets its own.
        """
        special = kernel if kernel is not None and layouts.needed(kernel, self.problem) else None
        key = shape, (special.placing, special.contract.result) if special else None
        if key not in self._buffers:
            C = self._guarded("C", shape, self._C_bytes)
            own = self._own(special) if special else None
            self._buffers[key] = Buffers(self.inputs, C, own)
            if kernel is not None and self.contract.scales is not None:
                places = tuple(
                    launcher.matrix(kernel, self.problem, name).place for name in SCALE_OF.values()
                )
                self._buffers[key] = self._buffers[key]._replace(
                    scales=self.scales, scale_places=places
                )
        return self._buffers[key]

    def move(self) -> None:
        """Allocate all matrices that kernels work on anew; what they held is lost, and `buffers`
        returns others."""
        moved = [*self.inputs, *self.scales]
        for buffers in self._buffers.values():
            moved += [buffers.C, *(buffers.own.matrices if buffers.own is not None else ())]
        self._buffers.clear()
        for buffer in (*self._spacer, *(matrix.raw for matrix in moved)):
            self.free(buffer)
        steps = 1 + secrets.randbelow(_MOST_STEPS)
        self._spacer = [self.allocate(steps * _STEP_BYTES)]
        self.inputs = self._guarded_inputs()
        self.scales = self._guarded_scales()

    def first(self, C: Guarded) -> Buffer:
        """The buffer that keeps the C of a case's first run."""
        nbytes = C.data.nbytes
        if nbytes not in self._first:
            self._first[nbytes] = self.allocate(nbytes)
        return self._first[nbytes]

    def workspace(self, nbytes: int) -> Guarded:
        """Scratch memory of whole words between guards; to be given back by `free`, because cases
        differ in its size."""
        shape = 1, -(-nbytes // 4)
        guard_rows = min(1, self._guard_rows)
        return self.judge.guarded(
            self, "the workspace", shape, OUTSIDE_WORKSPACE, guard_rows=guard_rows
        )

    def load(self, trial: DeviceTrial) -> None:
        """Copy a trial's inputs to the buffers that kernels read."""
        for matrix, source in zip(self.inputs, trial.inputs, strict=True):
            self.backend.copy(matrix.data, source)

    def is_intact(self) -> bool:
        """Whether all uploaded inputs are unchanged."""
        return all(map(self.judge.is_intact, self.seals))

    def _again(self, find: Callable[[oracle.Trials], oracle.Trial]) -> Callable[[], oracle.Trial]:
        """A function that makes all trials again, and finds one among them."""
        return lambda: find(oracle.trials(self.problem, self.contract, self.cache))

    def _upload(
        self, trial: oracle.Trial, find: Callable[[oracle.Trials], oracle.Trial]
    ) -> DeviceTrial:
        return self.judge.upload(self, trial, self.contract, self._again(find))

    def _upload_signed(self, trials: oracle.Trials) -> DeviceTrial:
        """The trial that samples are made from; it shares what is equal with the reference."""
        signed, reference = trials.signed, self.reference
        if signed is None:
            return reference
        assert signed.norms is not None
        rows, columns = map(self.upload, signed.norms)
        again = attrgetter("signed")
        made = reference._replace(on_host=self._again(again), norms=(rows, columns))
        if signed.R is trials.reference.R:
            return made
        other = self._upload(signed._replace(S=signed.R, C=None), again)
        return made._replace(inputs=other.inputs, R=other.R)

    def _guarded_inputs(self) -> tuple[Guarded, ...]:
        workload, word_bytes = (
            workloads.workload_of(self.problem),
            WORD_BYTES[self.contract.storage],
        )
        return tuple(
            self._guarded(name, workload.shape(name, self.problem), word_bytes)
            for name in workload.reads
        )

    def _guarded_scales(self) -> tuple[Guarded, ...]:
        if self.contract.scales is None:
            return ()
        return tuple(
            self._guarded(name, scaling.shape(self.contract.scales, buffer, self.problem), 4)
            for buffer, name in SCALE_OF.items()
        )

    def _own(self, kernel: Kernel) -> layouts.Own:
        """The matrices of a kernel whose matrices are not row-major."""
        matrices, layout = [], []
        for name in workloads.workload_of(self.problem).buffers:
            storage, place, _, batch = launcher.matrix(kernel, self.problem, name)
            shape = batch * place.lines, place.pitch
            matrices.append(self._guarded(name, shape, WORD_BYTES[storage], width=place.width))
            layout.append(place)
        return layouts.Own(tuple(matrices), tuple(layout), batch, storage)

    def _guarded(
        self, name: str, shape: tuple[int, int], word_bytes: int, width: int | None = None
    ) -> Guarded:
        outside = OUTSIDE_C if name == "C" else OUTSIDE_INPUTS
        narrow = OUTSIDE_C_NARROW if name == "C" else OUTSIDE_NARROW
        return self.judge.guarded(
            self,
            name,
            shape,
            {1: OUTSIDE_BYTES, 2: narrow}.get(word_bytes, outside),
            word_bytes=word_bytes,
            guard_rows=self._guard_rows,
            width=width,
        )


def _other(number: int, trials: oracle.Trials) -> oracle.Trial:
    return trials.others[number]()


def host_memory_bytes() -> int:
    """The memory of this machine."""
    return int(psutil.virtual_memory().total)


def require_host_memory(problem: Problem) -> None:
    """`OutOfMemoryError` if the trials do not fit in this host's memory, before it swaps."""
    needed, available = workloads.workload_of(problem).host_bytes(problem), host_memory_bytes()
    if needed > 0.8 * available:
        raise OutOfMemoryError(
            f"out of host memory: the inputs and references of {problem.size} need "
            f"{needed:,} bytes; this machine has {available:,}"
        )
