"""One case from source to outcome: build, check, warm up, sample until settled, check again.

Knows no backend by name. A kernel is timed only after it was right on every trial, and its timing
counts only if it still is right afterwards.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from matbench import workloads
from matbench.analysis import architectures, blocks, statistics
from matbench.analysis.blocks import BlockSample
from matbench.backends import (
    STAMP_BYTES,
    STAMP_WORDS,
    VARIANTS,
    Argument,
    Backend,
    Buffer,
    Program,
    TensorMap,
    Variant,
    host_conditions,
)
from matbench.cache import Cache
from matbench.errors import BuildError, CaseError, MatbenchError, OutOfMemoryError
from matbench.kernelfile import cuda_c, expressions
from matbench.measure import diagnosis, limits, oracle
from matbench.measure.judge import (
    OUTSIDE_C,
    OUTSIDE_INPUTS,
    OUTSIDE_NARROW,
    UNWRITTEN,
    DeviceTrial,
    Guarded,
    Judge,
)
from matbench.model import (
    U32,
    WORD_BYTES,
    Accuracy,
    Case,
    Conditions,
    DeviceInfo,
    Outcome,
    Problem,
    Reading,
    Status,
    TimingMode,
)

#: What is checked, each by its name. All of it always is; tests take one away to show what it does.
CHECKS = frozenset(
    {
        "reference", "integers", "selection", "fresh", "repeat", "determinism",
        "guards", "inputs", "poison", "shared", "staggered",
    }
)  # fmt: skip


#: A launch slower than this is repeated no more than it must be.
_SLOW_NS = 100e6


#: How often a case is measured at most when clocks were not calm, how often they are looked at,
#: and by which share they may move.
_MOST_TRIES = 3
_LOOK_AT_CLOCKS_NS = 50_000_000
_CLOCK_TOLERANCE = 0.02
#: How long a GPU is sampled at least.
_LEAST_TIME_NS = 30e6
#: How long a sample of hot launches, back to back, takes at least.
_HOT_SAMPLE_NS = 1e6


class Options(msgspec.Struct, frozen=True):
    """How cases are measured; None: what suits the device.

    A GPU is sampled until its median is known to ±0.5%, for 2 s at most, with a cold cache. A CPU
    shares its time with all else on the machine: ±2%, 0.5 s, and its caches as they are.
    `error_map` is where the error of a wrong C is drawn; later ones get a number to that name.
    """

    timed: bool = True
    blocks: bool = True
    cold: bool = True
    hot: bool = False
    graph: bool = False
    precision: float | None = None
    max_time_s: float | None = None
    minimum_samples: int = 10
    checks: frozenset[str] = CHECKS
    guarded: bool = True
    error_map: str | None = None

    def on(self, kind: Literal["gpu", "cpu"]) -> Options:
        """The options with everything decided for a device of that kind."""
        gpu = kind == "gpu"
        return msgspec.structs.replace(
            self,
            cold=(self.cold or not self.hot) and gpu,
            hot=self.hot and gpu,
            graph=self.graph and gpu,
            precision=self.precision or (0.005 if gpu else 0.02),
            max_time_s=self.max_time_s or (2.0 if gpu else 0.5),
        )

    @property
    def builds(self) -> tuple[Variant, ...]:
        """The builds of a kernel that measuring it takes."""
        clocked = self.timed and self.blocks
        named = {"plain": True, "clocked": clocked, "staggered": "staggered" in self.checks}
        return tuple(variant for variant in VARIANTS if named[variant])

    @property
    def mode(self) -> TimingMode:
        """What the row's own time is; with both, the hot one stands beside it."""
        return "cold" if self.cold else "hot graph" if self.graph else "hot"


class _Output(NamedTuple):
    """The guarded C, and what the first run left there."""

    C: Guarded
    first: Buffer


class _State(NamedTuple):
    """One problem on the device: its trials, and the guarded inputs that kernels work on.

    Outputs are by their shape: some kernels leave one partial result per block.
    """

    problem: Problem
    reading: Reading
    reference: DeviceTrial
    given: DeviceTrial | None
    others: dict[str, list[DeviceTrial]]
    inputs: tuple[Guarded, ...]
    outputs: dict[tuple[int, int], _Output]


