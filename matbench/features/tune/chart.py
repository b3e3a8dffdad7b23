"""The best candidates of a search, as a chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from matbench.features.charts.definitions import Chart, forest
from matbench.features.charts.style import PALETTE
from matbench.features.tune.record import TuningRecord
from matbench.features.tune.view import best_of
from matbench.model import settings_of
from matbench.show.outcomes import size_label
from matbench.show.table import grouped


def charts(found: Iterable[tuple[TuningRecord, object]]) -> Iterator[Chart]:
    """How fast the best candidates of each search are, compared with the fastest default."""
    colours = dict(zip(("winner", "default", "candidate"), PALETTE, strict=False))

    def search(record: TuningRecord) -> str:
        case = record.outcome.case
        return f"{case.kernel} at {size_label(case.problem)} on {case.device}"

    for title, records in grouped((record for record, _ in found), search).items():
        rows = []
        for record in best_of(records):
            ratio = record.comparison.ratio if record.comparison else record.median_ratio
            low, high = (record.comparison and record.comparison.interval) or (ratio, ratio)
            if ratio and low and high:
                other = "default" if record.is_default else "candidate"
                rows.append({
                    "label": settings_of(record.outcome.case.params), "value": 1 / ratio,
                    "low": 1 / high, "high": 1 / low,
                    "kind": "winner" if record.is_best else other,
                })  # fmt: skip
        if rows:
            note = "times as fast as the fastest default"
            yield Chart(f"Search for the fastest {title}", note, forest(colours, rows))
