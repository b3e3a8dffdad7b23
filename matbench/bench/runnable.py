"""A built case on the buffers of its problem: it is launched on known inputs, and all that a launch
leaves is compared with what it should be."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from matbench import workloads
from matbench.analysis import error_map
from matbench.backends.protocol import Backend, Program
from matbench.bench import diagnosis, kernel_arguments
from matbench.bench.device_kernels import UNWRITTEN, DeviceKernels
from matbench.bench.matrices import BatchArena
from matbench.bench.options import Options
from matbench.bench.prepared import DeviceTrial, Prepared
from matbench.bench.samples import Draw, Placed, SampleCheck, Samples
from matbench.model import WORKSPACE, Case, Problem
from matbench.records.outcome import Accuracy, ErrorCells
from matbench.workloads import oracle


class WrongError(Exception):
    """A check of a case failed; the reason says which and why."""

    def __init__(
        self, case: Case, check: str, reason: str, error_map: ErrorCells | None = None
    ) -> None:
        super().__init__(case.label, check, reason)
        self.case = case
        self.check = check
        self.reason = f"{check}: {reason}"
        self.error_map = error_map
        self.reads_C = False  # true if all wrong elements of C are NaN, as from reading old C


class Built(NamedTuple):
    """The builds of one kernel with one set of parameters, with notes on failed variants."""

    program: Program
    clocked: Program | None
    staggered: Program | None
    reordered: Program | None
    duration_s: float
    notes: tuple[str, ...]
    #: The times of a function's calls, in ns, by problem: on fresh inputs, and on the others.
    taken_ns: dict[Problem, tuple[list[float], list[float]]]


class Runnable:
    """One built case on the prepared buffers of its problem."""

    def __init__(
        self, prepared: Prepared, samples: Samples, case: Case, built: Built, options: Options
    ) -> None:
        assert case.launch is not None
        self.prepared = prepared
        self.samples = samples
        self.backend: Backend = prepared.backend
        self.kernels: DeviceKernels = prepared.kernels
        self.case = case
        self.built = built
        self.options = options
        self.launch = case.launch
        self.bound = oracle.bound(case.kernel, case.problem)
        self.shape = workloads.workload_of(case.problem).shape("C", case.problem)
        if case.kernel.finish is not None:
            self.shape = 1, self.launch.blocks
        self._hashes = not options.checks.isdisjoint(("guards", "inputs", "decoys"))
        self._use_given()
        #: The hash of C after the first run on the reference, with a key of this case's own.
        self.key = secrets.randbits(64)
        self.first = 0
        self._last: list[Placed] = []
        self.accuracy: Accuracy | None = None

    def _use_given(self) -> None:
        """Use the matrices of the problem, and a workspace of this case's own."""
        self._arena: BatchArena | None = None
        self.buffers = buffers = self.prepared.buffers(self.shape, self.case.kernel)
        if WORKSPACE in self.case.kernel.args:
            workspace = self.prepared.workspace(self.launch.workspace_bytes)
            self.buffers = replace(buffers, workspace=workspace)
        self.C, self.result = buffers.C, buffers.given[-1]
        self.arguments = kernel_arguments.arguments(self.case, self.buffers.named)
        #: Starts one launch on these buffers, as they are.
        self.start = partial(self.built.program.launch, self.launch, self.arguments)

    def arena(self, most: int) -> BatchArena:
        """Memory for so many sets of this kernel's buffers, or more; made on first use."""
        if self._arena is not None and self._arena.most < most:
            self._arena.release()
            self._arena = None
        if self._arena is None:
            extents = [matrix.extent for matrix in self.buffers.passed]
            self._arena = BatchArena(self.prepared, self.kernels, extents, most)
        return self._arena

    def release(self) -> None:
        """Give the workspace and the arena back."""
        if self._arena is not None:
            self._arena.release()
        if self.buffers.workspace is not None:
            self.buffers.workspace.arena.release()

    def moved(self) -> None:
        """Continue with the matrices that `Prepared.move` has made."""
        self.release()
        self._use_given()

    def require_sources(self) -> None:
        """`WrongError` if matbench's copy of the inputs changed."""
        if "sources" in self.options.checks and not self.prepared.is_intact():
            found = "wrote to memory that is not its own: matbench's copy of the inputs"
            raise self.wrong("sources", found)

    def make_ready(
        self,
        launches: Sequence[Placed],
        *,
        with_inputs: bool = True,
        restored: bool = True,
        at_once: bool = False,
    ) -> None:
        """New inputs for successive launches, which follow `at_once` if the host need not wait, and
        nothing left of others that these could use. All memory but their results is hashed; without
        their inputs, if one of these will change."""
        checks, program = self.options.checks, self.built.program
        program.prepare(self.arguments)
        for buffers, draw in launches:
            self.samples.write(buffers, draw)
        if self._hashes:
            self.samples.hash_before([sets for sets, _ in launches], with_inputs=with_inputs)
        if restored and "variables" in checks:
            program.restore()
        if "persisting" in checks:
            self.backend.reset_cache()
        # While the host waits, another process may have its turn, and its kernels overwrite shared
        # memory. What a function starts may be in another stream, where nothing is in order.
        if at_once := at_once and self.case.kernel.kind.is_launched:
            self.backend.synchronize()
        static = program.resources.static_shared_bytes  # None: a library does not say
        if "shared" in checks and (static != 0 or self.launch.shared_bytes > 0):
            self.kernels.poison_shared()
        if not at_once:
            self.backend.synchronize()

    def compare(
        self, launches: Sequence[Placed], *, accuracy: bool = False, at_once: bool = False
    ) -> None:
        """Compare the results of the launches, and all other memory with what it was; `at_once`:
        `WrongError` if they are not right, which else comes with the verdicts."""
        if self._hashes:
            self.samples.hash_after()
        for buffers, draw in launches:
            self.samples.compare(buffers, draw, self.bound, accuracy=accuracy)
        self._last = list(launches)
        if at_once:
            self.require_right(self.samples.verdicts())

    def compare_again(self) -> None:
        """`WrongError` unless C is what the inputs of the last launches make it; other memory may
        be that of another side's launches since."""
        for buffers, draw in self._last:
            self.samples.compare(buffers, draw, self.bound)
        self.require_right(self.samples.verdicts())

    def wrong(self, check: str, reason: str) -> WrongError:
        return WrongError(self.case, check, reason)

    def run(
        self, draw: Draw, launch: Callable[[], None] | None = None, *, restored: bool = True
    ) -> None:
        """Launch on these inputs, and wait."""
        self.make_ready([(self.buffers, draw)], restored=restored, at_once=True)
        (launch or self.start)()
        self.backend.synchronize()

    def require_right_trial(
        self,
        trial: DeviceTrial,
        check: str = "",
        launch: Callable[[], None] | None = None,
        *,
        restored: bool = True,
        why: str = "",
    ) -> Accuracy:
        """Run once and check everything; C if it is for a `check`. `why` a wrong result is its. All
        products of a batch are equal here, but not in samples."""
        draw = Draw(trial)
        self.run(draw, launch, restored=restored)
        self.compare([(self.buffers, draw)], accuracy=True)
        C = np.empty(0) if self.samples.is_matrix else self.result_on_host(trial)
        accuracy = self.samples.accuracy(C, trial, self.bound)
        verdicts = self.samples.verdicts()
        self.require_untouched(verdicts)
        for verdict in verdicts if check in self.options.checks else ():
            if verdict.wrong:
                self.require_sources()  # says more
                raise self._explained(check, verdict.item, why, trial.on_host)
        return accuracy

    def require_right(self, verdicts: Sequence[SampleCheck]) -> None:
        """`WrongError` at the first launch whose C was wrong, explained by launching it again."""
        self.require_untouched(verdicts)
        wrong = [verdict for verdict in verdicts if verdict.wrong]
        if not wrong or "samples" not in self.options.checks:
            return
        self.require_sources()  # says more
        verdict, draw = wrong[0], wrong[0].draw
        self.run(draw)
        self.samples.compare(self.buffers, draw, self.bound)
        which = f"with the inputs of --replay {draw.key:x}: "
        if again := [check.item for check in self.samples.verdicts() if check.wrong]:
            made_again = partial(self.samples.trial, self.buffers, draw, again[0])
            raise self._explained("samples", again[0], which, made_again)
        shape, where = self.prepared.reference.shape, ""
        if verdict.first is not None:
            where = f", first {diagnosis.place(verdict.first, shape, self.case.problem)}"
        raise self.wrong(
            "samples",
            f"{self._of_batch(verdict.item)}{which}{verdict.wrong:,} of {math.prod(shape):,} "
            f"elements wrong{where}; right when launched again with the same inputs",
        )

    def require_untouched(self, verdicts: Sequence[SampleCheck]) -> None:
        """`WrongError` if a launch changed other memory than its results. What it was, is found
        where that still shows, or after the same launch again."""
        checks = self.options.checks
        if "samples" in checks and any(verdict.forged for verdict in verdicts):
            raise self.wrong("samples", "wrote to memory that is not its own: the verdicts")
        for verdict in verdicts:
            if verdict.forged or not verdict.touched:
                continue
            is_batch = self._last[0][0] is not self.buffers
            found = self._changed()
            if found is None and not is_batch:
                self.run(verdict.draw)
                self._last = [(self.buffers, verdict.draw)]
                found = self._changed()
            if found is None and is_batch:
                found = "decoys", "wrote outside its matrices, in launches back to back"
            check, reason = found or ("guards", "wrote outside its matrices, or to its inputs")
            if check == "guards" and verdict.draw.is_changed:
                reason = f"{reason}, with the inputs of --replay {verdict.draw.key:x}"
            if check in checks:
                raise self.wrong(check, reason)

    def _changed(self) -> tuple[str, str] | None:
        """Which guards or inputs of the last launches are not as they were: the check's name, and
        what changed."""
        arenas = {id(arena): arena for sets, _ in self._last for arena in sets.arenas}
        if broken := [damage for arena in arenas.values() if (damage := arena.damage())]:
            return "guards", broken[0]
        changes = (self.samples.changed_input(sets, draw) for sets, draw in self._last)
        changed = next(filter(None, changes), None)
        return None if changed is None else ("inputs", changed)

    def result_on_host(self, trial: DeviceTrial) -> oracle.Array:
        """C in its expected shape: the sum of its parts if it has parts."""
        C = self.C.contents().view(trial.dtype)
        return C.reshape(trial.shape) if C.size == math.prod(trial.shape) else oracle.total(C)

    def _explained(
        self, check: str, item: int, why: str, on_host: Callable[[], oracle.Trial]
    ) -> WrongError:
        """What is wrong with a product, in words and as a map if C has more than one element; C is
        read before what it should be is made."""
        self.buffers.copy(self.kernels, item, "take")
        C, missing = self.result_on_host(self.prepared.reference), ""
        if self.case.kernel.finish is not None:
            parts = self.C.contents()  # one per block
            if count := np.count_nonzero(parts == UNWRITTEN):
                missing = f"; {count:,} of {parts.size:,} blocks wrote no partial result"
        trial, errors = on_host(), None
        reason = diagnosis.explain(C, trial, self.bound, self.case) + missing
        wrong = diagnosis.wrong_elements(C, trial, self.bound)
        if wrong.size > 1 and wrong.any():
            bound = None if trial.R is None or trial.S is None else self.bound.of(trial)
            errors = error_map.make_error_map(C, trial.expected, wrong, bound=bound)
        found = WrongError(self.case, check, f"{self._of_batch(item)}{why}{reason}", errors)
        # If all wrong elements are NaN, the kernel may have multiplied the old C by 0. Samples come
        # after all trials were right.
        if check != "samples" and trial.C is None:
            found.reads_C = bool(np.isnan(C[wrong]).all())
        return found

    def _of_batch(self, item: int) -> str:
        return f"product {item} of the batch: " if len(self.buffers.items) > 1 else ""
