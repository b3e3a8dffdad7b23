"""Whether a built kernel is right: it runs on every trial, and all that it left is looked at."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import msgspec
import numpy as np

from matbench import workloads
from matbench.analysis import error_map
from matbench.backends import Argument, Backend, Program, TensorMap
from matbench.errors import CaseError
from matbench.kernelfile import expressions, signature
from matbench.measure import diagnosis, oracle
from matbench.measure.judge import UNWRITTEN, DeviceTrial, Judge
from matbench.measure.options import Options
from matbench.measure.prepared import Prepared
from matbench.model import U32, Case
from matbench.records.outcome import Accuracy


class WrongError(Exception):
    """A check failed; says which, and why in words."""

    def __init__(
        self, check: str, reason: str, error_map: error_map.ErrorMap | None = None
    ) -> None:
        super().__init__(check, reason)
        self.reason = f"{check}: {reason}"
        self.error_map = error_map


class Built(NamedTuple):
    """The builds of one kernel with one set of parameters, and what could not be built."""

    program: Program
    clocked: Program | None
    staggered: Program | None
    duration_s: float
    notes: tuple[str, ...]


class Checks:
    """One built case on the prepared buffers of its problem.

    Leaving the context restores the guards for the next case, whatever this one did to them.
    """

    def __init__(self, prepared: Prepared, case: Case, built: Built, options: Options) -> None:
        assert case.launch is not None
        self.prepared = prepared
        self.backend: Backend = prepared.backend
        self.judge: Judge = prepared.judge
        self.case = case
        self.built = built
        self.options = options
        self.launch = case.launch
        workload = workloads.of(case.problem)
        self.factor = oracle.error_factor(
            workload.terms(case.problem),
            case.kernel.error_constant,
            truncated=case.kernel.truncates,
        )
        self.shape = workload.shape("C", case.problem)
        if case.kernel.finish is not None:
            self.shape = 1, self.launch.blocks
        self.C, self.first = prepared.output(self.shape)
        self.arguments = [self._argument(text) for text in case.kernel.args]

    def __enter__(self) -> Checks:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(CaseError):  # the device is lost; the worker is replaced
            for matrix in (*self.prepared.inputs, self.C):
                self.judge.broken_guard(matrix)

    def _argument(self, text: str) -> Argument:
        problem, kernel = self.case.problem, self.case.kernel
        workload = workloads.of(problem)
        guarded = (*self.prepared.inputs, self.C)
        buffers = {name: b.data for name, b in zip(workload.buffers, guarded, strict=True)}
        if text in buffers:
            return buffers[text]
        values = {**self.backend.info.limits, **self.case.params, **workload.values(problem)}
        described = signature.tensor_map(text)
        if described is None:
            return expressions.evaluate(text, values)
        name, *box = described
        rows, columns = (expressions.whole(side, values) for side in box)
        storage = "float32" if name == "C" else kernel.reading.storage
        return TensorMap(buffers[name], storage, workload.shape(name, problem), (rows, columns))

    def before_timing(self) -> Accuracy:
        """Every trial that needs no second look; `WrongError` at the first that fails."""
        accuracy = self._trial(self.prepared.reference, "reference")
        self.backend.copy(self.first, self.C.data)
        for name in ("integers", "selection"):
            for trial in self.prepared.others.get(name, ()):
                self._trial(trial, name)
        if self.built.staggered is not None:
            self._trial(self.prepared.reference, "staggered")
        if self.prepared.given is None:
            return accuracy
        # Judged by its arithmetic on rounded inputs; reported against the inputs as given.
        self.prepared.load(self.prepared.given)
        self.run()
        given = self._verdict(self.prepared.given).accuracy
        return msgspec.structs.replace(given, bound_ratio=accuracy.bound_ratio)

    def after_timing(self, *, timed: bool) -> None:
        """C poisoned and computed anew on the inputs that were timed, then on fresh ones."""
        if not timed:
            self.prepared.load(self.prepared.reference)
            self.run()  # in place of the launches that timing makes
        self._trial(self.prepared.reference, "repeat", load=False)
        if "determinism" in self.options.checks and self.case.kernel.deterministic:
            words = self.C.words
            changed = self.judge.differing(self.C.data, self.first, words)
            if changed.first is not None:
                place = diagnosis.place(changed.first, self.shape, self.case.problem)
                raise WrongError(
                    "determinism",
                    f"not deterministic: {changed.words:,} of {words:,} elements differ between "
                    f"two runs on the same inputs, first {place}; a race, unless the file says "
                    "`deterministic = false`",
                )
        for trial in self.prepared.others.get("fresh", ()):
            self._trial(trial, "fresh")

    def run(self, *, staggered: bool = False) -> None:
        """Poison, launch, wait."""
        if "shared" in self.options.checks:
            self.judge.poison_shared()
        if "poison" in self.options.checks:
            self.judge.fill(self.C.raw, self.C.guard_words, self.C.words, UNWRITTEN)
        if staggered and self.built.staggered is not None:
            unused = self.C.data
            self.built.staggered.launch(self.launch, [*self.arguments, unused])
        else:
            self.built.program.launch(self.launch, self.arguments)
        self.backend.synchronize()

    def _trial(self, trial: DeviceTrial, check: str, *, load: bool = True) -> Accuracy:
        """Run once and look at everything the kernel could have got wrong."""
        if load:
            self.prepared.load(trial)
        self.run(staggered=check == "staggered")
        self.require_intact(trial)
        verdict = self._verdict(trial)
        if check in self.options.checks and verdict.wrong:
            raise self._wrong(trial, check)
        return verdict.accuracy

    def require_intact(self, trial: DeviceTrial) -> None:
        """`WrongError` where something was written outside of C, or to the trial's inputs."""
        if "guards" in self.options.checks:
            for matrix in (*self.prepared.inputs, self.C):
                broken = self.judge.broken_guard(matrix)
                if broken:
                    raise WrongError("guards", broken)
        if "inputs" not in self.options.checks:
            return
        for matrix, source in zip(self.prepared.inputs, trial.inputs, strict=True):
            changed = self.judge.differing(matrix.data, source, matrix.words, matrix.word_bytes)
            if changed.first is not None:
                raise WrongError(
                    "inputs",
                    f"changed its input {matrix.name}: {changed.words:,} elements, "
                    f"the first at offset {changed.first:,}",
                )

    def _wrong(self, trial: DeviceTrial, check: str) -> WrongError:
        """What is wrong with C, in words, and as a map where that was asked for."""
        C = self.result(trial)
        reason = diagnosis.explain(C, trial.host, self.factor, self.case)
        if self.case.kernel.finish is not None:
            reason += diagnosis.unwritten_parts(self._parts(trial))
        if check == "staggered":
            reason = f"a race: wrong when its warps do not keep step; {reason}"
        if not self.options.error_map:
            return WrongError(check, reason)
        found = error_map.of(
            C,
            trial.host.expected,
            diagnosis.wrong_elements(C, trial.host, self.factor),
            bound=None if trial.host.S is None else self.factor * U32 * trial.host.S,
            title=f"{self.case.label}, {trial.host.name} inputs, on {self.backend.info.name}",
        )
        return WrongError(check, reason, found)

    def _verdict(self, trial: DeviceTrial) -> oracle.Verdict:
        """What C is worth on a trial; the host finishes what a kernel leaves in parts."""
        if self.case.kernel.finish is None:
            return self.judge.compare(self.C.data, trial, self.factor)
        return oracle.judge(self.result(trial), trial.host, self.factor)

    def result(self, trial: DeviceTrial) -> oracle.Array:
        """C on the host."""
        if self.case.kernel.finish is None:
            return self.judge.download(self.C.data, trial.host)
        return oracle.total(self._parts(trial))

    def _parts(self, trial: DeviceTrial) -> oracle.Array:
        """The partial results on the host, one per block."""
        kind = np.int32 if trial.host.expected.dtype == np.int32 else np.float32
        parts = np.empty((1, self.C.words), kind)
        self.backend.read(self.C.data, parts)
        return parts
