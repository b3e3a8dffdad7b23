"""Words for the patterns in samples that matter for reading a median."""

from __future__ import annotations

from matbench.analysis import ranking
from matbench.analysis.patterns import Autocorrelation, Drift, Pattern
from matbench.records.outcome import Timing


def words(timing: Timing | None) -> tuple[str, ...]:
    """A note on each pattern in these samples that matters."""
    return tuple(map(_words, ranking.patterns_in(timing)))


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
