"""Reading: an incomplete last line costs only itself, and only records are accepted;
and how records are written in JSON."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support import any_record
from support.golden import TableRegression
from support.launches import UNEVEN, analysed, sampled
from support.optional import present
from support.paths import ROOT
from support.record_files import only, read, write
from support.records import device, environment, in_turns, outcome, timing

import matbench
from matbench.analysis.gathering import CaseKey, finished, outcome_key, without_retried
from matbench.errors import MatbenchError, UsageError
from matbench.model import Case, Kernel, LaunchRules, Problem
from matbench.records import encoding, reading
from matbench.records.comparison import Comparison
from matbench.records.outcome import Accuracy, CaseRecord, ErrorCells, Outcome
from matbench.records.reading import Contents
from matbench.records.writing import RecordWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.jsonl"


# Torn files


def test_a_last_line_torn_anywhere_costs_only_itself(path: Path) -> None:
    write(path, outcome(), outcome(reason="größer", params={}))
    data = path.read_bytes()
    start = data.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(data)):
        path.write_bytes(data[:end])
        whole = end in (start, len(data) - 1)
        notes: list[str] = []
        found = read(path, notes)[1]
        assert len(found) == (2 if end == len(data) - 1 else 1), end
        assert bool(notes) != whole, end
        if end % 7 and not whole:  # every write waits for the disk
            continue
        with RecordWriter(path, environment(), "resume") as writer:
            assert writer.outcomes == found
            assert writer.notes == notes
            writer.write(outcome(kernel="next"))
        notes.clear()
        environments, resumed = read(path, notes)
        assert (resumed, notes) == ([*found, outcome(kernel="next")], [])
        assert len(environments) == 2


def test_a_torn_first_line_is_begun_anew(path: Path) -> None:
    write(path, outcome())
    first = path.read_bytes().split(b"\n")[0]
    for end in range(len(first)):
        path.write_bytes(first[:end])
        assert read(path) == ([], [])
        if end % 7:
            continue
        write(path, outcome(), mode="resume")
        assert read(path) == ([environment()], [outcome()])


@pytest.mark.parametrize("text", ["my notes", '{"my": "json"}', "a,b\n1,2\n", "\0\0", "[]\n"])
def test_a_file_of_others_is_never_cut_or_added_to(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(UsageError, match=r"x\.jsonl:1: "):
        write(path, outcome(), mode="resume")
    assert path.read_text() == text
    assert only(path.parent) == ["x.jsonl"]


# Schemas


@pytest.mark.parametrize("schema", ["1", "3", "null", "-1"])
def test_another_schema_is_refused(path: Path, schema: str) -> None:
    write(path, outcome())
    path.write_text(path.read_text().replace('"schema":2', f'"schema":{schema}', 1))
    written = path.read_text()
    for attempt in (lambda: read(path), lambda: write(path, outcome(), mode="resume")):
        with pytest.raises(UsageError, match=r"x\.jsonl:1: written by another version of matbench"):
            attempt()
    assert path.read_text() == written


# Hostile files


def test_a_malformed_line_costs_only_itself(path: Path, table_regression: TableRegression) -> None:
    def said(expression: str) -> str:
        line = eval(expression)
        write(path, outcome())
        whole = path.read_bytes()
        path.write_bytes(whole + line + b"\n" + whole)
        notes: list[str] = []
        assert read(path, notes)[1] == [outcome(), outcome()]
        assert len(notes) == line.count(b"\n") + 1
        assert len(notes[0]) < 600
        assert "\n" not in notes[0]
        path.write_bytes(line + b"\n" + whole)
        first = r"x\.jsonl:1: not a record: .*; fix or remove the line"
        with pytest.raises(UsageError, match=first):
            read(path)
        path.unlink()
        return notes[0].replace(str(path), path.name)

    table_regression("malformed.txt", said)


def test_a_long_line_costs_only_itself(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, outcome())
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", len(path.read_bytes()))
    path.write_bytes(b"".join([path.read_bytes(), b"x" * 10**5, b"\n", path.read_bytes()]))
    before = path.read_bytes()
    write(path, mode="resume")
    assert path.read_bytes() == before
    notes: list[str] = []
    assert read(path, notes)[1] == [outcome(), outcome()]
    assert notes == [
        f"{path}:3: not a record, ignored: longer than {reading.MAX_LINE_BYTES:,} bytes"
    ]


def test_the_first_lines_that_are_no_records_are_named(path: Path) -> None:
    write(path, outcome())
    path.write_bytes(path.read_bytes() + b"{}\n" * 1012)
    *notes, last = matbench.read(path).notes
    assert [note.partition(": ")[0] for note in notes] == [f"{path}:{n}" for n in range(3, 13)]
    assert last == f"{path}: more lines are ignored"


def test_a_file_with_a_line_that_is_no_record_is_resumed(path: Path) -> None:
    """The line may be another version's: it stays as it is."""
    write(path, outcome())
    path.write_bytes(path.read_bytes() + b'{"type":"outcome"}')  # complete, but for its end
    before = path.read_bytes()
    with RecordWriter(path, environment(), "resume") as writer:
        assert len(writer.notes) == 1
        writer.write(outcome("next"))
    assert path.read_bytes().startswith(before + b"\n")
    assert [one.case.kernel for one in read(path)[1]] == [outcome().case.kernel, "next"]


