"""Timed launches of one checked case: single ones, many back to back, and one with stamps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from matbench.analysis import blocks
from matbench.analysis.blocks import BlockSample
from matbench.backends import STAMP_BYTES, STAMP_WORDS, Program
from matbench.errors import CaseError
from matbench.measure.checks import Checks
from matbench.measure.options import Options
from matbench.measure.sampling import Sampler, sample_until_known, timing_of
from matbench.records.outcome import BlockTimes, Timing

#: A launch slower than this is repeated no more than it must be.
SLOW_NS = 100e6
#: How long a sample of hot launches, back to back, takes at least.
_HOT_SAMPLE_NS = 1e6


class Times(NamedTuple):
    """What timing a case gave."""

    cold: Timing | None = None
    hot: Timing | None = None
    blocks: BlockTimes | None = None


def own_times(samples: Sequence[float], options: Options, notes: Sequence[str] = ()) -> Times:
    """Samples of the kind that the row ranks by."""
    if options.cold:
        return Times(cold=timing_of(samples, notes=notes))
    return Times(hot=timing_of(samples, graph=options.graph, notes=notes))


class Launches:
    """Launches on the inputs of the problem itself, which are put in place first."""

    def __init__(self, checks: Checks) -> None:
        self.backend = checks.backend
        self.judge = checks.judge
        self.options = checks.options
        self.built = checks.built
        self.launch = checks.launch
        self.arguments = checks.arguments
        checks.prepared.load(checks.prepared.reference)

    def time(self) -> Times:
        """Sample until the medians are known, then clock the blocks."""
        cold = hot = None
        conditions = self.backend.conditions
        if self.options.cold:
            cold = sample_until_known(self.once_ns, self.options, conditions, cold=True)
        if self.options.hot:
            hot = sample_until_known(self._hot_sampler(), self.options, conditions)
        own = cold or hot
        assert own is not None and own.median_ns is not None
        return Times(cold, hot, self._block_times(own.median_ns))

    def once_ns(self) -> float:
        """One launch, in nanoseconds."""
        cold = self.options.cold
        return self.backend.time_ns(self.built.program, self.launch, self.arguments, cold=cold)

    def sampler(self) -> Sampler:
        """Samples of the kind that the row ranks by."""
        return self.once_ns if self.options.cold else self._hot_sampler()

    def _hot_sampler(self) -> Sampler:
        """Means of launches back to back, as many as make a sample long enough."""
        if not self.options.back_to_back:
            return self.once_ns
        program, launch, arguments = self.built.program, self.launch, self.arguments

        def sample(count: int) -> float:
            return self.backend.time_hot_ns(
                program, launch, arguments, count=count, graph=self.options.graph
            )

        count = min(1000, max(1, round(_HOT_SAMPLE_NS / max(1.0, sample(3)))))
        return lambda: sample(count)

    def _block_times(self, plain_ns: float) -> BlockTimes | None:
        """What the stamps of an instrumented launch say; None where no block stamped its end."""
        if self.built.clocked is None:
            return None
        pairs = 5 if plain_ns < SLOW_NS / 50 else 1
        sample = self.stamps(self.built.clocked, pairs)
        try:
            is_sm = self.backend.clock_is_sm
            return blocks.brief(sample, self.backend.info, clock_is_sm=is_sm)
        except CaseError:
            return None

    def stamps(self, clocked: Program, pairs: int) -> BlockSample:
        """The stamps of one instrumented launch, and what clocking it cost.

        Plain and instrumented launches take turns, so that drift does not count as a cost.
        """
        stamps = np.zeros((self.launch.blocks, STAMP_WORDS), np.uint64)
        buffer = self.backend.allocate(self.launch.blocks * STAMP_BYTES)
        arguments, cold = [*self.arguments, buffer], self.options.cold
        clocked_ns, plain_ns = [], []
        try:
            for _ in range(pairs):
                self.backend.write(buffer, np.zeros_like(stamps))
                clocked_ns.append(self.backend.time_ns(clocked, self.launch, arguments, cold=cold))
                plain_ns.append(self.once_ns())
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
