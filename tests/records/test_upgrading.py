"""Upgrading: a file of schema 1 reads like one of today; no figure is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.paths import ROOT
from support.record_files import write
from support.records import environment, outcome

from matbench.errors import UsageError
from matbench.model import Conditions, Resources
from matbench.records import encoding
from matbench.records.outcome import Accuracy, BlockTimes, Build, Outcome, Timing
from matbench.records.reading import read
from matbench.records.writing import RecordWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.jsonl"


#: The new place of each field of schema 1. Those of `_OWN` go to the row's own samples.
PLACES = {
    **{
        name: f"case.{name}"
        for name in (
            "kernel", "sha256", "group", "summary", "params", "problem", "backend", "device",
            "device_kind", "launch",
        )
    },
    "precision": "case.claims.precision",
    **{name: name for name in ("type", "status", "reason", "copy_bytes_per_s", "notes")},
    **{name: f"OWN.{name}" for name in ("samples_ns", "median_ns", "interval_ns", "warmups",
                                        "settled", "stopped", "attempts", "conditions")},
    **{f"hot_{name}": f"hot.{name}" for name in ("samples_ns", "median_ns", "interval_ns")},
    **{name: f"accuracy.{name}" for name in ("max_rel_err", "avg_rel_err", "bound_ratio")},
    "resources": "build.resources",
    "resident_blocks": "build.resident_blocks",
    "occupancy": "build.occupancy",
    "build_s": "build.duration_s",
    "block_median_ns": "blocks.median_ns",
    "block_imbalance": "blocks.imbalance",
    "block_perturbation": "blocks.perturbation",
    "sm_mhz": "blocks.sm_mhz",
}  # fmt: skip


def at(record: Any, place: str) -> Any:
    """The value at a path such as `case.kernel`; None if its group is None."""
    for name in place.split("."):
        record = record.get(name) if record is not None else None
    return record


#: Fields added later, and their values for records without them.
LATER: dict[str, Any] = {
    "alpha": 1.0, "beta": 0.0, "batch": 1, "accumulator": None, "result": "float32",
    "placing": {"layout": "row-major", "transpose": "NN", "padding": 0},
    "repetition": 1, "others_share": None, "variations": {}, "storage": None, "device_id": "",
    "workspace_bytes": 0,
}  # fmt: skip


def before(record: Any) -> Any:
    """A record without the fields added later, if they have their defaults."""
    if isinstance(record, dict):
        kept = {key: value for key, value in record.items() if LATER.get(key, ...) != value}
        return {key: before(value) for key, value in kept.items()}
    return [before(item) for item in record] if isinstance(record, list) else record


def assert_same(old: dict[str, Any], found: Outcome) -> None:
    """Every field of an outcome of schema 1 is found in its new place."""
    new = json.loads(encoding.line(found))
    own = "hot" if old.get("timing_mode") in ("hot", "hot graph") else "cold"
    assert found.mode == old.get("timing_mode")
    for name, value in old.items():
        if name == "timing_mode":
            continue
        place = PLACES[name].replace("OWN", own)
        if value in (None, []):
            assert at(new, place) in (None, []), name
        else:
            assert before(at(new, place)) == value, name


@pytest.mark.parametrize("file", sorted((ROOT / "results").glob("*.jsonl")), ids=lambda p: p.name)
def test_every_figure_of_the_committed_results_is_found(file: Path, path: Path) -> None:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    environments, found = read(file)
    for plain, record in zip(
        [line for line in lines if line["type"] == "environment"], environments, strict=True
    ):
        assert before(json.loads(encoding.line(record))) == before(plain | {"schema": 2})
    flat = [line for line in lines if line["type"] == "outcome" and "case" not in line]
    nested = [line for line in lines if line["type"] == "outcome" and "case" in line]
    for line in lines:
        if line["type"] == "comparison":
            nested += [line["baseline"], line["candidate"]]
    if flat:
        assert not nested
        for plain, record in zip(flat, found, strict=True):
            assert_same(plain, record)
    else:
        written = (json.loads(encoding.line(record)) for record in found)
        assert list(map(before, written)) == list(map(before, nested))
    path.write_text(encoding.array([*environments, *found]))
    assert read(path) == (environments, found)


OLD: dict[str, Any] = {
    "type": "outcome", "kernel": "tiled", "sha256": "0" * 64, "group": "tutorial", "summary": "s",
    "params": {"TILE": 16},
    "problem": {"M": 17, "N": 33, "K": 65, "inputs": "uniform", "seed": 0, "workload": "matmul"},
    "backend": "opencl", "device": "A Processor", "device_kind": "cpu", "precision": "tf32",
    "launch": {"grid": [1, 2, 1], "block": [16, 16, 1], "shared_bytes": 0},
    "status": "measured", "reason": None, "samples_ns": [1.0, 2.0, 3.0], "median_ns": 2.0,
    "interval_ns": [1.0, 3.0], "timing_mode": "cold", "hot_median_ns": 1.5,
    "hot_interval_ns": [1.0, 2.0], "hot_samples_ns": [1.0, 2.0], "warmups": 2, "settled": False,
    "stopped": "max time", "max_rel_err": 0.1, "avg_rel_err": 0.01, "bound_ratio": 0.5,
    "block_median_ns": 0.5, "block_perturbation": -0.01, "block_imbalance": 0.2,
    "resources": {"registers": 32, "static_shared_bytes": None, "local_bytes": 0,
                  "spilled_bytes": 0, "max_threads_per_block": 1024, "library": None},
    "resident_blocks": 4, "occupancy": 0.5, "build_s": 0.1,
    "conditions": [{"sm_mhz": 1980, "memory_mhz": None, "temperature_c": 40, "power_w": 99.5,
                    "throttled": ["power"], "load": None, "governor": None}],
    "sm_mhz": 1965.5, "attempts": 3, "copy_bytes_per_s": 1e12, "notes": ["a note"],
}  # fmt: skip
OLD_ENVIRONMENT = json.loads(encoding.line(environment())) | {"schema": 1}


def old_file(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (OLD_ENVIRONMENT, *records)))
    return path


def test_flat_fields_stand_in_their_groups(path: Path) -> None:
    [environment_], [found] = (list(part) for part in read(old_file(path, OLD)))
    assert environment_ == environment()
    assert_same(OLD, found)
    assert found.case.claims.precision == "tf32"
    assert found.build == Build(
        duration_s=0.1,
        resources=Resources(32, None, 0, 0, 1024),
        resident_blocks=4,
        occupancy=0.5,
    )
    assert found.accuracy == Accuracy(0.1, 0.01, 0.5)
    assert found.cold == Timing(
        samples_ns=(1.0, 2.0, 3.0),
        median_ns=2.0,
        interval_ns=(1.0, 3.0),
        warmups=2,
        settled=False,
        stopped="max time",
        attempts=3,
        conditions=(Conditions(1980, None, 40, 99.5, ("power",)),),
    )
    assert found.hot == Timing(samples_ns=(1.0, 2.0), median_ns=1.5, interval_ns=(1.0, 2.0))
    assert found.blocks == BlockTimes(
        median_ns=0.5, imbalance=0.2, perturbation=-0.01, sm_mhz=1965.5
    )
    assert found.notes == ("a note",)


@pytest.mark.parametrize("mode", ["hot", "hot graph"])
def test_samples_that_were_hot_are_hot(mode: str, path: Path) -> None:
    none = {"hot_median_ns": None, "hot_interval_ns": None, "hot_samples_ns": []}
    [found] = read(old_file(path, OLD | none | {"timing_mode": mode}))[1]
    assert (found.cold, found.mode, found.median_ns) == (None, mode, 2.0)
    assert found.hot is not None
    assert (found.hot.settled, found.hot.graph) == (False, mode == "hot graph")
    with pytest.raises(UsageError, match=r"x\.jsonl:2: .*not an outcome of schema 1"):
        read(old_file(path, OLD | {"timing_mode": mode}))


def test_a_case_that_was_not_measured_has_no_times(path: Path) -> None:
    none = dict.fromkeys(
        ("median_ns", "interval_ns", "hot_median_ns", "hot_interval_ns", "block_median_ns")
    )
    wrong = OLD | none | {"status": "wrong", "samples_ns": [], "hot_samples_ns": []}
    [found] = read(old_file(path, wrong))[1]
    assert (found.status, found.cold, found.hot, found.blocks) == ("wrong", None, None, None)
    assert found.accuracy == Accuracy(0.1, 0.01, 0.5)
    for changes in ({"median_ns": 2.0}, {"hot_samples_ns": [1.0]}, {"block_median_ns": 1.0}):
        with pytest.raises(UsageError, match=r"x\.jsonl:2: .*a wrong case cannot have times"):
            read(old_file(path, wrong | changes))


def test_fields_that_came_later_may_be_missing(path: Path) -> None:
    names = ("type", "kernel", "sha256", "group", "params", "problem", "backend", "device",
             "device_kind", "status", "samples_ns", "median_ns")  # fmt: skip
    [found] = read(old_file(path, {name: OLD[name] for name in names}))[1]
    assert found.cold == Timing(samples_ns=(1.0, 2.0, 3.0), median_ns=2.0)
    assert (found.build, found.accuracy, found.blocks) == (None, None, None)


@pytest.mark.parametrize("name", ["kernel", "sha256", "problem", "params", "status"])
def test_a_required_field_that_is_missing_is_named(name: str, path: Path) -> None:
    with pytest.raises(UsageError, match=rf"x\.jsonl:2: .*missing required field `{name}`"):
        read(old_file(path, {key: value for key, value in OLD.items() if key != name}))


def test_a_contradiction_of_schema_1_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match=r"x\.jsonl:2: .*median_ns is 9"):
        read(old_file(path, OLD | {"median_ns": 9.0, "interval_ns": None}))


def test_an_older_file_is_added_to_and_printed_as_a_new_one(path: Path) -> None:
    old_file(path, OLD)
    before = path.read_bytes()
    with RecordWriter(path, environment(), "append") as writer:
        writer.write(outcome())
    assert path.read_bytes().startswith(before)
    environments, found = read(path)
    assert [one.schema for one in environments] == [2, 2]
    assert found == [*writer.outcomes, outcome()]
    path.write_text(encoding.array([*environments, *found]))
    assert read(path) == (environments, found)


def test_a_torn_line_of_an_older_file_is_left_out(path: Path) -> None:
    old_file(path, OLD)
    path.write_bytes(path.read_bytes()[:-10])
    notes: list[str] = []
    assert read(path, notes)[1] == []
    assert len(notes) == 1
    write(path, outcome(), mode="resume")
    assert read(path)[1] == [outcome()]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
).filter(lambda value: "Infinity" not in json.dumps(value))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(sorted(OLD)), values, min_size=1, max_size=3))
def test_fields_of_any_value_are_read_or_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "fuzzed.jsonl"
    try:
        [found] = read(old_file(path, OLD | changes))[1]
    except UsageError as error:
        assert str(error).startswith(f"{path}:2: ")
    else:
        assert isinstance(found, Outcome)
