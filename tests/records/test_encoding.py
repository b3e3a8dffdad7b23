"""Encoding: records survive a round trip; values that are not finite become null, with a note."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import any_record
from support.optional import present
from support.record_files import write
from support.records import environment, in_turns, outcome, timing

from matbench.model import Conditions
from matbench.records import encoding
from matbench.records.comparison import Comparison
from matbench.records.outcome import Accuracy, BlockTimes, Build, Outcome
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


FULL = outcome(
    build=Build(duration_s=1.0, occupancy=0.5),
    accuracy=Accuracy(0.1, 0.2, 0.3),
    cold=timing(samples_ns=(1.0, 2.0, 3.0), interval_ns=(1.0, 3.0), notes=("before",)),
    hot=timing(interval_ns=(1.0, 1e9), conditions=(Conditions(power_w=1.0, load=2.0),)),
    blocks=BlockTimes(median_ns=1.0, imbalance=0.1, perturbation=0.2, sm_mhz=3.0),
    copy_bytes_per_s=1e12,
)


def floats(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where a record holds floats, except those checked when a kernel file is loaded."""
    if isinstance(value, float):
        yield path
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in ("claims", "alpha", "beta"):
                yield from floats(getattr(value, name), (*path, name))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from floats(item, (*path, index))


def replaced(value: Any, path: tuple[str | int, ...], number: float) -> Any:
    if not path:
        return number
    first, *rest = path
    if isinstance(first, int):
        items = list(value)
        items[first] = replaced(items[first], tuple(rest), number)
        return tuple(items)
    changed = replaced(getattr(value, first), tuple(rest), number)
    return msgspec.structs.replace(value, **{first: changed})


@pytest.mark.parametrize("place", list(floats(FULL)), ids=lambda place: ".".join(map(str, place)))
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_the_infinite_is_unknown(place: tuple[str | int, ...], number: float, path: Path) -> None:
    record = replaced(FULL, place, number)
    write(path, record)
    for line in path.read_text().splitlines():
        parsed(line)
    (found,) = read(path)[1]
    assert found == encoding.finite(record)
    assert found != FULL
    holder = found
    if place[0] in ("cold", "hot"):
        holder = getattr(found, str(place[0]))
    field = str([name for name in place if isinstance(name, str)][-1])
    assert holder.notes[-1].startswith("not finite, so recorded as unknown: ")
    assert f"{field} ({float(number)})" in holder.notes[-1]
    cold, hot = present(found.cold), present(found.hot)
    assert len(found.notes) + len(cold.notes) + len(hot.notes) == 2


def test_samples_that_are_finite_stay_without_the_median_of_all() -> None:
    known = timing(samples_ns=(1.0, math.nan, 3.0, math.inf), median_ns=2.0, interval_ns=(1.0, 3.0))
    found = encoding.finite(outcome(hot=known, notes=("mine",)))
    assert found.hot is not None
    assert (found.hot.samples_ns, found.hot.median_ns, found.hot.interval_ns) == (
        *((1.0, 3.0), None, None),
    )
    assert found.hot.notes == ("not finite, so recorded as unknown: samples_ns (inf, nan)",)
    assert found.notes == ("mine",)


def test_a_median_that_is_not_finite_is_unknown_beside_its_samples() -> None:
    found = encoding.finite(outcome(cold=timing(samples_ns=(1.0, 2.0), median_ns=math.nan)))
    assert found.cold is not None
    assert (found.samples_ns, found.median_ns) == ((1.0, 2.0), None)
    assert found.cold.notes == ("not finite, so recorded as unknown: median_ns (nan)",)


def test_what_is_finite_is_left_as_it_is() -> None:
    assert encoding.finite(FULL) == FULL


def test_an_infinite_share_of_the_bound_is_null_with_its_reason(path: Path) -> None:
    write(
        path,
        outcome(status="wrong", reason="never written", accuracy=Accuracy(None, None, math.inf)),
    )
    plain = json.loads(path.read_text().splitlines()[1])
    assert plain["accuracy"]["bound_ratio"] is None
    assert plain["notes"] == ["not finite, so recorded as unknown: accuracy.bound_ratio (inf)"]
    problem = plain["case"]["problem"]
    assert (problem["M"], problem["N"], problem["K"]) == (17, 33, 65)


def test_records_of_every_kind_are_finite() -> None:
    unsure = Comparison(math.nan, (1.0, math.inf), "UNDECIDED", 1, (3, 3), "too few")
    other = outcome(cold=timing(median_ns=math.inf))
    (plain,) = parsed(encoding.array([in_turns(unsure, FULL, other)]))
    assert plain["comparison"]["interval"] is None
    assert plain["notes"] == [
        "not finite, so recorded as unknown: comparison.ratio (nan), comparison.interval (inf)"
    ]
    assert plain["candidate"]["cold"]["notes"] == [
        "not finite, so recorded as unknown: median_ns (inf)"
    ]


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
    accuracy = Accuracy(math.nan, None, None)
    records = [outcome(), outcome(status="failed", accuracy=accuracy)]
    write(path, *records)
    text = encoding.array([environment(), *records])
    assert json.loads(text) == [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text(text)
    assert read(path) == ([environment()], [encoding.finite(record) for record in records])
