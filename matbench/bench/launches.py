"""Timed launches of one case: single, back to back, and instrumented; all are verified.

A call of a function counts for what it does between two moments: its inputs are complete only right
before the timed interval, and C is what it is at the end of it.
"""

from __future__ import annotations

import itertools
import math
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from random import Random
from typing import Any, NamedTuple, cast

import numpy as np

from matbench.analysis.block_times import BlockSample
from matbench.backends.protocol import STAMP_WORDS, Argument, Call, Function, Program, Work
from matbench.bench.kernel_arguments import arguments as arguments_of
from matbench.bench.loop import Sampler, timing_of
from matbench.bench.matrices import Buffers
from matbench.bench.options import FIRST, Options, Round
from matbench.bench.runnable import Runnable
from matbench.bench.samples import FEW_LINES, Placed, drawn
from matbench.bench.sustained import Block
from matbench.errors import CaseError, OutOfMemoryError
from matbench.model import Launch
from matbench.records.outcome import BlockTimes, Sustained, Timing
from matbench.workloads.matmul import trials
from matbench.workloads.rounding import stored

#: The most sets of buffers; with guards, these fit on any device.
_MOST_SETS = 64
#: Problems with fewer multiply-adds than this have little that can vary.
_TINY = 8_192
#: A part of the last-level cache that surely holds what was written last. Half of it may not:
#: NVIDIA's larger GPUs keep what all multiprocessors read in both halves of their cache.
_CACHE_SHARE = 8
#: The minimum length of a sample of hot launches back to back.
_HOT_SAMPLE_NS = 1e6
#: The fewest decoys in a batch, and after how many batches, on average, a surprise follows.
_LEAST_DECOYS = 2
_SURPRISES = 4
#: The most time that the host needs to enqueue launches; the device is held at least so long.
_HOLD_NS = 50_000
_HOLD_NS_PER_LAUNCH = 10_000
#: After the turn of another process the host enqueues slowly: nothing of this one is in its caches.
_HOLD_NS_AFTER_TURN = 500_000
#: Sustained launches take turns on sets of buffers that fill the last-level cache so many times,
#: but on no more than this.
_ROTATED_CACHES = 2
_MOST_ROTATED = {"gpu": 256, "cpu": 4}
#: How long the launches of a block run before the host looks at its clock, the most of them, and
#: the fewest looks in a block.
_LOOK_NS = 100e6
_MOST_PER_LOOK = 5_000
_LEAST_LOOKS = 4
#: How late a result is taken in controls.
_LATE_S = 0.05
#: How many calls the host's time is the median of.
_HOST_CALLS = 5
#: The device is held for this many times the host's time of a call, but not for longer than this.
_HOLD_SHARE = 2
_LONGEST_HOLD_NS = 5_000_000
#: One sample of so many comes after a call with fresh inputs, unless these are larger: matrices of
#: so many numbers in all. Such calls may take longer by this share, and so many ns on a GPU or a
#: CPU; if they do, so many of each kind are made again, and as many more up to the most.
_FRESH = 4
_LARGEST_FRESH = 3 << 24
_COMPARED_CALLS, _MOST_COMPARED_CALLS = 6, 24
_FRESH_SHARE = 1.3
_FRESH_NS = {"gpu": 20e3, "cpu": 100e3}
#: The first calls may fill caches. Memory grows if most of the last calls keep nearly a C, and all
#: together this much, which allocators may hold; without end, if they do after so many calls, or
#: fewer that took long.
_CACHING_CALLS = 4
_LAST_CALLS = 8
_KEPT_SHARE = 0.9
_OTHERS_SHARE = 0.25
_KEPT_BYTES = 32 << 20
_ENDLESS_CALLS, _FEWER_CALLS = 40, 12
_LONG_S = 6.0


class Times(NamedTuple):
    """The times of a case, with the device's bandwidth and notes if they were looked at."""

    cold: Timing | None = None
    hot: Timing | None = None
    blocks: BlockTimes | None = None
    copy_bytes_per_s: float | None = None
    notes: tuple[str, ...] = ()
    host_ns: float | None = None
    sustained: Sustained | None = None


def own_times(
    samples: Sequence[float], options: Options, seed: int, notes: Sequence[str] = ()
) -> Times:
    """Samples, of verified launches, of the kind that the case is ranked by."""
    timing = timing_of(samples, seed, graph=options.graph and not options.cold, notes=notes)
    return Times(cold=timing) if options.cold else Times(hot=timing)