def test_reasons_and_notes_are_cut(path: Path) -> None:
    long = outcome(reason="x\ty\n" * 10**6 + "\x1b", notes=("\ud800",))
    assert present(long.reason).endswith("y\n… (3998041 more characters)")
    assert len(present(long.reason)) <= 2000
    assert outcome(reason="x" * 2000).reason == "x" * 2000
    assert long.notes == ("\ufffd",)
    again = outcome(reason=f"comparing: {long.reason}; {long.reason}")
    assert present(again.reason).endswith("… (7998055 more characters)")


@pytest.mark.parametrize("size", ["0", "-1", "9" * 4000])
def test_a_size_of_no_matrix_is_no_record(path: Path, size: str) -> None:
    write(path, outcome(), outcome())
    path.write_text(path.read_text().replace('"M":17', f'"M":{size}', 1))
    notes: list[str] = []
    assert read(path, notes)[1] == [outcome()]
    assert re.search(r"x\.jsonl:2: .* - at `\$\.case\.problem\.M`", notes[0])


def test_endless_lines_fail_cleanly() -> None:
    with pytest.raises(UsageError, match=r"/dev/zero:1: .* longer than"):
        read(Path("/dev/zero"))


WHOLE = "".join(f"{encoding.line(one)}\n" for one in (environment(), outcome())).encode()


edits = st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 12), st.binary(max_size=12))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(edits, min_size=1, max_size=4))
def test_any_bytes_are_read_or_refused(edits: list[tuple[int, int, bytes]], tmp_path: Path) -> None:
    data = WHOLE
    for start, length, bytes_ in edits:
        data = data[:start] + bytes_ + data[start + length :]
    path = tmp_path / "fuzzed.jsonl"
    path.write_bytes(data)
    try:
        environments, found = read(path)
    except UsageError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
    else:
        assert len(environments) + len(found) <= data.count(b"\n") + 1


def test_what_later_versions_add_is_skipped(path: Path) -> None:
    text = WHOLE.decode().replace('"reason":null', '"reason":null,"later":{"a":[1,"x"]}')
    path.write_text(text.replace('"device_kind"', '"more":1e999,"device_kind"'))
    assert read(path)[1] == [outcome()]


def test_what_was_found_about_a_case_belongs_to_the_outcome_before_it(path: Path) -> None:
    """`blocks` and `grade` print the outcome first."""
    first, second = outcome("first"), outcome("second")
    profile = analysed(sampled(UNEVEN))
    records = (environment(), outcome("zeroth"), first, second, profile, outcome("third"))
    path.write_text("".join(f"{encoding.line(record)}\n" for record in records))
    contents = reading.Contents(path)
    assert contents.findings == [(profile, [second])]
    kernels = [found.case.kernel for found in contents.outcomes]
    assert kernels == ["zeroth", "first", "second", "third"]
    path.write_text(path.read_text().replace('"second"', "2"))
    assert reading.Contents(path).findings == [(profile, [])]


