"""Checks that a built kernel is right, before and after its launches are timed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from matbench import workloads
from matbench.analysis import error_map
from matbench.backends import Argument, Backend, Program
from matbench.bench import diagnosis, launcher
from matbench.bench.arena import Arena
from matbench.bench.judge import UNWORKED, UNWRITTEN, Comparator, DeviceTrial, Seal
from matbench.bench.layouts import Buffers
from matbench.bench.options import Options
from matbench.bench.prepared import Prepared
from matbench.bench.samples import SampleCheck, Samples
from matbench.model import WORKSPACE, Case
from matbench.records.outcome import Accuracy, ErrorCells
from matbench.workloads import oracle

#: For how long a function is called in search of races, and the most operations of a call without
#: the compiler's optimizations.
_RACES_S = 1.0
_MOST_UNOPTIMIZED = 1 << 29


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


class Checks:
    """One built case on the prepared buffers of its problem."""

    def __init__(
        self, prepared: Prepared, samples: Samples, case: Case, built: Built, options: Options
    ) -> None:
        assert case.launch is not None
        self.prepared = prepared
        self.samples = samples
        self.backend: Backend = prepared.backend
        self.judge: Comparator = prepared.judge
        self.case = case
        self.built = built
        self.options = options
        self.launch = case.launch
        self.bound = oracle.bound(case.kernel, case.problem)
        self.shape = workloads.workload_of(case.problem).shape("C", case.problem)
        if case.kernel.finish is not None:
            self.shape = 1, self.launch.blocks
        self._arena: Arena | None = None
        self._scales: list[Seal] = []
        self._use(self._given_buffers())
        self.first = prepared.first(self.result)
        self.accuracy: Accuracy | None = None

    def _use(self, buffers: Buffers) -> None:
        self.buffers = buffers
        self.C = buffers.C
        self.result = buffers.given[-1]
        self.arguments = self.arguments_for(buffers)

    def _given_buffers(self) -> Buffers:
        buffers = self.prepared.buffers(self.shape, self.case.kernel)
        if WORKSPACE not in self.case.kernel.args:
            return buffers
        return buffers._replace(workspace=self.prepared.workspace(self.launch.workspace_bytes))

    def arena(self, most: int) -> Arena:
        """Memory for so many sets of this kernel's buffers, made on first use."""
        if self._arena is None:
            self._arena = Arena(self.prepared, self.judge, self.buffers, most)
        return self._arena

    def release(self) -> None:
        """Give the workspace and the arena back."""
        if self._arena is not None:
            self._arena.release()
        if self.buffers.workspace is not None:
            self.prepared.free(self.buffers.workspace.raw)

    def moved(self) -> None:
        """Continue with the matrices that `Prepared.move` has made."""
        self.release()
        self._arena = None
        self._use(self._given_buffers())

    def arguments_for(self, buffers: Buffers) -> list[Argument]:
        """The kernel's arguments for these buffers."""
        named = {matrix.name: matrix.data for matrix in buffers.given}
        if buffers.workspace is not None:
            named[WORKSPACE] = buffers.workspace.data
        named |= {scales.name: scales.data for scales in buffers.scales}
        return launcher.arguments(self.case, named, self.backend.info.limits)

    def before_timing(self) -> None:
        """Check all trials made on the host; `WrongError` at the first that fails."""
        accuracy = self.require_right_trial(self.prepared.reference, "reference")
        self.backend.copy(self.first, self.result.data)
        for trial in self.prepared.others:
            self.require_right_trial(trial, trial.name)
        self._find_races()
        if self.prepared.given is not None:
            # Checked on rounded inputs; the reported error is that on the inputs as given.
            self.prepared.load(self.prepared.given)
            self.run(self.prepared.given)
            given = self.judge.compare(self.C, self.prepared.given, self.bound).accuracy
            accuracy = msgspec.structs.replace(given, bound_ratio=accuracy.bound_ratio)
        self.require_guards()
        self.accuracy = accuracy

    def _find_races(self) -> None:
        """A function is called for a while, because its threads meet by chance."""
        is_function, problem = self.case.kernel.is_function, self.case.problem
        operations = workloads.workload_of(problem).operations(problem)
        if self.built.staggered is None or (is_function and operations > _MOST_UNOPTIMIZED):
            return
        rare = "warps do not run in lockstep"
        if is_function:
            rare = "built with -O0, so that threads share variables in memory"
        ended_s = time.monotonic() + (_RACES_S if is_function else 0)
        while True:
            self.require_right_trial(
                self.prepared.reference,
                "staggered",
                self._launch_staggered,
                why=f"a race: wrong if {rare}; ",
            )
            if time.monotonic() >= ended_s:
                return

    def after_timing(self) -> None:
        """Check that it is right again on the reference inputs, bit for bit, and wrote only to C.

        The kernel's device variables are not restored: it must not rely on their initial values,
        nor keep its answer to other inputs.
        """
        if self.built.program.variable_bytes:
            for trial in self.prepared.others[:1]:
                self.prepared.load(trial)
                self.run(trial)
            self.require_right_trial(self.prepared.reference, "repeat", restored=False)
        self.require_right_trial(self.prepared.reference, "repeat", restored=False)
        self.require_guards()
        if "determinism" in self.options.checks and self.case.kernel.deterministic:
            result = self.result
            words = result.words
            changed = self.judge.differing(result, self.first)
            if changed.first is not None:
                place = f"at offset {changed.first:,} of C"
                if self.buffers.own is None:
                    place = diagnosis.place(changed.first, self.shape, self.case.problem)
                raise WrongError(
                    self.case,
                    "determinism",
                    f"not deterministic: {changed.words:,} of {words:,} elements differ between "
                    f"two runs on the same inputs, first {place}; fix the race, or declare "
                    "`deterministic = false`",
                )
        self.require_sources()

    def require_sources(self) -> None:
        """`WrongError` if matbench's copy of the inputs changed."""
        if "sources" in self.options.checks and not self.prepared.is_intact():
            raise WrongError(
                self.case,
                "sources",
                "wrote to memory that is not its own: matbench's copy of the inputs",
            )

    def ready(self, sets: Sequence[Buffers] = (), *, restored: bool = True) -> None:
        """Remove everything from earlier launches that launches on these sets of buffers could use;
        by default on the first set."""
        checks = self.options.checks
        for buffers in sets or [self.buffers]:
            self.poison_workspace(buffers)
        if restored and "variables" in checks:
            self.built.program.restore()
        if "persisting" in checks:
            self.backend.reset_cache()
        self.judge.clear()
        if "shared" in checks and self._uses_shared_memory():
            self.judge.poison_shared()

    def poison_workspace(self, buffers: Buffers) -> None:
        if buffers.workspace is not None and "poison" in self.options.checks:
            self.judge.poison(buffers.workspace, UNWORKED)

    def wrong(self, check: str, reason: str) -> WrongError:
        """The error of this case."""
        return WrongError(self.case, check, reason)

    def _uses_shared_memory(self) -> bool:
        static = self.built.program.resources.static_shared_bytes
        return static != 0 or self.launch.shared_bytes > 0  # None: a library does not say

    def _launch_staggered(self) -> None:
        assert self.built.staggered is not None
        unused = [] if self.case.kernel.is_function else [self.C.data]
        self.built.staggered.launch(self.launch, [*self.arguments, *unused])

    def run(
        self, trial: DeviceTrial, launch: Callable[[], None] | None = None, *, restored: bool = True
    ) -> None:
        """Launch on a trial's loaded inputs, and wait. Before, C is filled with poison, or with the
        trial's numbers if the kernel reads C."""
        self.ready(restored=restored)
        if trial.C is not None:
            self.backend.copy(self.C.data, trial.C)
        elif "poison" in self.options.checks:
            self.judge.poison(self.C, UNWRITTEN)
        for item in self.buffers.items:
            self.buffers.place(self.judge, item)
        if trial.scales is not None:
            self.buffers.place_scales(self.judge, trial.scales)
        self._scales = [self.judge.seal(scales.data) for scales in self.buffers.scales]
        if launch is not None:
            launch()
        else:
            self.built.program.launch(self.launch, self.arguments)
        self.backend.synchronize()
        self.buffers.take(self.judge, 0)

    @property
    def looked_at(self) -> list[int]:
        """The products of a batch that trials check; samples check all."""
        items = self.buffers.items
        return sorted({0, items[len(items) // 2], items[-1]})

    def require_right_trial(
        self,
        trial: DeviceTrial,
        check: str,
        launch: Callable[[], None] | None = None,
        *,
        restored: bool = True,
        why: str = "",
    ) -> Accuracy:
        """Run once and check everything. `why` a wrong result is the check's.

        All products of a batch are equal here, but not in samples.
        """
        self.prepared.load(trial)
        self.run(trial, launch, restored=restored)
        self._require_inputs(trial)
        items = self.buffers.items
        comparison = None
        for item in self.looked_at:
            self.buffers.take(self.judge, item)
            comparison = self.judge.compare(self.C, trial, self.bound)
            if check in self.options.checks and comparison.wrong:
                self.require_guards()  # says more
                reason, where = self._explained(trial.on_host)
                reason = f"{_of_batch(item, items)}{why}{reason}"
                wrong = WrongError(self.case, check, reason, where)
                wrong.reads_C = trial.C is None and self._is_only_nan(trial)
                raise wrong
        assert comparison is not None
        return comparison.accuracy

    def _is_only_nan(self, trial: DeviceTrial) -> bool:
        """Whether all wrong elements of C are NaN, as if a kernel multiplied the old C by 0."""
        C, expected = self.judge.result(self.C, trial), trial.on_host()
        wrong = diagnosis.wrong_elements(C, expected, self.bound)
        return bool(np.isnan(C[wrong]).all())

    def require_right(self, verdicts: Sequence[SampleCheck]) -> None:
        """`WrongError` at the first sample whose C was wrong, explained by launching it again."""
        for verdict in verdicts if "samples" in self.options.checks else ():
            if verdict.forged:
                raise WrongError(
                    self.case, "samples", "wrote to memory that is not its own: the verdicts"
                )
            if verdict.wrong and verdict.outside is not None:
                raise WrongError(
                    self.case,
                    "guards",
                    f"wrote outside {verdict.outside}: {verdict.wrong:,} elements, with the inputs "
                    f"of --replay {verdict.key:x}",
                )
            if verdict.wrong:
                raise self._wrong_sample(verdict)

    def _wrong_sample(self, verdict: SampleCheck) -> WrongError:
        """Explain a wrong launch by launching again on the same inputs."""
        key = verdict.key
        self.ready()
        self.samples.write(self.buffers, key)
        self.built.program.launch(self.launch, self.arguments)
        self.backend.synchronize()
        self.samples.compare(self.buffers, key, self.bound)
        again = next((check for check in self.samples.verdicts() if check.wrong), None)
        items = self.buffers.items
        which = f"{_of_batch(verdict.item, items)}with the inputs of --replay {key:x}"
        if again is not None:
            self.buffers.take(self.judge, again.item)
            reason, errors = self._explained(
                lambda: self.samples.trial(self.buffers, key, again.item)
            )
            which = f"{_of_batch(again.item, items)}with the inputs of --replay {key:x}"
            return WrongError(self.case, "samples", f"{which}: {reason}", errors)
        count = math.prod(self.prepared.reference.shape)
        where = ""
        if verdict.first is not None:
            shape = self.prepared.reference.shape
            where = f", first {diagnosis.place(verdict.first, shape, self.case.problem)}"
        return WrongError(
            self.case,
            "samples",
            f"{which}: {verdict.wrong:,} of {count:,} elements wrong{where}; right when launched "
            "again with the same inputs",
        )

    def require_unchanged(self, buffers: Buffers, key: int) -> None:
        """`WrongError` if the inputs of a sample changed during the launch."""
        if "inputs" in self.options.checks:
            changed = self.samples.changed_inputs(buffers, key)
            if changed is not None:
                raise WrongError(
                    self.case, "inputs", f"changed its inputs: {changed.wrong:,} elements"
                )

    def require_guards(self) -> None:
        """`WrongError` if a guard of the first set was overwritten."""
        if "guards" in self.options.checks:
            for matrix in self.buffers.passed:
                broken = self.judge.broken_guard(matrix)
                if broken:
                    raise WrongError(self.case, "guards", broken)

    def _require_inputs(self, trial: DeviceTrial) -> None:
        """`WrongError` if a trial's inputs changed."""
        if "inputs" not in self.options.checks:
            return
        for scales, seal in zip(self.buffers.scales, self._scales, strict=True):
            if not self.judge.is_intact(seal):
                raise WrongError(self.case, "inputs", f"changed its input {scales.name}")
        for item in self.looked_at:
            self.buffers.take_inputs(self.judge, item)
            for matrix, source in zip(self.prepared.inputs, trial.inputs, strict=True):
                changed = self.judge.differing(matrix, source)
                if changed.first is not None:
                    self.require_guards()  # says more
                    raise WrongError(
                        self.case,
                        "inputs",
                        f"changed its input {matrix.name}: {changed.words:,} elements, "
                        f"the first at offset {changed.first:,}",
                    )

    def _explained(self, on_host: Callable[[], oracle.Trial]) -> tuple[str, ErrorCells | None]:
        """What is wrong with C, in words and as a map if C has more than one element; C is read
        before what it should be is made."""
        C, parts = self.judge.result(self.C, self.prepared.reference), ""
        if self.case.kernel.finish is not None:
            parts = diagnosis.unwritten_parts(self.judge.parts(self.C, self.prepared.reference))
        trial = on_host()
        reason = diagnosis.explain(C, trial, self.bound, self.case) + parts
        wrong = diagnosis.wrong_elements(C, trial, self.bound)
        if wrong.size == 1 or not wrong.any():
            return reason, None
        errors = error_map.make_error_map(
            C,
            trial.expected,
            wrong,
            bound=None if trial.R is None or trial.S is None else self.bound.of(trial),
        )
        return reason, errors


def _of_batch(item: int, items: range) -> str:
    return f"product {item} of the batch: " if len(items) > 1 else ""
