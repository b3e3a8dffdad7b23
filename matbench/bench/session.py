"""An open device that builds, checks and times cases.

Knows no backend by name. A kernel is timed only if it was right on every trial, and every timed
launch is verified.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Concatenate, ParamSpec, TypeVar

import msgspec

from matbench import workloads
from matbench.analysis import block_times, limits
from matbench.backends.protocol import Backend, Program, Variant, Variants
from matbench.bench import bandwidth, checks, sustained
from matbench.bench.device_kernels import DeviceKernels
from matbench.bench.launches import Launches, Times, launches_of
from matbench.bench.loop import SLOW_NS, Sampler, sample_until_known, timing_of
from matbench.bench.options import FIRST, Options, Round
from matbench.bench.prepared import Prepared
from matbench.bench.runnable import Built, Runnable, WrongError
from matbench.bench.samples import Samples
from matbench.bench.sustained import Block
from matbench.cache import Cache
from matbench.errors import BuildError, CaseError
from matbench.kernelfile import host_file, includes
from matbench.model import BuildKey, Case, NumericContract, Problem
from matbench.records.outcome import Accuracy, Build, CaseRecord, Outcome, Timing
from matbench.workloads import oracle

P = ParamSpec("P")
T = TypeVar("T")

_NOT_SUSTAINED = "not sustained: with beta, each launch would add to C of the one before"


def _turn(
    step: Callable[Concatenate[Session, P], T],
) -> Callable[Concatenate[Session, P], T | Outcome]:
    """A step of cases that take turns: if one is wrong its outcome, and no more turns."""

    @functools.wraps(step)
    def taken(session: Session, /, *given: P.args, **named: P.kwargs) -> T | Outcome:
        try:
            return step(session, *given, **named)
        except (WrongError, CaseError) as error:
            session._turns.__exit__(type(error), error, error.__traceback__)
            if isinstance(error, CaseError):
                raise
            return session._outcome(error.case, session._build(error.case), wrong=error)

    return taken


class Session:
    """A device, and the data its cases share: the inputs of one problem, builds, its bandwidth."""

    def __init__(
        self, backend: Backend, cache: Cache, options: Options, kernels: DeviceKernels | None = None
    ) -> None:
        self.backend = backend
        self.cache = cache
        self.options = options.on(backend.info.kind)
        self.kernels = kernels or DeviceKernels(backend)
        self._prepared: Prepared | None = None
        self._samples: Samples | None = None
        self._built: dict[tuple[BuildKey, int, Variants | None], Built] = {}
        self._beside: Session | None = None  # keeps another problem beside the measured one
        self._bandwidth: limits.Bandwidth | None = None
        self._reading_C: set[BuildKey] = set()  # builds that were found to read C at beta = 0
        self._right: set[tuple[BuildKey, Problem]] = set()  # those that were right on every trial
        self._reordered: set[BuildKey] = set()  # builds that were tried in other orders
        self._turns = contextlib.ExitStack()
        self._sides: list[tuple[Launches, Sampler]] = []  # the cases that take turns

    def prepare(self, problem: Problem, contract: NumericContract) -> None:
        """Draw the inputs, load or compute the reference, and upload them; once per problem."""
        known, asked = self._prepared, (problem, contract)
        if known is not None:
            if self._samples and not known.is_spoiled and (known.problem, known.contract) == asked:
                return
            self._prepared = self._samples = None
            known.release()
        self._prepared = Prepared(
            self.kernels, problem, contract, self.cache, guards=self.options.guarded,
            is_masked="mask" in self.options.checks,
        )  # fmt: skip
        self._samples = Samples(self._prepared, self.options.checks)

    def build(self, case: Case, variants: Variants | None = None) -> tuple[str, ...]:
        """Compile the builds needed for the case, and return the warnings; `BuildError` has the
        compiler's message."""
        return self._build(case, variants).program.warnings

    def program(self, case: Case) -> Program:
        """The plain build of a case, for a feature's task."""
        return self._build(case, ("plain",)).program

    def measure(
        self,
        case: Case,
        which: Round = FIRST,
        times_of: Callable[[Runnable], Times] | None = None,
        variants: Variants | None = None,
    ) -> Outcome:
        """Check and time a case in a round, or as `times_of` it does; `CaseError` if the kernel
        could not run.

        In later rounds, the trials that it passed in this process are not run again. If it may be
        right except that it reads C, which BLAS forbids if beta is 0, it is run again with numbers
        in C, which must not affect the result.
        """
        if times_of is None:
            is_timed = self.options.timed and self.options.replay is None
            times_of = partial(self._timed, which) if is_timed else self.untimed
            is_sustained = which.is_sustained or (is_timed and self.options.rotating)
            times_of = self._sustained if is_sustained else times_of
        case = self._as_it_reads(case)
        built = self._build(case, variants)
        try:
            with self._runnable(case, built) as runnable:
                times = times_of(runnable)
            if built.reordered is not None and case.build_key not in self._reordered:
                shared = self.backend, self.cache, self.options, self.kernels
                self._beside = self._beside or Session(*shared)
                for one in checks.reordered_cases(case):
                    with self._beside._runnable(one, built) as small:
                        if checks.require_any_order(small):
                            break
                self._reordered.add(case.build_key)
        except WrongError as wrong:
            if wrong.reads_C and case.problem.workload == "matmul" and case.problem.beta == 0:
                self._reading_C.add(case.build_key)
                again = self.measure(case, which, times_of, variants)
                if again.status == "measured":
                    return again
                self._reading_C.discard(case.build_key)  # there is another mistake
            return self._outcome(case, built, runnable.accuracy, wrong=wrong)
        return self._outcome(case, built, runnable.accuracy, times)

    def _timed(self, which: Round, runnable: Runnable) -> Times:
        """Sample until the medians are known; in the first round, time the blocks, too."""
        options, backend, timings = self.options, self.backend, dict[bool, Timing]()
        launches, blocks = launches_of(runnable, which=which), None
        with self._checked(runnable, again=which.number > 1):
            for cold in [True] * options.cold + [False] * options.hot:
                timings[cold] = sample_until_known(
                    launches.sampler(cold=cold), launches.seed, options, backend.conditions,
                    cold=cold, launching_ns=lambda: launches.launching_ns, number=which.number,
                    earlier=which.cold_ns if cold else which.hot_ns,
                )  # fmt: skip
                launches.verify()
            timing = timings[options.cold]
            assert timing.median_ns is not None
            if which.number == 1 and runnable.built.clocked is not None:
                is_short = timing.median_ns < SLOW_NS / 50
                pairs, known_ns = (5, None) if is_short else (1, timing.median_ns)
                is_sm = backend.clock_is_sm
                sample = launches.stamps(runnable.built.clocked, pairs, known_ns)
                with contextlib.suppress(CaseError):  # no block has an end stamp
                    blocks = block_times.brief(sample, backend.info, clock_is_sm=is_sm)
            launches.verify()
        times = self._judged(runnable, timing, is_cold=options.cold)
        if options.sustained_s is not None and runnable.case.problem.beta:
            times = times._replace(notes=(*times.notes, _NOT_SUSTAINED))
        return times._replace(
            cold=timings.get(True), hot=timings.get(False), blocks=blocks, host_ns=launches.host_ns
        )

    def forget(self) -> None:
        """Let go of all builds, and of what is known of them."""
        for known in (self._built, self._reading_C, self._right, self._reordered):
            known.clear()

    def close(self) -> None:
        """Release all memory and the device."""
        for session in (self._beside, self):
            if session is not None and session._prepared is not None:
                session._prepared.release()
        self.kernels.close()
        self.backend.close()

    # -- the steps of one case -------------------------------------------------------------

    @contextlib.contextmanager
    def _runnable(
        self, case: Case, built: Built, contract: NumericContract | None = None
    ) -> Iterator[Runnable]:
        """A case on its buffers. If it is not found right, shared ones are made again, because the
        kernel may have overwritten them, and its workspaces are released with them."""
        self.prepare(case.problem, contract or case.kernel.contract)
        samples = self._samples
        assert samples is not None
        try:
            runnable = Runnable(samples.prepared, samples, case, built, self.options)
            yield runnable
            runnable.release()
        except BaseException:
            samples.prepared.is_spoiled = True
            raise

    def _as_it_reads(self, case: Case) -> Case:
        """The case; if its kernel was found to read C, with numbers in C before a launch."""
        if case.kernel.reads or case.build_key not in self._reading_C:
            return case
        kernel = msgspec.structs.replace(case.kernel, reads=("C",))
        return msgspec.structs.replace(case, kernel=kernel)

    def untimed(self, runnable: Runnable) -> Times:
        with self._checked(runnable):
            launches_of(runnable).untimed()
        return Times()

    def _sustained(self, runnable: Runnable) -> Times:
        """Launches back to back, after all rounds; or they alone, if these are rotating."""
        is_alone = self.options.rotating
        if is_alone and not runnable.case.can_be_sustained:
            adds = runnable.case.problem.beta != 0
            why = "launches would find C of those before" if adds else "its matrices are copied"
            raise CaseError(f"--method rotating: {why}")
        with self._checked(runnable, again=not is_alone):
            launches, meter = launches_of(runnable), sustained.Meter(self.backend, self.idle_w)
            taken = sustained.blocks_of(launches.block, self.options.sustained_s, meter)
            checks.require_same_work(runnable, taken.mean_ns, launches.per_set)
            launches.verify()
        if not is_alone:
            return Times(sustained=taken)
        timing = timing_of(taken.blocks_ns, launches.seed, rotating=True)
        return self._judged(runnable, timing)._replace(hot=timing, sustained=taken)

    def _judged(self, runnable: Runnable, timing: Timing, *, is_cold: bool = False) -> Times:
        """Notes on what is too fast to be true, with the bandwidth that this was judged by;
        `WrongError` if nothing explains it."""
        is_of_bytes = workloads.workload_of(runnable.case.problem).rate == "B/s"
        if self._bandwidth is None and (is_of_bytes or self.backend.info.kind == "gpu"):
            with contextlib.suppress(CaseError):  # for example, too little memory
                self._bandwidth = bandwidth.measured(self.backend, self.cache)
        notes = checks.impossible(runnable, timing, self._bandwidth, is_cold=is_cold)
        copied = self._bandwidth and self._bandwidth.copy_bytes_per_s
        return Times(copy_bytes_per_s=copied, notes=notes)

    @contextlib.contextmanager
    def _checked(self, runnable: Runnable, *, again: bool = False) -> Iterator[None]:
        """The checks before and after timing. If a case is timed `again`, those that it passed in
        this process are not made again."""
        key = runnable.case.build_key, runnable.case.problem
        is_right = again and key in self._right
        for check in () if is_right else checks.BEFORE_TIMING:
            check(runnable)
        yield
        for check in (Runnable.require_sources,) if is_right else checks.AFTER_TIMING:
            check(runnable)
        self._right.add(key)

    @cached_property
    def idle_w(self) -> float | None:
        """The power of the idle device, in watts."""
        return sustained.idle_w(self.backend)

    # -- cases that take turns, with each other or with one of another process --------------

    def checked(self, case: Case) -> Outcome:
        """Check a case without timing it."""
        return self.measure(case, times_of=self.untimed)

    def contract(self, case: Case) -> NumericContract:
        """What a case computes, with its reads of C, declared or found."""
        return self._as_it_reads(case).kernel.contract

    @_turn
    def begin_turns(self, case: Case, contract: NumericContract, seed: int) -> Outcome | None:
        """Keep a case that is right ready for its turns; the seed is that of its inputs, which suit
        the contract."""
        case = self._as_it_reads(case)
        built = self._build(case)
        runnable = self._turns.enter_context(self._runnable(case, built, contract))
        launches = launches_of(runnable, seed)
        self._sides.append((launches, launches.sampler(cold=self.options.cold)))
        return None

    @_turn
    def turn(self, side: int) -> tuple[float, int] | Outcome:
        """A sample of a case, and the time of all its launches so far, in nanoseconds."""
        launches, sample = self._sides[side]
        return sample(), launches.launching_ns

    @_turn
    def block(self, side: int, least_s: float) -> Block | Outcome:
        """Launches of a case without a pause."""
        return self._sides[side][0].block(least_s)

    @_turn
    def place_turns(self, number: int) -> Outcome | None:
        """Move the matrices, and load the code of all cases, in the other order than before."""
        runnables = [launches.runnable for launches, _ in self._sides]
        runnables[0].prepared.move()
        for runnable in runnables if number % 2 else reversed(runnables):
            runnable.built.program.reload()
            runnable.moved()
        return None

    @_turn
    def end_turns(self, side: int, repeated_ns: float | None = None) -> Outcome | None:
        """Verify all turns of a case; after blocks, also the mean time of their launches."""
        launches, _ = self._sides[side]
        if repeated_ns is not None:
            checks.require_same_work(launches.runnable, repeated_ns, launches.per_set)
        launches.verify()
        return None

    def leave_turns(self) -> None:
        self._sides.clear()
        self._turns.close()

    def _rehearse(self, case: Case) -> None:
        """Judge a call of a function that is not made, before it is loaded: what this process
        compiles afterwards is not stored, and all others would compile it again."""
        prepared, samples = self._prepared, self._samples
        if prepared is None or samples is None or prepared.is_spoiled:
            return
        if (prepared.problem, prepared.contract) != (case.problem, case.kernel.contract):
            return
        shape = workloads.workload_of(case.problem).shape("C", case.problem)
        buffers, draw = prepared.buffers(shape, case.kernel), samples.draw(0)
        bound = oracle.bound(case.kernel, case.problem)
        samples.write(buffers, draw)
        samples.hash_before([buffers])
        self.kernels.poison_shared()
        samples.set_aside(buffers, case.kernel)()
        samples.hash_after()
        for accuracy in (False, True):
            samples.compare(buffers, draw, bound, accuracy=accuracy)
        samples.verdicts()

    def _build(self, case: Case, variants: Variants | None = None) -> Built:
        width = case.launch.block[0] if case.launch is not None else 1
        key = case.build_key, width, variants
        if key in self._built:
            return self._built[key]
        if "builds" in self.options.checks:
            checks.builds(case.kernel)
        if case.kernel.kind.is_apart:
            self._rehearse(case)
        start = time.perf_counter()
        possible, wanted = self.backend.variants, variants or self.options.builds
        if not case.kernel.kind.has_source:  # cannot be instrumented
            possible = ("plain", "staggered") if host_file.has_openmp(case.kernel) else ("plain",)
        builds: dict[Variant, Program] = {}
        notes = []
        for variant in [one for one in possible if one in wanted]:
            try:
                builds[variant] = self.backend.build(
                    case.kernel, case.params, variant, block_width=width
                )
            except BuildError as error:
                if variant == "plain":
                    raise
                # The instrumentation may not suit the kernel; then this variant is missing.
                notes.append(f"not {variant}: {error.reason.splitlines()[0]}")
        # The compiled source must be the one that the record names.
        if name := includes.changed(case.kernel):
            raise CaseError(f"{name} changed after {case.kernel.path} was read; run matbench again")
        checks.require_within_limits(case, builds, self.options.checks)
        duration_s = time.perf_counter() - start
        self._built[key] = Built(
            builds["plain"], builds.get("clocked"), builds.get("staggered"),
            builds.get("reordered"), duration_s, tuple(notes), {},
        )  # fmt: skip
        return self._built[key]

    def _outcome(
        self,
        case: Case,
        built: Built,
        accuracy: Accuracy | None = None,
        times: Times = Times(),  # noqa: B008
        wrong: WrongError | None = None,
    ) -> Outcome:
        """The outcome of a case that ran: right, or wrong and without times."""
        assert case.launch is not None
        error_map = wrong.error_map if wrong is not None else None
        resident = built.program.resident_blocks(case.launch)
        architecture = limits.MULTIPROCESSORS.get(self.backend.info.compute_capability)
        occupancy = None
        if resident is not None and architecture is not None:
            warps = -(-case.launch.threads_per_block // limits.WARP)
            occupancy = resident * warps / architecture.warps
        # BLAS does not allow to read C then.
        read = ("reads C at beta = 0",) if case.kernel.reads and case.problem.beta == 0 else ()
        notes = (*case.notes, *read, *built.notes, *built.program.notes, *times.notes)
        return Outcome(
            case=CaseRecord.from_case(case, self.backend.info),
            status="measured" if wrong is None else "wrong",
            reason=None if wrong is None else wrong.reason,
            check=None if wrong is None else wrong.check,
            build=Build(
                duration_s=built.duration_s,
                resources=built.program.resources,
                resident_blocks=resident,
                occupancy=occupancy,
            ),
            accuracy=accuracy,
            error_map=msgspec.UNSET if error_map is None else error_map,
            **times._replace(notes=notes)._asdict(),
        )
