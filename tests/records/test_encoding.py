"""Encoding: records survive a round trip; values that are not finite become null."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import any_record
from support.record_files import write
from support.records import environment, outcome, timing

from matbench.model import Conditions
from matbench.records import encoding
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.records.outcome import Accuracy, Outcome
from matbench.records.reading import read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.jsonl"


def parsed(text: str) -> Any:
    """Standard JSON: no NaN, no infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


@given(records=st.lists(any_record.outcomes(), min_size=1, max_size=3))
def test_what_is_written_is_read_and_written_the_same(
    records: list[Outcome], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("records")
    write(folder / "x.jsonl", *records)
    environments, found = read(folder / "x.jsonl")
    assert (environments, found) == ([environment()], records)
    write(folder / "again.jsonl", *found)
    text = (folder / "x.jsonl").read_text()
    assert (folder / "again.jsonl").read_text() == text
    lines = text.splitlines()  # no character in a text ends a line early
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds == ["environment"] + ["outcome"] * len(records)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_numbers_that_are_not_finite_are_null(number: float, path: Path) -> None:
    record = outcome(
        accuracy=Accuracy(None, 0.5, number),
        cold=timing(conditions=(Conditions(power_w=number, load=2.0),)),
    )
    write(path, record)
    plain = parsed(path.read_text().splitlines()[1])
    assert plain["accuracy"] == {"max_rel_err": None, "avg_rel_err": 0.5, "bound_ratio": None}
    [conditions] = plain["cold"]["conditions"]
    assert (conditions["power_w"], conditions["load"]) == (None, 2.0)
    sides = {"baseline": outcome(), "candidate": outcome()}
    unsure = Comparison(number, None, number, "UNDECIDED", 1, (3, 3), "too few")
    comparison = ComparisonRecord(baseline_name="a", candidate_name="b", comparison=unsure, **sides)
    [plain] = parsed(encoding.array([comparison]))
    assert plain["comparison"]["ratio"] is plain["comparison"]["p_value"] is None


def test_names_that_are_not_utf8_and_numpys_scalars_are_recorded(path: Path) -> None:
    samples = (np.float64(1.5), np.float32(1.5))
    write(path, outcome(reason="file \udcff.cu", cold=timing(samples_ns=samples)))
    (found,) = read(path)[1]
    assert (found.reason, found.median_ns) == ("file ?.cu", 1.5)


def test_json_is_the_same_objects_as_one_array(path: Path) -> None:
    accuracy = Accuracy(math.nan, None, None)
    records = [outcome(), outcome(status="failed", accuracy=accuracy)]
    write(path, *records)
    text = encoding.array([environment(), *records])
    assert json.loads(text) == [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text(text)
    unknown = msgspec.structs.replace(records[1], accuracy=Accuracy(None, None, None))
    assert read(path) == ([environment()], [records[0], unknown])
