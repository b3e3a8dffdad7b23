"""A definition with its data and parameters, for a picture without a script."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matbench.show.charts.parts import Spec


@dataclass(frozen=True)
class Box:
    """The plotted area of a chart and the room around it for labels, in pixels."""

    width: float
    height: float
    left: float = 56
    right: float = 16
    top: float = 12
    bottom: float = 28

    @property
    def outer(self) -> tuple[float, float]:
        """Width and height with the room around it."""
        return self.left + self.width + self.right, self.top + self.height + self.bottom


def filled(
    definition: Spec,
    datasets: Mapping[str, Sequence[Mapping[str, Any]]],
    box: Box,
    **parameters: Any,
) -> Spec:
    """The definition as a chart that needs nothing else.

    Data become values; parameters, `width` and `height` become constants wherever expressions name
    them. Nothing is isolated.
    """
    known = {"isolated": [], "width": box.width, "height": box.height, **parameters}
    names = re.compile(rf"(?<![\w.'])(?:{'|'.join(map(re.escape, known))})\b")

    def fill(key: str, value: Any) -> Any:
        if isinstance(value, list):
            return [fill("", one) for one in value]
        if isinstance(value, dict):
            if value.keys() == {"expr"} and value["expr"] in known:
                return known[value["expr"]]
            if key == "data" and "name" in value:
                return {"values": list(datasets[value["name"]])}
            return {name: fill(name, one) for name, one in value.items()}
        if key in ("expr", "test", "labelExpr", "calculate") and isinstance(value, str):
            return names.sub(lambda found: json.dumps(known[found[0]]), value)
        return value

    chart: Spec = fill("", {key: part for key, part in definition.items() if key != "params"})
    padding = {"left": box.left, "right": box.right, "top": box.top, "bottom": box.bottom}
    size = {"width": box.width, "height": box.height, "padding": padding, "autosize": "none"}
    return {**chart, **size}
