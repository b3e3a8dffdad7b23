"""The chart of a launch's blocks: a lane for each multiprocessor, a bar for each block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from matbench.features.charts.definitions import Chart, filled, specs_of
from matbench.features.timeline.record import BlockProfile, Timeline
from matbench.records.outcome import PERTURBATION_LIMIT, Outcome

_SPECS = specs_of(Path(__file__).parent)


def charts(found: Iterable[tuple[BlockProfile, Sequence[Outcome]]]) -> Iterator[Chart]:
    """One for each launch whose blocks have a timeline."""
    for profile, about in found:
        if (timeline := profile.timeline) is not None:
            title = about[0].case.label if about else profile.device
            yield _chart(f"Timeline: {title}", timeline, profile)


def _chart(title: str, timeline: Timeline, profile: BlockProfile) -> Chart:
    """The chart with its data: rows of the record, from which Vega computes bars. The note says
    what a reader must know: what the clock cost, and what the lanes are."""
    span = max(bar.end_ns for bar in timeline.bars) / 1e3 or 1.0
    names = list(timeline.multiprocessors or range(1, timeline.lanes + 1))
    gx, gy, _ = profile.launch.grid
    rows = [
        {"lane": names[bar.lane], "from": bar.start_ns, "to": bar.end_ns, "slot": bar.slot,
         "block": bar.block}
        for bar in timeline.bars
    ]  # fmt: skip
    place = f"datum.block % {gx} + ', ' + floor(datum.block / {gx}) % {gy}"
    place += f" + ', ' + floor(datum.block / {gx * gy})"
    # Colours are of all durations but the shortest and the longest.
    took = np.array([bar.end_ns - bar.start_ns for bar in timeline.bars]) / 1e3
    low, high = np.percentile(took, [5, 95]).tolist()
    tail = profile.tail_share
    parts = {
        "height": timeline.lanes * min(36.0, max(5.0, 420 / timeline.lanes)),
        "rows": rows,
        "place": f"'(' + {place} + ')'",
        "span": [0, span],
        "lanes": names,
        "took": [low, max(high, low + 1e-3)],
        "tails": [{"start": span * (1 - tail), "label": f"tail {tail:.1%}"}] if tail else [],
    }
    cost = f"reading the clock changed the launch's time by {profile.perturbation:+.1%}"
    if profile.perturbed:
        cost = f"≈ {cost}, more than {PERTURBATION_LIMIT:.0%}"
    lanes = "a lane per multiprocessor"
    if timeline.multiprocessors is None:
        lanes = "the compute unit of a block is not known: lanes only separate blocks that overlap"
    most = profile.multiprocessors
    idle = most - (profile.multiprocessors_used or most)
    none = [f"{idle:,} of {most:,} multiprocessors ran no block: no lane"] if idle > 0 else []
    notes = [f"{profile.blocks:,} blocks", cost, lanes, *none]
    return Chart(title, " · ".join(notes), filled(_SPECS["timeline"], parts))
