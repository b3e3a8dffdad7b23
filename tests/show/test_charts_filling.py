"""Definitions are filled so completely that nothing is left to be looked up."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.pictures import needs_plots

from matbench.show.charts import kept
from matbench.show.charts.filling import Box, filled

DEFINITION: dict[str, Any] = {
    "params": [{"name": "up", "value": []}],
    "layer": [{
        "data": {"name": "points"},
        "mark": {"type": "text", "height": 7},
        "encoding": {
            "y": {"field": "up", "scale": {"domain": {"expr": "up"}}},
            "x": {"value": {"expr": "width + 10"}},
            "opacity": {"condition": {"test": "isolated.length == 0 || datum.up > up[0]"}},
        },
    }],
}  # fmt: skip
BOX = Box(300, 200, left=1, right=2, top=3, bottom=4)


def test_data_and_parameters_become_part_of_the_chart() -> None:
    made = filled(DEFINITION, {"points": [{"up": 5}]}, BOX, up=[1, 9])
    [layer] = made["layer"]
    assert layer["data"] == {"values": [{"up": 5}]}
    assert layer["encoding"] == {
        "y": {"field": "up", "scale": {"domain": [1, 9]}},
        "x": {"value": {"expr": "300 + 10"}},
        "opacity": {"condition": {"test": "[].length == 0 || datum.up > [1, 9][0]"}},
    }
    assert layer["mark"]["height"] == 7
    assert (made["width"], made["height"]) == (300, 200)
    assert made["padding"] == {"left": 1, "right": 2, "top": 3, "bottom": 4}
    assert "params" not in made
    assert BOX.outer == (303, 207)


def test_data_that_are_missing_are_noticed() -> None:
    with pytest.raises(KeyError, match="points"):
        filled(DEFINITION, {}, BOX, up=[1, 9])


@needs_plots
def test_no_definition_keeps_a_parameter() -> None:
    for name in ("curve-log", "forest", "roofline"):
        definition = kept.specs()[name]
        datasets = re.findall(r'"data": {"name": "(\w+)"}', json.dumps(definition))
        parameters = [each["name"] for each in definition["params"]]
        assert "across" in parameters
        made = filled(
            definition,
            {name: [] for name in datasets},
            BOX,
            **{each: [1, 2] for each in parameters if each != "isolated"},
        )
        left = re.findall(r'"(?:expr|test|labelExpr)": "([^"]*)"', json.dumps(made))
        assert left
        used = {word for text in left for word in re.findall(r"(?<![.'\w])[a-z_]+\b", text)}
        assert not used & {*parameters, "width", "height"}, name