class WrongError(Exception):
    """A check failed; says which, and why in words."""

    def __init__(self, check: str, reason: str, notes: tuple[str, ...] = ()) -> None:
        super().__init__(check, reason, notes)
        self.check = check
        self.reason = reason
        self.notes = notes


class Duel(msgspec.Struct, frozen=True):
    """Two cases compared: their outcomes, and no comparison where one of them is not right."""

    baseline: Outcome
    candidate: Outcome
    comparison: statistics.Comparison | None


class _Built(NamedTuple):
    program: Program
    clocked: Program | None
    staggered: Program | None
    build_s: float
    notes: tuple[str, ...]


class Session:
    """An open device that works through cases, keeping what cases of one problem share."""

    def __init__(self, backend: Backend, cache: Cache, options: Options) -> None:
        self.backend = backend
        self.cache = cache
        self.options = options.on(backend.info.kind)
        self.judge = Judge(backend)
        self.state: _State | None = None
        self.held: list[Buffer] = []
        self.built: dict[bytes, _Built] = {}
        self.limits: limits.Limits | None = None

    # -- what cases share ------------------------------------------------------------------

    def prepare(self, problem: Problem, reading: Reading) -> None:
        """Draw the inputs, take or compute the reference, and upload them; once per problem."""
        if self.state is not None and (self.state.problem, self.state.reading) == (
            problem,
            reading,
        ):
            return
        self._forget()
        require_host_memory(problem)
        trials = oracle.trials(problem, reading, self.cache)
        workload = workloads.of(problem)
        word_bytes = WORD_BYTES[reading.storage]

        def upload(trial: oracle.Trial) -> DeviceTrial:
            uploaded = self.judge.upload(trial, reading.storage)
            self._keep(*uploaded.buffers)
            return uploaded

        def guarded(name: str) -> Guarded:
            made = self.judge.guarded(
                name,
                workload.shape(name, problem),
                OUTSIDE_NARROW if word_bytes == 2 else OUTSIDE_INPUTS,
                word_bytes=word_bytes,
                guards=self.options.guarded,
            )
            self._keep(made.raw)
            return made

        with contextlib.ExitStack() as unwind:
            unwind.callback(self._release_all)
            self.state = _State(
                problem,
                reading,
                upload(trials.reference),
                upload(trials.given) if trials.given is not None else None,
                {name: list(map(upload, found)) for name, found in trials.others.items()},
                tuple(map(guarded, workload.reads)),
                {},
            )
            unwind.pop_all()

    def output(self, shape: tuple[int, int]) -> _Output:
        """C of that shape, guarded; made when it is first asked for."""
        assert self.state is not None
        if shape not in self.state.outputs:
            C = self.judge.guarded("C", shape, OUTSIDE_C, guards=self.options.guarded)
            self._keep(C.raw)
            self.state.outputs[shape] = _Output(C, self._keep(self.backend.allocate(4 * C.words)))
        return self.state.outputs[shape]

    def _keep(self, *buffers: Buffer) -> Buffer:
        self.held.extend(buffers)
        return buffers[0]

    def _release_all(self) -> None:
        while self.held:
            self.backend.release(self.held.pop())

    def _forget(self) -> None:
        self.state = None
        self._release_all()

    def build(self, case: Case, variants: Sequence[Variant] | None = None) -> None:
        """Compile what measuring the case needs; `BuildError` carries the compiler's message."""
        self._build(case, variants)

    def _build(self, case: Case, variants: Sequence[Variant] | None = None) -> _Built:
        width = case.launch.block[0] if case.launch is not None else 1
        key = msgspec.msgpack.encode(
            (case.kernel.sha256, case.kernel.name, case.params, width, variants)
        )
        if key not in self.built:
            start = time.perf_counter()
            # Into a library's machine code nothing can be put.
            wanted = ("plain",) if case.kernel.library else variants or self.options.builds
            builds: dict[Variant, Program] = {}
            notes = []
            for variant in self.backend.variants:
                if variant not in wanted:
                    continue
                try:
                    builds[variant] = self.backend.build(
                        case.kernel, case.params, variant, block_width=width
                    )
                except BuildError as error:
                    if variant == "plain":
                        raise
                    # What wraps the kernel may not suit it; then that look at it is missing.
                    notes.append(f"not {variant}: {error.reason.splitlines()[0]}")
            self.built[key] = _Built(
                builds["plain"],
                builds.get("clocked"),
                builds.get("staggered"),
                time.perf_counter() - start,
                tuple(notes),
            )
        return self.built[key]

    def resident_blocks(self, case: Case) -> int | None:
        """Blocks that a multiprocessor holds of a case at once, where the driver tells."""
        if case.launch is None:
            return None
        return self._build(case).program.resident_blocks(case.launch)

    def copy_bytes_per_s(self, problem: Problem) -> float | None:
        """The device's bandwidth; measured once for a GPU, for a CPU if speed is bytes there."""
        counted = workloads.of(problem).rate == "B/s"
        if self.limits is None and (counted or self.backend.info.kind == "gpu"):
            with contextlib.suppress(CaseError):  # as when memory is short
                self.limits = limits.measured(self.backend, self.cache)
        return self.limits.copy_bytes_per_s if self.limits is not None else None

    def close(self) -> None:
        """Give back all memory and the device."""
        self._forget()
        self.judge.close()
        self.backend.close()

    # -- one case --------------------------------------------------------------------------

    def measure(self, case: Case) -> Outcome:
        """Check, time and check again. `CaseError` when the kernel could not run."""
        return self._run(case, timed=self.options.timed)

    def _run(self, case: Case, *, timed: bool) -> Outcome:
        self.prepare(case.problem, case.kernel.reading)
        run = _Run(self, case, self._build(case), timed=timed)
        try:
            return run.outcome()
        finally:
            run.restore()

    def compare(
        self, baseline: Case, candidate: Case, plan: statistics.ComparisonPlan, seed: int
    ) -> Duel:
        """Check both, time them in turns on the same inputs and buffers, check both again.

        The order within each pair is random, seeded: neither profits from coming second.
        """
        cases = (baseline, candidate)
        first, second = (case.kernel.reading.storage for case in cases)
        if first != second:
            raise CaseError(f"{first} and {second} inputs are not the same ones")
        outcomes = [self._run(case, timed=False) for case in cases]
        comparison = None
        if all(outcome.status == "measured" for outcome in outcomes):
            samples, comparison = self._take_turns(cases, plan, seed)
            outcomes = [self._run(case, timed=False) for case in cases]
            if any(outcome.status != "measured" for outcome in outcomes):
                return Duel(outcomes[0], outcomes[1], None)
            outcomes = [
                msgspec.structs.replace(
                    outcome,
                    samples_ns=tuple(taken),
                    median_ns=float(np.median(taken)),
                    interval_ns=statistics.median_interval(taken),
                    timing_mode=self.options.mode,
                    notes=statistics.notes(taken),
                )
                for outcome, taken in zip(outcomes, samples, strict=True)
            ]
        return Duel(outcomes[0], outcomes[1], comparison)

    def look(self, case: Case, samples: int, limit_ns: float, *, check: bool) -> Outcome:
        """A few samples of a plain build, checked before unless it was already.

        They end early when two of them have taken longer than `limit_ns`.
        """
        self.prepare(case.problem, case.kernel.reading)
        run = _Run(self, case, self._build(case, ("plain",)), timed=True)
        try:
            return run.look(samples, limit_ns, check=check)
        finally:
            run.restore()

    def profile(self, case: Case) -> tuple[Outcome, BlockSample | None]:
        """Check a case, then clock its blocks; no sample of a kernel that is not right."""
        outcome = self._run(case, timed=False)
        clocked = self._build(case).clocked
        if outcome.status != "measured" or clocked is None:
            return outcome, None
        run = _Run(self, case, self._build(case), timed=True)
        run.load(run.state.reference)
        once = run.sample()
        return outcome, run.profile(clocked, 9 if once < _SLOW_NS else 1)

    def _take_turns(
        self, cases: tuple[Case, Case], plan: statistics.ComparisonPlan, seed: int
    ) -> tuple[tuple[list[float], list[float]], statistics.Comparison]:
        runs = [_Run(self, case, self._build(case), timed=True) for case in cases]
        runs[0].load(runs[0].state.reference)
        samples: tuple[list[float], list[float]] = ([], [])
        samplers = [run.sampler() for run in runs]
        for sample in samplers * 2:
            sample()  # warm-up
        started = time.perf_counter_ns()
        for order in statistics.interleaved_order(plan.looks[-1], seed):
            for which in order:
                samples[which].append(samplers[which]())
            comparison = plan.decide(*samples, time.perf_counter_ns() - started)
            if comparison is not None:
                return samples, comparison
        raise AssertionError("a plan ends at its last look")


