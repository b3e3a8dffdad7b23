"""A timeline of a launch's blocks as the data and parameters of its chart."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from matbench.records.blocks import BlockProfile, Period, Timeline

#: How many lanes are labelled.
_MOST_LABELS = 16


class Filling(NamedTuple):
    """What a definition needs: rows of each dataset, parameters, and the height in pixels."""

    datasets: dict[str, Any]
    parameters: dict[str, Any]
    height: float


def filling(found: Timeline, profile: BlockProfile) -> Filling:
    """The bars as they are recorded; the definition computes where they are drawn."""
    took = np.array([bar.end_ns - bar.start_ns for bar in found.bars]) / 1e3
    low, high = np.percentile(took, [5, 95]).tolist()
    periods: list[Period] = [*found.bars, *found.busy]
    span = max(period.end_ns for period in periods) / 1e3 or 1.0
    every = -(-found.lanes // _MOST_LABELS)
    numbers = found.multiprocessors or range(1, found.lanes + 1)
    height = found.lanes * min(36.0, max(5.0, 420 / found.lanes))
    tail = []
    if profile.tail_share:
        at = span * (1 - profile.tail_share)
        tail = [{"at": at, "label": f"tail {profile.tail_share:.1%}"}]
    return Filling(
        {
            "bars": [msgspec.structs.astuple(bar) for bar in found.bars],
            "busy": [msgspec.structs.astuple(period) for period in found.busy],
            "tail": tail,
        },
        {
            "across": [0, span],
            "up": [found.lanes, 0],
            "ticks_up": [lane + 0.5 for lane in range(0, found.lanes, every)],
            "names": list(map(str, numbers)),
            "slots": found.slots,
            "grid": profile.launch.grid,
            "shades": [low, high if high > low else low + 1e-3],
            "gaps": height > 4 * found.lanes * found.slots,
        },
        height,
    )


def left_out(found: Timeline, profile: BlockProfile) -> str:
    """A note on blocks that have no bar; empty if all have one."""
    if len(found.bars) >= profile.blocks:
        return ""
    text = f"thinned: {len(found.bars):,} of {profile.blocks:,} blocks drawn"
    if found.slots < found.together:
        text += f", {found.slots} of up to {found.together} resident together"
    return f"{text}; grey: busy with blocks that are not drawn"


def notes(found: Timeline, profile: BlockProfile) -> list[str]:
    """What a reader must know about the lanes and the bars."""
    lines = [
        "a lane per multiprocessor"
        if found.multiprocessors is not None
        else "the compute unit of a block is not known: lanes only separate blocks that overlap"
    ]
    idle = profile.multiprocessors - (profile.multiprocessors_used or profile.multiprocessors)
    if idle > 0:
        lines.append(
            f"{idle:,} of {profile.multiprocessors:,} multiprocessors ran no block: no lane"
        )
    return [*lines, *filter(None, [left_out(found, profile)])]
