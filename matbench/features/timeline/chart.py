"""The chart of a launch's blocks: a lane for each multiprocessor, a bar for each block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from matbench.features.charts.definitions import Chart, Spec
from matbench.features.timeline.record import BlockProfile, Timeline
from matbench.records.outcome import PERTURBATION_LIMIT, Outcome


def charts(found: Iterable[tuple[BlockProfile, Sequence[Outcome]]]) -> Iterator[Chart]:
    """One for each launch whose blocks have a timeline."""
    for profile, about in found:
        if (timeline := profile.timeline) is not None:
            title = about[0].case.label if about else profile.device
            note = " · ".join(_notes(timeline, profile))
            yield Chart(f"Timeline: {title}", note, _spec(timeline, profile))


def _spec(timeline: Timeline, profile: BlockProfile) -> Spec:
    """The chart with its data: rows of the record, from which Vega computes bars."""
    span = max(bar.end_ns for bar in timeline.bars) / 1e3 or 1.0
    names = list(timeline.multiprocessors or range(1, timeline.lanes + 1))
    gx, gy, _ = profile.launch.grid
    rows = [
        {"lane": names[bar.lane], "from": bar.start_ns, "to": bar.end_ns, "slot": bar.slot,
         "block": bar.block}
        for bar in timeline.bars
    ]  # fmt: skip
    block = f"datum.block % {gx} + ', ' + floor(datum.block / {gx}) % {gy}"
    block += f" + ', ' + floor(datum.block / {gx * gy})"
    x = {
        "field": "start", "type": "quantitative", "title": "µs since the first block started",
        "scale": {"domain": [0, span], "nice": False}, "axis": {"format": ",~r"},
    }  # fmt: skip
    share, text = profile.tail_share, {"type": "text", "align": "right", "baseline": "bottom"}
    begins = [{"start": span * (1 - share), "label": f"tail {share:.1%}"}] if share else []
    label = {"y": {"value": 0}, "text": {"field": "label"}}
    layers = [
        {"mark": {"type": "rule", "strokeDash": [4, 3]}},
        {"mark": {**text, "dy": -3}, "encoding": label},
    ]
    return {
        "height": timeline.lanes * min(36.0, max(5.0, 420 / timeline.lanes)),
        "data": {"values": rows},
        "transform": [
            {"calculate": "datum.from / 1000", "as": "start"},
            {"calculate": "datum.to / 1000", "as": "end"},
            {"calculate": "datum.end - datum.start", "as": "took"},
            {"calculate": f"'(' + {block} + ')'", "as": "place"},
        ],
        "encoding": {"x": x},
        "layer": [_bars(timeline, names), {"data": {"values": begins}, "layer": layers}],
    }


def _bars(timeline: Timeline, names: list[int]) -> Spec:
    """A bar for each block; colours are of all but the shortest and longest."""
    took = np.array([bar.end_ns - bar.start_ns for bar in timeline.bars]) / 1e3
    low, high = np.percentile(took, [5, 95]).tolist()
    domain, colours = [low, max(high, low + 1e-3)], {"name": "viridis", "extent": [0.12, 1]}
    figures = [
        {"field": name, "title": f"{name}, µs", "format": ",.3f"}
        for name in ("start", "end", "took")
    ]
    return {
        "mark": {"type": "rect", "stroke": "#fff", "strokeOpacity": 0.7, "strokeWidth": 0.5},
        "encoding": {
            "x2": {"field": "end"},
            "y": {
                "field": "lane", "type": "ordinal", "title": None, "sort": names,
                "scale": {"domain": names, "paddingInner": 0.1},
                "axis": {"labelOverlap": True, "ticks": False},
            },
            "yOffset": {"field": "slot", "type": "ordinal", "scale": {"paddingInner": 0}},
            "color": {
                "field": "took", "type": "quantitative",
                "scale": {"domain": domain, "clamp": True, "scheme": colours},
                "legend": {"orient": "bottom", "title": "block duration (µs)", "titleLimit": 0},
            },
            "tooltip": [
                {"field": "place", "type": "nominal", "title": "block"},
                {"field": "lane", "type": "nominal"},
                *figures,
            ],
        },
    }  # fmt: skip


def _notes(timeline: Timeline, profile: BlockProfile) -> list[str]:
    """What a reader must know: what the clock cost, and what the lanes are."""
    cost = f"reading the clock changed the launch's time by {profile.perturbation:+.1%}"
    if profile.perturbed:
        cost = f"≈ {cost}, more than {PERTURBATION_LIMIT:.0%}"
    lanes = "a lane per multiprocessor"
    if timeline.multiprocessors is None:
        lanes = "the compute unit of a block is not known: lanes only separate blocks that overlap"
    most = profile.multiprocessors
    idle = most - (profile.multiprocessors_used or most)
    none = [f"{idle:,} of {most:,} multiprocessors ran no block: no lane"] if idle > 0 else []
    return [f"{profile.blocks:,} blocks", cost, lanes, *none]
