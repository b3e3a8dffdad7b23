"""Words for the patterns in samples that matter for reading a median."""

from __future__ import annotations

import msgspec

from matbench.analysis import patterns, ranking
from matbench.analysis.patterns import Autocorrelation, Drift, Pattern
from matbench.records.outcome import Outcome, Timing


def noted(outcome: Outcome) -> Outcome:
    """The outcome with a note on each pattern in its samples that matters."""
    cold, hot = _noted(outcome.cold), _noted(outcome.hot)
    return msgspec.structs.replace(outcome, cold=cold, hot=hot)


def _noted(timing: Timing | None) -> Timing | None:
    if timing is None:
        return None
    in_rounds = len(timing.rounds) > 1
    seen = patterns.find_patterns(timing.samples_ns, ranking.spread(timing), in_rounds=in_rounds)
    return msgspec.structs.replace(timing, notes=(*map(_words, seen), *timing.notes))


def _words(pattern: Pattern) -> str:
    if isinstance(pattern, Drift):
        return f"drifting: {pattern.shift:+.1%} from the first to the last third of the samples"
    if isinstance(pattern, Autocorrelation):
        return (
            f"autocorrelated: r = {pattern.r:.2f} from sample to sample, so the interval is too "
            "narrow"
        )
    share, ratio = f"{pattern.share:.0%}", f"{pattern.ratio:.3g}"
    return f"two modes: {share} of the samples take {ratio} times as long as the others"