class Launches:
    """Launches of one case, each with its own inputs and each verified.

    `seed` determines their keys. Cases that take turns share it, and so have the same inputs; then
    each launch is verified before the other case's turn. `which` round it is tells what is known.
    """

    #: The host's time of a call of a function, on a GPU.
    host_ns: float | None = None

    def __init__(self, runnable: Runnable, seed: int | None = None, which: Round = FIRST) -> None:
        self.takes_turns = seed is not None
        self.round = which
        self.runnable = runnable
        self.samples = runnable.samples
        self.backend = runnable.backend
        self.kernels = runnable.kernels
        self.options = runnable.options
        self.built = runnable.built
        self.launch = runnable.launch
        self.seed = secrets.randbits(64) if seed is None else seed
        self._keys: Iterator[int] = (drawn(self.seed, index) for index in itertools.count())
        self._back_to_back = 1  # launches of a hot sample
        self._per_look = 0  # launches of a block between two looks at the clock
        self.per_set = 1  # launches of the last block on each set of buffers
        self.launching_ns = 0  # the host's time of all samples' launches

    def untimed(self) -> None:
        """Some verified launches without timing: more if the inputs have little that can vary, or
        one with the inputs of the key to replay."""
        problem, key = self.runnable.case.problem, self.options.replay
        few = problem.M * problem.N * problem.K < _TINY
        # Half of the samples of so few rows or columns may select single terms.
        few |= self.samples.is_matrix and min(problem.M, problem.N) < FEW_LINES
        launches = 8 if few else 2
        if key is not None:
            self._keys, launches = itertools.repeat(key), 1
        for _ in range(launches):
            self.once_ns()
        self.verify()

    def verify(self) -> None:
        """`WrongError` if a launch since the last call was wrong or wrote out of bounds."""
        count, self._back_to_back = self._back_to_back, 1
        if count > 1:
            self._surprise(count)
        self.runnable.require_right(self.samples.verdicts())

    def once_ns(
        self, program: Program | None = None, *more: Argument, cold: bool | None = None
    ) -> float:
        """One launch, in nanoseconds; by default of the plain build, and with the cache that the
        case is ranked by. Another build may take `more` arguments."""
        is_cold = self.options.cold if cold is None else cold
        launches = [(self.runnable.buffers, self.samples.draw(next(self._keys)))]
        self.runnable.make_ready(launches)
        call = (program or self.built.program).call(self.launch, [*self.runnable.arguments, *more])
        work = Work([call], is_cold=is_cold)
        if self.takes_turns:  # the host enqueues slowly after another process
            work = work._replace(hold=partial(self._hold, 1))
        started = time.perf_counter_ns()
        taken_ns = self.backend.timed_ns(work)
        self.launching_ns += time.perf_counter_ns() - started
        call.give()
        self.runnable.compare(launches, at_once=self.takes_turns)
        return taken_ns

    def block(self, least_s: float) -> Block:
        """Launches without a pause for at least so long, in turn on the sets of buffers, each with
        its own inputs; see `sustained`."""
        try:
            sets = self._sets(self._rotated, self._rotated)
        except OutOfMemoryError:
            sets = [self.runnable.buffers]
        launches = list(zip(sets, map(self.samples.draw, self._keys), strict=False))
        self.runnable.make_ready(launches)
        calls = self._calls(launches)
        for call in calls:
            call.run()
        turns = itertools.cycle(calls)
        if self._per_look == 0:
            look_ns = min(_LOOK_NS, 1e9 * least_s / _LEAST_LOOKS)
            wanted = round(look_ns / self._without_pause_ns(turns, 1))
            self._per_look = min(_MOST_PER_LOOK, max(1, wanted))
        count = self._per_look
        block = _block(least_s, count, lambda: self._without_pause_ns(turns, count))
        self.runnable.compare(launches, at_once=True)
        self.per_set = math.ceil(block.launches / len(sets))
        return block

    @cached_property
    def _rotated(self) -> int:
        """The number of sets that sustained launches take turns on, at least two."""
        wanted = math.ceil(_ROTATED_CACHES * self._cache_bytes / self._set_bytes)
        return min(_MOST_ROTATED[self.backend.info.kind], max(2, wanted))

    def _without_pause_ns(self, turns: Iterator[Call], count: int) -> float:
        """The mean time of so many launches."""
        if count > 1:
            next(turns).run()  # the first of several is not counted
        return self.backend.timed_ns(Work(list(itertools.islice(turns, count))))

    def sampler(self, *, cold: bool) -> Sampler:
        """Single launches, or means of hot ones back to back; of several, the first is a warm-up.

        There are enough for a sample of sufficient length, but no more than the cache surely holds
        sets of buffers, because none is used twice.
        """
        if cold or not self.options.back_to_back:
            return partial(self.once_ns, cold=cold)
        # The kernel's variables, which outlive a launch, could hold a product of another set. (A
        # sum's inputs take as long to recognise as to add up.)
        C_bytes = self.runnable.result.data.nbytes
        keeps = self.samples.is_matrix and self.built.program.variable_bytes >= C_bytes
        most = 1 if keeps else self._sets_in_cache()
        known = self.round.hot_ns
        first = float(np.median(known)) if known else self._mean_ns(min(3, most))
        wanted = min(1000, max(1, round(_HOT_SAMPLE_NS / max(1.0, first))))
        self._back_to_back = count = min(wanted + 1, most)
        if count == 1:
            return partial(self._mean_ns, 1)
        self._surprise(count)

        def sample() -> float:
            if secrets.randbelow(_SURPRISES) == 0:
                self._surprise(count)
            return self._mean_ns(count)

        return sample

    @property
    def _cache_bytes(self) -> int:
        return int(self.backend.info.properties.get("last-level cache (bytes)") or 0)

    @property
    def _set_bytes(self) -> int:
        return sum(matrix.data.nbytes for matrix in self.runnable.buffers.passed)

    def _sets_in_cache(self) -> int:
        held = self._cache_bytes // _CACHE_SHARE // self._set_bytes
        return min(_MOST_SETS, max(held, 2 if 4 * self._set_bytes <= self._cache_bytes else 1))

    def _mean_ns(self, count: int) -> float:
        if count > 1:
            launches = self._laid_out(count, count, self._keys)
        else:
            launches = [(self.runnable.buffers, self.samples.draw(next(self._keys)))]
        self.runnable.make_ready(launches)
        started = time.perf_counter_ns()
        taken_ns = self._launched_ns(launches)
        self.launching_ns += time.perf_counter_ns() - started
        self.runnable.compare(launches, at_once=self.takes_turns)
        return taken_ns

    def _launched_ns(self, launches: Sequence[Placed]) -> float:
        first, *rest = self._calls(launches)
        hold, ready = partial(self._hold, len(launches)), first.run if rest else lambda: None
        work = Work(rest or [first], hold, ready, is_graph=self.options.graph)
        return self.backend.timed_ns(work)

    def _calls(self, launches: Sequence[Placed]) -> list[Call]:
        case, program = self.runnable.case, self.built.program
        given = [arguments_of(case, buffers.named) for buffers, _ in launches]
        return [program.call(self.launch, values) for values in given]

    def _hold(self, launches: int) -> None:
        """Keep the device busy until the host has enqueued so many launches."""
        slow_ns = _HOLD_NS_AFTER_TURN if self.takes_turns else _HOLD_NS
        self.kernels.hold(slow_ns + _HOLD_NS_PER_LAUNCH * launches)

    def _laid_out(self, count: int, launched: int, keys: Iterator[int]) -> list[Placed]:
        """The sets to be launched, with the next keys, of a batch of at most `count`; the others
        are decoys. Those to launch are written later, so that the cache holds them."""
        most = self._sets_in_cache()
        # Without chance, a set lies at the same place in all batches, whatever their size.
        laid_out = count if "decoys" in self.options.checks else most
        sets = self._sets(_with_decoys(most), _with_decoys(laid_out))
        for buffers in sets[launched:]:
            self.samples.write(buffers, self.samples.draw(secrets.randbits(64)))
        return list(zip(sets[:launched], map(self.samples.draw, keys), strict=False))

    def _sets(self, most: int, count: int) -> list[Buffers]:
        """So many sets of buffers at new places, in memory for the most."""
        arena = self.runnable.arena(most)
        is_random = "decoys" in self.options.checks
        random = secrets.SystemRandom() if is_random else Random(0)  # noqa: S311
        return list(map(self.runnable.buffers.moved, arena.lay_out(count, random)))

    def _surprise(self, count: int) -> None:
        """Batches that end at any launch, without times. A kernel that prepares for later launches
        is found out: by what it keeps for them, and because an input changes."""
        if "surprises" not in self.options.checks:
            return
        self.runnable.require_right(self.samples.verdicts())
        keys = (secrets.randbits(64) for _ in itertools.count())
        launches = self._laid_out(count, 1 + secrets.randbelow(count), keys)
        self.runnable.make_ready(launches)
        is_own = self.runnable.case.kernel.kind.is_launched  # a library has memory of its own
        placed, _ = launches[0]  # all sets of a batch are in the same memory
        own = [*(arena.buffer for arena in placed.arenas), self.kernels.partial]
        others = self.backend.memory_without(own) if is_own else []
        key = secrets.randbits(64)
        before = self.kernels.hashed(key, *others)
        self._launched_ns(launches)
        if self.kernels.hashed(key, *others) != before:
            raise self.runnable.wrong("surprises", "wrote to memory that is not its own")
        self.runnable.compare(launches, at_once=True)

        launches = self._laid_out(count, 2 + secrets.randbelow(count - 1), keys)
        self.runnable.make_ready(launches, with_inputs=False)
        case = self.runnable.case
        *arguments, last = [arguments_of(case, buffers.named) for buffers, _ in launches]
        self._hold(len(launches))
        for values in arguments:
            self.built.program.launch(self.launch, values)
        with self.samples.altered():  # a number of A becomes 0 right before the last launch
            self.samples.write(*launches[-1])
            self.built.program.launch(self.launch, last)
            self.samples.compare(*launches[-1], self.runnable.bound)
        if any(verdict.wrong for verdict in self.samples.verdicts()):
            raise self.runnable.wrong(
                "surprises", "a number of A changed right before a launch, and C is wrong"
            )
        self.runnable.compare(launches[:-1], at_once=self.takes_turns)

    def stamps(
        self, clocked: Program, pairs: int, known_plain_ns: float | None = None
    ) -> BlockSample:
        """The stamps of one instrumented launch, and its slowdown. Unless the time of a plain one
        is known, plain launches take turns with it, so that drift does not appear as a slowdown."""
        stamps = np.zeros((self.launch.blocks, STAMP_WORDS), np.uint64)
        clocked_ns, plain_ns = [], []
        memory = self.runnable.prepared
        buffer = memory.allocate(stamps.nbytes)
        for _ in range(pairs):
            self.backend.write(buffer, np.zeros_like(stamps))
            clocked_ns.append(self.once_ns(clocked, buffer))
            plain_ns.append(known_plain_ns or self.once_ns())
        self.backend.read(buffer, stamps)
        memory.free(buffer)
        fill = self.kernels.program("memory.cu", "fill_words")  # here of no words
        empty = fill.call(Launch((1, 1, 1), (1, 1, 1)), [self.kernels.sink, 0, 0, 0])
        nothing = Work([empty], is_cold=True)
        return BlockSample(
            stamps=stamps,
            ticks_per_ns=self.backend.ticks_per_ns(stamps),
            event_ns=clocked_ns[-1],
            empty_ns=float(np.median([self.backend.timed_ns(nothing) for _ in range(5)])),
            perturbation=float(np.median(clocked_ns)) / float(np.median(plain_ns)) - 1,
        )


