"""How the errors of kernels grow with K, as a chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from matbench.features.charts import definitions, style
from matbench.features.charts.definitions import Chart
from matbench.features.grade.record import Grade
from matbench.features.grade.view import name_of


def charts(found: Iterable[tuple[Grade, object]]) -> Iterator[Chart]:
    """How the largest errors of all kernels grow."""
    rows: list[dict[str, Any]] = [
        {"kernel": name_of(grade), "n": size, "is_baseline": grade.case.group == "baseline",
         "value": error, "low": error, "high": error}
        for grade, _ in found
        if grade.growth is not None
        for size, error in zip(grade.growth.sizes, grade.growth.errors, strict=True)
        if error and size
    ]  # fmt: skip
    if rows:
        looks = style.looks(dict.fromkeys((row["kernel"], row["is_baseline"]) for row in rows))
        y = definitions.quantity("value", form=definitions.SCIENTIFIC, close=True)
        spec = definitions.curve(looks, y, least=definitions.LEAST_ERRORS, legend=True)
        spec["encoding"]["x"]["title"] = "K"
        title = "Largest error over K, relative to u·(|A|·|B|)"
        yield Chart(title, "", {**spec, "data": {"values": rows}})
