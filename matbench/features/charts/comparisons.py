"""The charts of comparisons: how many times as fast each candidate is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from matbench.features.charts import definitions
from matbench.features.charts.definitions import Chart
from matbench.model import settings_of
from matbench.records.comparison import ComparisonRecord
from matbench.records.reading import Pair
from matbench.show import comparisons
from matbench.show.outcomes import size_label
from matbench.show.table import grouped, of_tables


def charts(found: Sequence[Pair]) -> Iterator[Chart]:
    """One for each size."""
    records = [record for record, _ in found if isinstance(record, ComparisonRecord)]
    sizes = grouped(records, lambda record: size_label(record.candidate.case.problem))
    titles = [column.title for column in of_tables(comparisons.COLUMNS)]
    for size, group in sizes.items():
        points: list[dict[str, Any]] = []
        for record in group:
            if record.ratio:  # of times; a chart is of speeds
                low, high = record.interval or (record.ratio, record.ratio)
                [row] = comparisons.rows([record])
                name = f"{record.candidate_name} {settings_of(record.candidate.case.params)}"
                points.append({
                    "label": f"{name.strip()} / {record.baseline_name}",
                    "kind": record.verdict or "",
                    "value": 1 / record.ratio,
                    "low": 1 / high if high else None,
                    "high": 1 / low if low else None,
                    "tip": dict(zip(titles, row.cells, strict=True)) | {"verdict": row.status},
                })  # fmt: skip
        if points:
            spec = definitions.forest(definitions.VERDICTS, points)
            yield Chart(f"Comparisons at {size}", "times as fast as the baseline", spec, full=False)
