"""Encoding: records survive a round trip; numbers that are not finite become null."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support import any_record
from support.record_files import write
from support.records import environment, in_turns, outcome, timing

from matbench.errors import MatbenchError
from matbench.records import encoding
from matbench.records.comparison import Comparison
from matbench.records.outcome import Accuracy, Outcome
from matbench.records.reading import Contents, read


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
def test_the_infinite_is_unknown(number: float, path: Path) -> None:
    accuracy, cold = Accuracy(number, 0.5, None), timing(median_ns=number, interval_ns=(1.0, 2.0))
    write(path, outcome(accuracy=accuracy, cold=cold))
    for line in path.read_text().splitlines():
        parsed(line)
    known = replace(cold, median_ns=None)
    assert read(path)[1] == [outcome(accuracy=Accuracy(None, 0.5, None), cold=known)]


def test_a_sample_must_be_known(path: Path) -> None:
    with pytest.raises(MatbenchError, match="contradicts itself: Expected `float`, got `null`"):
        write(path, outcome(cold=timing(samples_ns=(1.0, math.inf))))


def test_names_that_are_not_utf8_and_numpys_scalars_are_recorded(path: Path) -> None:
    samples = (np.float64(1.5), np.float32(1.5))
    write(path, outcome("file \udcff.cu", cold=timing(samples_ns=samples)))
    (found,) = read(path)[1]
    assert (found.case.kernel, found.median_ns) == ("file ?.cu", 1.5)


def test_an_answer_is_written_as_records_are() -> None:
    assert encoding.line({"ratios": (1.0, None, math.inf), "id": "\ud800"}) == (
        '{"ratios":[1.0,null,null],"id":"?"}'
    )


def test_json_is_the_same_objects_as_one_array(path: Path) -> None:
    comparison = Comparison(math.nan, None, "UNDECIDED", 1, (3, 3), "too few")
    records = [outcome(), in_turns(comparison, outcome(), outcome(status="failed"))]
    write(path, *records)
    text = encoding.array([environment(), *records])
    assert parsed(text) == [json.loads(line) for line in path.read_text().splitlines()]
    assert parsed(text)[2]["comparison"]["ratio"] is None
    array = path.with_name("array.json")
    array.write_text(text)
    assert Contents(array).records == Contents(path).records