class _Run:
    """One case at work on a session's device."""

    def __init__(self, session: Session, case: Case, built: _Built, *, timed: bool) -> None:
        assert session.state is not None and case.launch is not None
        self.session = session
        self.backend = session.backend
        self.judge = session.judge
        self.options = session.options
        self.cache = session.cache
        self.state = session.state
        self.case = case
        self.timed = timed
        self.launch = case.launch
        self.built = built
        workload = workloads.of(case.problem)
        self.factor = oracle.error_factor(
            workload.terms(case.problem),
            case.kernel.error_constant,
            truncated=case.kernel.truncates,
        )
        self.shape = workload.shape("C", case.problem)
        if case.kernel.finish is not None:
            self.shape = 1, self.launch.blocks
        self.C, self.first = session.output(self.shape)
        self.arguments = self._arguments()

    def _arguments(self) -> list[Argument]:
        problem, kernel = self.case.problem, self.case.kernel
        workload = workloads.of(problem)
        guarded = dict(zip(workload.buffers, (*self.state.inputs, self.C), strict=True))
        buffers = {name: matrix.data for name, matrix in guarded.items()}
        values = {**self.backend.info.limits, **self.case.params, **workload.values(problem)}

        def argument(text: str) -> Argument:
            if text in buffers:
                return buffers[text]
            described = cuda_c.tensor_map(text)
            if described is None:
                return expressions.evaluate(text, values)
            name, *box = described
            rows, columns = (expressions.whole(side, values) for side in box)
            storage = "float32" if name == "C" else kernel.reading.storage
            return TensorMap(buffers[name], storage, workload.shape(name, problem), (rows, columns))

        return [argument(text) for text in kernel.args]

    def outcome(self) -> Outcome:
        case = self.case
        known = describe(case, self.backend.info)
        known["build_s"] = self.built.build_s
        known["resources"] = self.built.program.resources
        known |= self.occupancy()
        try:
            accuracy = self.check_before()
            known |= msgspec.structs.asdict(accuracy)
            if self.timed:
                known["copy_bytes_per_s"] = self.session.copy_bytes_per_s(case.problem)
                known |= self.time()
            self.check_after()
        except WrongError as wrong:
            # Times of a wrong kernel are none.
            timed = [
                name for name in known if name.endswith(("_ns", "_imbalance", "_perturbation"))
            ]
            known |= dict.fromkeys(timed)
            known |= {"samples_ns": (), "hot_samples_ns": ()}
            known["notes"] = (*known.get("notes", ()), *self.built.notes, *wrong.notes)
            return Outcome(**known, status="wrong", reason=f"{wrong.check}: {wrong.reason}")
        known["notes"] = (*known.get("notes", ()), *self.built.notes)
        return Outcome(**known, status="measured")

    def occupancy(self) -> dict[str, Any]:
        """The blocks that fit on a multiprocessor at once, and their share of its warps."""
        resident = self.built.program.resident_blocks(self.launch)
        found = architectures.of_capability(self.backend.info.compute_capability)
        if resident is None or found is None:
            return {"resident_blocks": resident}
        warps = resident * -(-self.launch.threads_per_block // architectures.WARP)
        return {"resident_blocks": resident, "occupancy": warps / found.warps}

    def look(self, count: int, limit_ns: float, *, check: bool) -> Outcome:
        """The first sample warms up."""
        known = describe(self.case, self.backend.info)
        try:
            if check:
                known |= msgspec.structs.asdict(self.check_before())
        except WrongError as wrong:
            reason = f"{wrong.check}: {wrong.reason}"
            return Outcome(**known, status="wrong", reason=reason, notes=wrong.notes)
        self.load(self.state.reference)
        self.sample()
        samples: list[float] = []
        while len(samples) < count and not (len(samples) > 1 and min(samples) > limit_ns):
            samples.append(self.sample())
        known |= {"samples_ns": tuple(samples), "median_ns": float(np.median(samples))}
        return Outcome(**known, timing_mode=self.options.mode, status="measured")

    def check_before(self) -> Accuracy:
        """Every trial that needs no second look, before anything is timed."""
        accuracy = self.trial(self.state.reference, "reference")
        self.backend.copy(self.first, self.C.data)
        for name in ("integers", "selection"):
            for trial in self.state.others.get(name, ()):
                self.trial(trial, name)
        if self.built.staggered is not None:
            self.trial(self.state.reference, "staggered")
        if self.state.given is None:
            return accuracy
        # Judged by its arithmetic on rounded inputs; reported against the inputs as given.
        self.load(self.state.given)
        self.run()
        verdict = self.verdict(self.state.given)
        return msgspec.structs.replace(verdict.accuracy, bound_ratio=accuracy.bound_ratio)

    def verdict(self, trial: DeviceTrial) -> oracle.Verdict:
        """What C is worth on a trial; the host finishes what a kernel leaves in parts."""
        if self.case.kernel.finish is None:
            return self.judge.compare(self.C.data, trial, self.factor)
        return oracle.judge(self.result(trial), trial.host, self.factor)

    def result(self, trial: DeviceTrial) -> oracle.Array:
        """C on the host."""
        if self.case.kernel.finish is None:
            return self.judge.download(self.C.data, trial.host)
        return oracle.total(self.parts(trial))

    def parts(self, trial: DeviceTrial) -> oracle.Array:
        """The partial results on the host, one per block."""
        kind = np.int32 if trial.host.expected.dtype == np.int32 else np.float32
        parts = np.empty((1, self.C.words), kind)
        self.backend.read(self.C.data, parts)
        return parts

    def check_after(self) -> None:
        """C poisoned and computed anew on the inputs that were timed, then on fresh ones."""
        if not self.timed:
            self.load(self.state.reference)
            self.run()  # in place of the launches that timing makes
        self.trial(self.state.reference, "repeat", load=False)
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
        for trial in self.state.others.get("fresh", ()):
            self.trial(trial, "fresh")

    def load(self, trial: DeviceTrial) -> None:
        """Put a trial's inputs where the kernel reads them."""
        for matrix, source in zip(self.state.inputs, trial.inputs, strict=True):
            self.backend.copy(matrix.data, source)

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

    def trial(self, trial: DeviceTrial, check: str, *, load: bool = True) -> Accuracy:
        """Run once and look at everything the kernel could have got wrong."""
        if load:
            self.load(trial)
        self.run(staggered=check == "staggered")
        checks = self.options.checks
        if "guards" in checks:
            for matrix in (*self.state.inputs, self.C):
                broken = self.judge.broken_guard(matrix)
                if broken:
                    raise WrongError("guards", broken)
        if "inputs" in checks:
            for matrix, source in zip(self.state.inputs, trial.inputs, strict=True):
                changed = self.judge.differing(matrix.data, source, matrix.words, matrix.word_bytes)
                if changed.first is not None:
                    raise WrongError(
                        "inputs",
                        f"changed its input {matrix.name}: {changed.words:,} elements, "
                        f"the first at offset {changed.first:,}",
                    )
        verdict = self.verdict(trial)
        if check in checks and verdict.wrong:
            C = self.result(trial)
            reason = diagnosis.explain(C, trial.host, self.factor, self.case)
            if self.case.kernel.finish is not None:
                reason += diagnosis.unwritten_parts(self.parts(trial))
            if check == "staggered":
                reason = f"a race: wrong when its warps do not keep step; {reason}"
            raise WrongError(check, reason, self.drawn(C, trial.host))
        return verdict.accuracy

    def drawn(self, C: oracle.Array, trial: oracle.Trial) -> tuple[str, ...]:
        """Draw the error of a wrong C if that was asked for; what came of it, in words."""
        if self.options.error_map is None:
            return ()
        from matbench.show import plots

        path = plots.unused(Path(self.options.error_map))
        try:
            plots.error_map(
                C,
                trial.expected,
                diagnosis.wrong_elements(C, trial, self.factor),
                path,
                bound=None if trial.S is None else self.factor * U32 * trial.S,
                title=f"{self.case.label}, {trial.name} inputs, on {self.backend.info.name}",
            )
        except (MatbenchError, MemoryError) as error:
            return (f"no error map: {error}",)
        return (f"error map: {path}",)

    def time(self) -> dict[str, Any]:
        """Sample single launches until their median is known; then some with stamps."""
        self.load(self.state.reference)
        conditions = self.backend.conditions
        if self.options.cold or not self.options.hot:
            found = sample_until_known(self.sample, self.options, conditions)
        if self.options.hot:
            hot = sample_until_known(self.hot_sampler(), self.options, conditions)
            if not self.options.cold:
                found = hot
            else:
                for name in ("median_ns", "interval_ns", "samples_ns"):
                    found[f"hot_{name}"] = hot[name]
        if self.built.clocked is not None:
            found |= self.time_blocks(self.built.clocked, float(found["median_ns"]))
        return found

    def sample(self) -> float:
        """One launch, in nanoseconds."""
        return self.backend.time_ns(
            self.built.program, self.launch, self.arguments, cold=self.options.cold
        )

    def sampler(self) -> Callable[[], float]:
        """Samples of the kind that the row's own time is made of."""
        return self.sample if self.options.cold or not self.options.hot else self.hot_sampler()

    def hot_sampler(self) -> Callable[[], float]:
        """Samples that are means of launches back to back, as many as make a sample long enough."""
        program, launch, arguments = self.built.program, self.launch, self.arguments

        def sample(count: int) -> float:
            return self.backend.time_hot_ns(
                program, launch, arguments, count=count, graph=self.options.graph
            )

        count = min(1000, max(1, round(_HOT_SAMPLE_NS / sample(3))))
        return lambda: sample(count)

    def time_blocks(self, clocked: Program, plain_ns: float) -> dict[str, Any]:
        """What the stamps of an instrumented launch say, in the record's words."""
        pairs = 5 if plain_ns < _SLOW_NS / 50 else 1
        sample = self.profile(clocked, pairs)
        try:
            median_ns, imbalance = blocks.brief(sample, self.backend.info)
        except CaseError:  # no block stamped its end: nothing is known of them
            return {}
        return {
            "block_median_ns": median_ns,
            "block_imbalance": imbalance,
            "block_perturbation": sample.perturbation,
            **({"sm_mhz": sample.ticks_per_ns * 1e3} if self.backend.clock == "clock64" else {}),
        }

    def profile(self, clocked: Program, pairs: int) -> BlockSample:
        """The stamps of one instrumented launch, and what clocking it cost.

        Plain and instrumented launches take turns, so that drift does not count as a cost.
        """
        stamps = np.zeros((self.launch.blocks, STAMP_WORDS), np.uint64)
        buffer = self.backend.allocate(self.launch.blocks * STAMP_BYTES)
        clocked_ns, plain_ns = [], []
        try:
            for _ in range(pairs):
                self.backend.write(buffer, np.zeros_like(stamps))
                arguments = [*self.arguments, buffer]
                cold = self.options.cold
                clocked_ns.append(self.backend.time_ns(clocked, self.launch, arguments, cold=cold))
                plain_ns.append(self.sample())
            self.backend.read(buffer, stamps)
        finally:
            self.backend.release(buffer)
        return BlockSample(
            stamps=stamps,
            ticks_per_ns=self.backend.ticks_per_ns(stamps),
            event_ns=clocked_ns[-1],
            empty_ns=self.judge.empty_launch_ns(),
            perturbation=float(np.median(clocked_ns)) / float(np.median(plain_ns)) - 1,
        )

    def restore(self) -> None:
        """Leave guards and inputs as the next case needs them, whatever this one did."""
        try:
            for matrix in (*self.state.inputs, self.C):
                self.judge.broken_guard(matrix)
        except CaseError:
            pass  # the device is lost; the worker is replaced


def sample_until_known(
    sample: Callable[[], float], options: Options, conditions: Callable[[], Conditions]
) -> dict[str, Any]:
    """Take samples (nanoseconds) until the median is known to the precision asked for.

    When a GPU's clocks were held down or moved meanwhile, up to twice more: the calmest try counts,
    and says what was wrong with it if none was calm.
    """
    tries: list[_Try] = []
    while len(tries) < _MOST_TRIES:
        tries.append(_sample_once(sample, options, conditions))
        if not tries[-1].unrest:
            break
    best = min(tries, key=lambda found: len(found.unrest))
    samples = best.samples
    return {
        "samples_ns": tuple(samples),
        "median_ns": float(np.median(samples)),
        "interval_ns": statistics.median_interval(samples),
        "timing_mode": options.mode,
        "warmups": best.warmups,
        "settled": best.stopped == statistics.SETTLED,
        "stopped": best.stopped,
        "conditions": best.conditions,
        "attempts": len(tries),
        "notes": (*statistics.notes(samples), *best.unrest),
    }


class _Try(NamedTuple):
    samples: list[float]
    warmups: int
    stopped: str
    conditions: tuple[Conditions, ...]
    unrest: tuple[str, ...]


def _sample_once(
    sample: Callable[[], float], options: Options, conditions: Callable[[], Conditions]
) -> _Try:
    assert options.precision is not None and options.max_time_s is not None
    before = conditions()
    warmups = [sample()]
    while not statistics.settled_warm_up(warmups):
        warmups.append(sample())
    rule = statistics.StoppingRule(
        precision=options.precision,
        minimum=options.minimum_samples,
        minimum_time_ns=_LEAST_TIME_NS if options.cold else 0.0,
        maximum_time_ns=options.max_time_s * 1e9,
    )
    samples: list[float] = []
    during = [conditions()]
    started = looked = time.perf_counter_ns()
    stopped = None
    while stopped is None:
        samples.append(sample())
        now = time.perf_counter_ns()
        stopped = rule.decide(samples, now - started)
        if stopped is not None or now - looked > _LOOK_AT_CLOCKS_NS:
            during.append(conditions())
            looked = now
    return _Try(samples, len(warmups), stopped, (before, *during), _unrest(during))


def _unrest(during: Sequence[Conditions]) -> tuple[str, ...]:
    """What was wrong with a GPU's clocks while it was sampled, in words."""
    found = []
    throttled = sorted({reason for moment in during for reason in moment.throttled})
    if throttled:
        found.append(f"clocks held down while sampled: {', '.join(throttled)}")
    clocks = [moment.sm_mhz for moment in during if moment.sm_mhz]
    if clocks and max(clocks) - min(clocks) > _CLOCK_TOLERANCE * max(clocks):
        found.append(
            f"SM clock moved from {min(clocks):,} to {max(clocks):,} MHz while sampled "
            "(`matbench info` says how to hold it)"
        )
    return tuple(found)


def measure_library(case: Case, device: DeviceInfo, cache: Cache, options: Options) -> Outcome:
    """A baseline that is a library's own product on the host: NumPy's, checked like a kernel."""
    problem = case.problem
    require_host_memory(problem)
    trials = oracle.trials(problem, case.kernel.reading, cache)
    reference = trials.reference
    every = [reference, *(trial for found in trials.others.values() for trial in found)]
    factor = oracle.error_factor(problem.K)
    known = describe(case, device)
    accuracies = []
    for trial in every:
        A, B = trial.inputs
        C = np.matmul(A, B)
        verdict = oracle.judge(C, trial, factor)
        if verdict.wrong:
            reason = diagnosis.explain(C, trial, factor, case)
            return Outcome(**known, status="wrong", reason=f"{trial.name}: {reason}")
        accuracies.append(verdict.accuracy)
    A, B = reference.inputs
    C = np.empty((problem.M, problem.N), np.float32)

    def sample() -> float:
        start = time.perf_counter_ns()
        np.matmul(A, B, out=C)
        return float(time.perf_counter_ns() - start)

    if options.timed:
        known |= sample_until_known(sample, options.on("cpu"), host_conditions)
    return Outcome(**known, **msgspec.structs.asdict(accuracies[0]), status="measured")


def host_memory_bytes() -> int | None:
    """The memory of this machine; None where it is not told."""
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


def describe(case: Case, device: DeviceInfo) -> dict[str, Any]:
    """What an outcome says of its case, whatever became of it."""
    return {
        "kernel": case.kernel.name,
        "sha256": case.kernel.sha256,
        "group": case.kernel.group,
        "summary": case.kernel.summary,
        "params": case.params,
        "problem": case.problem,
        "backend": device.backend,
        "device": device.name,
        "device_kind": device.kind,
        "precision": case.kernel.precision,
        "launch": case.launch if case.kernel.library is None else None,
    }


def not_measured(case: Case, device: DeviceInfo, status: Status, reason: str) -> Outcome:
    """An outcome for a case that was skipped or failed."""
    return Outcome(**describe(case, device), status=status, reason=reason)


def not_run(case: Case, device: DeviceInfo) -> Outcome:
    """An outcome for a case that says itself why it cannot run; its own mistake is a failure."""
    assert case.skip is not None
    return not_measured(case, device, "failed" if case.is_mistaken else "skipped", case.skip)
