"""One problem on the device: its trials, and the guarded buffers that kernels work on."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from matbench import workloads
from matbench.backends import Backend, Buffer
from matbench.cache import Cache
from matbench.errors import OutOfMemoryError
from matbench.measure import oracle
from matbench.measure.judge import (
    OUTSIDE_C,
    OUTSIDE_INPUTS,
    OUTSIDE_NARROW,
    DeviceTrial,
    Guarded,
    Judge,
)
from matbench.model import WORD_BYTES, Problem, Reading


class Output(NamedTuple):
    """The guarded C, and what the first run left there."""

    C: Guarded
    first: Buffer


class Prepared:
    """What all cases of one problem share, for kernels that read their inputs alike.

    `release` gives the memory back. Outputs are by their shape: some kernels leave one partial
    result per block.
    """

    def __init__(
        self,
        backend: Backend,
        judge: Judge,
        problem: Problem,
        reading: Reading,
        cache: Cache,
        *,
        guards: bool,
    ) -> None:
        require_host_memory(problem)
        self.backend = backend
        self.judge = judge
        self.problem = problem
        self.reading = reading
        self.guards = guards
        self._held: list[Buffer] = []
        self._outputs: dict[tuple[int, int], Output] = {}
        trials = oracle.trials(problem, reading, cache)
        with contextlib.ExitStack() as unwind:
            unwind.callback(self.release)
            self.reference = self._upload(trials.reference)
            self.given = self._upload(trials.given) if trials.given is not None else None
            self.others = {
                name: [self._upload(trial) for trial in found]
                for name, found in trials.others.items()
            }
            self.inputs = tuple(map(self._guarded_input, workloads.of(problem).reads))
            unwind.pop_all()

    def is_for(self, problem: Problem, reading: Reading) -> bool:
        return (self.problem, self.reading) == (problem, reading)

    def output(self, shape: tuple[int, int]) -> Output:
        """C of that shape, guarded; made when it is first asked for."""
        if shape not in self._outputs:
            C = self.judge.guarded("C", shape, OUTSIDE_C, guards=self.guards)
            self._held.append(C.raw)
            first = self.backend.allocate(4 * C.words)
            self._held.append(first)
            self._outputs[shape] = Output(C, first)
        return self._outputs[shape]

    def load(self, trial: DeviceTrial) -> None:
        """Put a trial's inputs where kernels read them."""
        for matrix, source in zip(self.inputs, trial.inputs, strict=True):
            self.backend.copy(matrix.data, source)

    def release(self) -> None:
        while self._held:
            self.backend.release(self._held.pop())

    def _upload(self, trial: oracle.Trial) -> DeviceTrial:
        uploaded = self.judge.upload(trial, self.reading.storage)
        self._held.extend(uploaded.buffers)
        return uploaded

    def _guarded_input(self, name: str) -> Guarded:
        word_bytes = WORD_BYTES[self.reading.storage]
        made = self.judge.guarded(
            name,
            workloads.of(self.problem).shape(name, self.problem),
            OUTSIDE_NARROW if word_bytes == 2 else OUTSIDE_INPUTS,
            word_bytes=word_bytes,
            guards=self.guards,
        )
        self._held.append(made.raw)
        return made


def host_memory_bytes() -> int | None:
    """The memory of this machine; None where it is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def require_host_memory(problem: Problem) -> None:
    """Refuse a problem whose trials this host cannot hold, before it swaps or is killed."""
    needed, available = workloads.of(problem).host_bytes(problem), host_memory_bytes()
    if available is not None and needed > 0.8 * available:
        raise OutOfMemoryError(
            f"out of host memory: the inputs and references of {problem.size} take "
            f"{needed:,} bytes; this machine has {available:,}"
        )