PROFILE = json.loads(encoding.line(analysed(sampled(UNEVEN))))
TIMELINE = {"lanes": 2, "slots": 1, "multiprocessors": [3, 5], "bars": [[0, 0, 9, 0, 0]]}
WRONG = json.loads(encoding.line(outcome(status="wrong", error_map=ErrorCells(
    shape=(2, 5), step=2, wrong_elements=1, exact=True, least_power=-3, rows=(".0!",)
))))  # fmt: skip
GRADED = json.loads((ROOT / "results" / "cpu-grade.jsonl").read_text().splitlines()[1])


def test_what_does_not_fit_together(path: Path, table_regression: TableRegression) -> None:
    """A record, a key of it, and its changed value."""

    def refused(question: str) -> str:
        record, part, changed = question.split("; ")
        whole, notes = eval(record), list[str]()
        fits = {part: TIMELINE} if part == "timeline" else {}
        for change in (fits, {part: eval(changed)}):
            assert notes == []
            path.write_bytes(WHOLE + json.dumps(whole | change).encode() + b"\n")
            read(path, notes)
        return notes[0].replace(str(path), path.name)

    table_regression("misfits.txt", refused)


# Resuming


KERNEL = Kernel(
    name="tiled", summary="s", launch=LaunchRules(block=(1,), grid=(1,)), sha256="0" * 64
)


def test_the_key_of_a_case_is_the_key_of_its_outcome() -> None:
    case = Case(KERNEL, Problem(17, 33, 65), {"TILE": 16}, None)
    assert CaseKey.from_case(CaseRecord.from_case(case, device())) == outcome_key(outcome())
    second = CaseKey.from_case(CaseRecord.from_case(case, device(index=1)), 2)
    assert second == outcome_key(outcome(device_id="opencl:1", repetition=2))
    orders = ({"A": 1, "B": 2}, {"B": 2, "A": 1})
    assert len({outcome_key(outcome(params=params)) for params in orders}) == 1


@pytest.mark.parametrize("change", [
    {"kernel": "other"}, {"sha256": "1" * 64}, {"params": {"TILE": 8}}, {"params": {}},
    {"problem": Problem(17, 33, 66)}, {"problem": Problem(17, 33, 65, "signed")},
    {"problem": Problem(17, 33, 65, "uniform", 1)}, {"problem": Problem(17, 33, 65, alpha=2)},
    {"problem": Problem(17, 33, 65, beta=2)}, {"problem": Problem(17, 33, 65, batch=2)},
    {"backend": "cuda"}, {"device": "Another Processor"}, {"device_id": "opencl:1"},
    {"repetition": 2},
])  # fmt: skip
def test_another_case_is_measured_anew(change: dict[str, Any], path: Path) -> None:
    write(path, outcome())
    with RecordWriter(path, environment(), "resume") as writer:
        done = finished(writer.outcomes)
    assert outcome_key(outcome()) in done
    assert outcome_key(outcome(**change)) not in done


def test_only_a_failed_case_is_tried_anew() -> None:
    statuses = ["measured", "wrong", "skipped", "failed"]
    found = finished([outcome(kernel=status, status=status) for status in statuses])
    assert [one.status for one in found.values()] == statuses[:3]
    assert finished([outcome(interrupted=True)]) == {}
    assert finished([outcome(status="failed"), outcome()]) == {outcome_key(outcome()): outcome()}


def test_a_retried_failure_is_told_by_the_later_try() -> None:
    failed = outcome(status="failed", reason="killed")
    other = outcome(kernel="other", status="failed", reason="trap")
    kept = without_retried([failed, other, failed, outcome(), outcome()])
    assert [one.case.kernel for one in kept] == ["other", "tiled", "tiled"]
    assert kept[1].notes == ("an earlier attempt failed: killed",) * 2
    assert kept[2].notes == ()


# Encoding


def parsed(text: str) -> Any:
    """Standard JSON: no NaN, no infinity."""
    return json.loads(text, parse_constant=mock.Mock(side_effect=AssertionError))


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
