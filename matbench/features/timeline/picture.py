"""When each block of a launch ran, and on which multiprocessor."""

from __future__ import annotations

from pathlib import Path

from matbench.errors import UsageError
from matbench.features.charts import drawing
from matbench.features.timeline import chart
from matbench.features.timeline.record import MOST_BARS, BlockProfile
from matbench.records.outcome import PERTURBATION_LIMIT

_WIDTH = 1000


def draw(profile: BlockProfile, path: Path, title: str) -> None:
    """Draw a lane per multiprocessor and a bar per block.

    `UsageError` if the blocks have no common clock or are too many, or if the file cannot be
    written.
    """
    timeline = profile.timeline
    if timeline is None and profile.blocks > MOST_BARS:
        raise UsageError(
            f"{path}: a timeline shows up to {MOST_BARS:,} blocks, and this launch has "
            f"{profile.blocks:,}; choose a smaller size"
        )
    if timeline is None:
        raise UsageError(
            f"{path}: the multiprocessors of {profile.device} share no clock, so the blocks cannot "
            "be drawn on one axis"
        )
    lines = [_cost(profile), " · ".join(chart.notes(timeline, profile))]
    drawing.draw(path, {**chart.spec(timeline, profile), "width": _WIDTH}, title, lines)


def _cost(profile: BlockProfile) -> str:
    cost = f"reading the clock changed the launch's time by {profile.perturbation:+.1%}"
    if profile.perturbed:
        cost = f"≈ {cost}, more than {PERTURBATION_LIMIT:.0%}"
    return f"{profile.device} · {profile.blocks:,} blocks · {cost}"