def _block(least_s: float, count: int, mean_ns: Callable[[], float]) -> Block:
    """So many launches, of which `mean_ns` gives the mean time, again and again for so long."""
    began_ns = ended_ns = time.perf_counter_ns()
    means_ns = []
    while ended_ns - began_ns < 1e9 * least_s:
        means_ns.append(mean_ns())
        ended_ns = time.perf_counter_ns()
    return Block(began_ns, ended_ns, count * len(means_ns), statistics.fmean(means_ns))


def _with_decoys(count: int) -> int:
    """The number of sets in a batch of so many launches: enough that a guess which are launched
    is soon wrong, few enough for the cache."""
    return count + max(_LEAST_DECOYS, count // 4)


class FunctionLaunches(Launches):
    """Calls of a function, each with its own inputs and each verified."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._kept_bytes: list[int] = []  # by each call
        self._between_bytes: list[int] = []  # before each: what others took meanwhile
        self._used_bytes: int | None = None  # after the last
        self._last_host_ns = 0.0  # the host's time of the last call

    def verify(self) -> None:
        super().verify()
        self._require_same_time()
        late_s = time.monotonic() + _LONG_S
        while self._is_growing():  # which may end: if only some results are kept
            kept = self._kept_bytes[_CACHING_CALLS:]
            enough = _ENDLESS_CALLS if time.monotonic() < late_s else _FEWER_CALLS
            if len(kept) >= enough:
                more = f"{sum(kept) >> 20:,} MiB more after {len(kept)} calls"
                raise self.runnable.wrong("growth", f"memory grows with every call: {more}")
            self._called_ns(next(self._keys))
        super().verify()

    def sampler(self, *, cold: bool) -> Sampler:
        if self.options.graph:
            raise CaseError("--method graph: a function cannot be part of a CUDA graph")
        return partial(self.once_ns, cold=cold)

    def once_ns(
        self, program: Program | None = None, *more: Argument, cold: bool | None = None
    ) -> float:
        if self.host_ns is None and self.backend.info.kind == "gpu":
            self.host_ns, host_ns = 0.0, []  # during these calls the device is not held
            for _ in range(_HOST_CALLS):
                self._called_ns(next(self._keys), cold=cold)
                host_ns.append(self._last_host_ns)
            self.host_ns = statistics.median(host_ns)
        key = next(self._keys)
        if key % _FRESH == 0 and self._takes_fresh:
            fresh_ns = self._called_ns(key, is_fresh=True)
            self._taken_ns[0].append(fresh_ns)
            if self.options.replay is not None:
                return fresh_ns
            key += 1
        taken_ns = self._called_ns(key, cold=cold)
        self._taken_ns[1].append(taken_ns)
        return taken_ns

    @property
    def _taken_ns(self) -> tuple[list[float], list[float]]:
        return self.built.taken_ns.setdefault(self.runnable.case.problem, ([], []))

    @cached_property
    def _takes_fresh(self) -> bool:
        problem, contract = self.runnable.case.problem, self.samples.contract
        numbers = problem.M * problem.K + problem.K * problem.N + problem.M * problem.N
        is_product = self.samples.is_matrix and "samples" in self.options.checks
        if not is_product or numbers > _LARGEST_FRESH:
            return False
        return trials.takes_whole_numbers(problem, contract)

    def _called_ns(self, key: int, *, is_fresh: bool = False, cold: bool | None = None) -> float:
        """A call on the sample of a key; if it `is_fresh`, on whole numbers, which are no earlier
        inputs in another order: a function could put together C of what it has kept of these."""
        buffers, fresh = self.runnable.buffers, None
        launches = [(buffers, self.samples.draw(key))]
        self.runnable.make_ready(launches)
        if is_fresh:
            fresh = trials.whole_numbers(self.runnable.case.problem, key)
            dtype, storage = self.samples.given.dtype, self.samples.contract.storage
            for index, values in enumerate(fresh):
                numbers = stored(values.astype(dtype), storage)
                self.backend.write(buffers.inputs[index].data, numbers)
                buffers.copy(self.kernels, 0, "place", index)
        taken_ns = self._clocked_ns(is_cold=self.options.cold if cold is None else cold)
        if fresh is None:
            self.runnable.compare(launches, at_once=self.takes_turns)
            return taken_ns
        buffers.copy(self.kernels, 0, "take")
        C = self.runnable.result_on_host(self.samples.given)
        if (rows := trials.wrong_rows(*fresh, C, key)).size:
            raise self.runnable.wrong(
                "samples",
                f"with the inputs of --replay {key:x}, which are no earlier ones in another "
                f"order: {rows.size:,} of {len(C):,} rows of C wrong, first row {rows[0]:,}",
            )
        return taken_ns

    def _require_same_time(self) -> None:
        """`WrongError` if calls on fresh inputs take longer than the others.

        If they seem to, both are called again, until one with fresh inputs is as quick as half of
        the others. On a busy machine most calls may be late, above all those for whose inputs the
        host has worked, but hardly all of so many; and no function can be quick with fresh inputs.
        """
        known_fresh, known_others = self._taken_ns
        if self._takes_fresh and known_others and not known_fresh:  # by chance, in few samples
            known_fresh.append(self._called_ns(secrets.randbits(64), is_fresh=True))
        if not (known_fresh and known_others):
            return
        is_longer = self._is_longer(statistics.median(known_fresh), known_others)
        fresh, others = list[float](), list[float]()
        while is_longer and len(fresh) < _MOST_COMPARED_CALLS:
            for _ in range(_COMPARED_CALLS):
                fresh.append(self._called_ns(secrets.randbits(64), is_fresh=True))
                others.append(self._called_ns(next(self._keys)))
            is_longer = self._is_longer(min(fresh), others)
        known_fresh += fresh  # so that a single slow call is not looked at again and again
        known_others += others
        if is_longer:
            raise self.runnable.wrong(
                "samples",
                f"skips work: on fresh inputs a call takes {min(fresh) / 1e3:,.1f} µs or longer, "
                f"on earlier ones in another order {statistics.median(others) / 1e3:,.1f} µs",
            )

    def _is_longer(self, fresh_ns: float, others: Sequence[float]) -> bool:
        least_ns = _FRESH_NS[self.backend.info.kind]
        return fresh_ns > _FRESH_SHARE * statistics.median(others) + least_ns

    def _clocked_ns(self, *, is_cold: bool) -> float:
        function = cast(Function, self.built.program)
        checks, kernel = self.options.checks, self.runnable.case.kernel
        complete: Callable[[], object] = lambda: None  # noqa: E731
        if "ready" in checks:  # A lacks a column until right before the call
            complete = self.samples.set_aside(self.runnable.buffers, kernel)
            self.backend.synchronize()
        used = function.used_bytes if "growth" in checks else lambda: None
        before = used()
        call = function.call(self.launch, self.runnable.arguments)

        def run() -> object:
            started = time.perf_counter_ns()
            own_ns = call.run()
            self._last_host_ns = float(time.perf_counter_ns() - started)
            return own_ns

        takes = "returned" in checks  # else its result is taken late
        once = call._replace(run=run, take=call.take if takes else lambda: None)
        # Keep the device busy while the host makes the call, unless the host is being timed.
        held_ns = min(max(_HOLD_NS, _HOLD_SHARE * (self.host_ns or 0.0)), _LONGEST_HOLD_NS)
        hold = partial(self.kernels.hold, round(held_ns)) if self.host_ns else lambda: None
        started = time.perf_counter_ns()
        taken_ns = self.backend.timed_ns(Work([once], hold, complete, is_cold=is_cold))
        self.launching_ns += time.perf_counter_ns() - started
        self.backend.synchronize()
        if not takes:
            time.sleep(_LATE_S)
            call.take()
        call.give()
        after = used()
        if before is not None and after is not None:
            self._kept_bytes.append(after - before)
            self._between_bytes.append(before - (self._used_bytes or before))
        self._used_bytes = after
        if "replaced" in checks and (name := function.replaced()):
            raise self.runnable.wrong("replaced", f"replaced {name}, which matbench measures with")
        return taken_ns

    def block(self, least_s: float) -> Block:
        """Each call has its own inputs, and is verified: the function could know earlier ones, and
        update what it has kept."""
        block = _block(least_s, 1, lambda: self._called_ns(next(self._keys), cold=False))
        self.runnable.require_right(self.samples.verdicts())
        return block

    def _is_growing(self) -> bool:
        """Whether memory grew with each of the last calls by a result. On a GPU, other programs'
        may be in the numbers, too: then it grows between calls as well."""
        kept, between = (took[_CACHING_CALLS:] for took in (self._kept_bytes, self._between_bytes))
        least = _KEPT_SHARE * self.runnable.result.data.nbytes
        others = sum(between[-_LAST_CALLS:]) if self.backend.info.kind == "gpu" else 0
        return (
            len(kept) > 1
            and sum(kept) > _KEPT_BYTES
            and statistics.median(kept[-_LAST_CALLS:]) > least
            and others < _OTHERS_SHARE * sum(kept[-_LAST_CALLS:])
        )


def launches_of(runnable: Runnable, seed: int | None = None, which: Round = FIRST) -> Launches:
    """What times a case: launches of a kernel, or calls of a function."""
    kind = FunctionLaunches if runnable.case.kernel.kind.is_apart else Launches
    return kind(runnable, seed, which)
