"""Records: what was written is read again, whatever ended the run, and nothing else is believed."""

from __future__ import annotations

import fcntl
import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from matbench.errors import MatbenchError, UsageError
from matbench.model import (
    Case,
    DeviceInfo,
    Environment,
    Kernel,
    Launch,
    LaunchRules,
    Outcome,
    Problem,
    Resources,
)
from matbench.records import results
from matbench.records.results import RecordWriter

DEVICE = DeviceInfo(
    backend="opencl",
    index=0,
    name="A Processor",
    kind="cpu",
    driver="1.2",
    toolkit="OpenCL C 3.0",
    limits={"warp_size": 1},
)
ENVIRONMENT = Environment(
    schema=results.SCHEMA,
    argv=("matbench", "run"),
    time="2026-11-21T12:00:00+00:00",
    host="host",
    os="Linux",
    python="CPython 3.12",
    packages={"numpy": "2.0"},
    devices=(DEVICE,),
    project_revision=None,
)


def outcome(**changes: Any) -> Outcome:
    values: dict[str, Any] = {
        "kernel": "tiled",
        "sha256": "0" * 64,
        "group": "tutorial",
        "params": {"TILE": 16},
        "problem": Problem(17, 33, 65),
        "backend": "opencl",
        "device": "A Processor",
        "device_kind": "cpu",
        "status": "measured",
        "samples_ns": (1000.0, 1100.0, 1200.0),
        "median_ns": 1100.0,
    }
    return Outcome(**(values | changes))


def write(path: Path, *outcomes: Outcome, mode: results.Mode = "new") -> None:
    with RecordWriter(path, ENVIRONMENT, mode) as writer:
        for one in outcomes:
            writer.write(one)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.jsonl"


def only(folder: Path) -> list[str]:
    """The files of a folder, hidden ones too."""
    return sorted(entry.name for entry in folder.iterdir())


# Round trip

numbers = st.floats(allow_nan=False, allow_infinity=False)
any_numbers = st.floats()
counts = st.integers(1, 2**31)
names = st.dictionaries(st.text(max_size=8), st.integers(-(2**63), 2**63 - 1), max_size=3)
problems = st.builds(
    Problem, counts, counts, counts, st.sampled_from(["uniform", "signed", "normal"]), counts
)


def outcomes(floats: st.SearchStrategy[float]) -> st.SearchStrategy[Outcome]:
    maybe = st.none() | floats
    triples = st.tuples(counts, counts, counts)
    return st.builds(
        Outcome,
        kernel=st.text(),
        sha256=st.text(),
        group=st.sampled_from(["tutorial", "ladder", "baseline"]),
        summary=st.text(),
        params=names,
        problem=problems,
        backend=st.text(),
        device=st.text(),
        device_kind=st.sampled_from(["gpu", "cpu"]),
        launch=st.none() | st.builds(Launch, triples, triples, counts),
        status=st.sampled_from(["measured", "wrong", "skipped", "failed"]),
        reason=st.none() | st.text(),
        samples_ns=st.lists(floats, max_size=5).map(tuple),
        median_ns=maybe,
        interval_ns=st.none() | st.tuples(floats, floats),
        timing_mode=st.sampled_from(["cold", "hot", None]),
        warmups=st.none() | counts,
        settled=st.none() | st.booleans(),
        stopped=st.none() | st.text(),
        max_rel_err=maybe,
        avg_rel_err=maybe,
        bound_ratio=maybe,
        block_median_ns=maybe,
        block_perturbation=maybe,
        resources=st.none() | st.builds(Resources, counts, counts, counts, counts),
        build_s=maybe,
        notes=st.lists(st.text(), max_size=3).map(tuple),
    )


@settings(max_examples=60, deadline=None)
@given(records=st.lists(outcomes(numbers), min_size=1, max_size=3))
def test_what_is_written_is_read_again(
    records: list[Outcome], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("records") / "x.jsonl"
    write(path, *records)
    assert results.read(path) == ([ENVIRONMENT], records)
    lines = path.read_text().splitlines()  # no character of a text ends a line early
    assert len(lines) == 1 + len(records)
    assert [json.loads(line)["type"] for line in lines] == ["environment"] + ["outcome"] * len(
        records
    )


@settings(max_examples=60, deadline=None)
@given(record=outcomes(any_numbers))
@example(record=outcome(bound_ratio=math.inf, median_ns=math.nan, interval_ns=(1.0, math.inf)))
@example(record=outcome(samples_ns=(1.0, math.nan, 3.0, math.inf)))
def test_what_is_not_finite_is_null_and_told(
    record: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("records") / "x.jsonl"
    write(path, record)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=refuse)
    (read,) = results.read(path)[1]
    assert read == results.finite(record)
    assert all(map(math.isfinite, read.samples_ns))
    if read != record:
        assert "not finite" in read.notes[-1]


def test_an_infinite_share_of_the_bound_is_null_with_its_reason(path: Path) -> None:
    write(path, outcome(status="wrong", reason="never written", bound_ratio=math.inf))
    plain = json.loads(path.read_text().splitlines()[1])
    assert plain["bound_ratio"] is None
    assert plain["notes"] == ["not finite, so recorded as unknown: bound_ratio (inf)"]
    assert plain["params"] == {"TILE": 16}
    assert (plain["problem"]["M"], plain["problem"]["N"], plain["problem"]["K"]) == (17, 33, 65)


def test_names_that_are_not_utf8_and_numpys_scalars_are_recorded(path: Path) -> None:
    write(path, outcome(reason="file \udcff.cu", median_ns=np.float64(1.5)))
    (read,) = results.read(path)[1]
    assert (read.reason, read.median_ns) == ("file ?.cu", 1.5)


def test_json_is_the_same_objects_as_one_array(path: Path) -> None:
    records = [outcome(), outcome(status="failed", max_rel_err=math.nan)]
    write(path, *records)
    array = json.loads(results.to_json([ENVIRONMENT], records))
    assert array == [json.loads(line) for line in path.read_text().splitlines()]


# Torn files


def test_a_last_line_torn_anywhere_costs_only_itself(path: Path) -> None:
    write(path, outcome(), outcome(reason="größer", params={}))
    data = path.read_bytes()
    start = data.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(data)):
        path.write_bytes(data[:end])
        whole = end in (start, len(data) - 1)
        notes: list[str] = []
        read = results.read(path, notes)[1]
        assert len(read) == (2 if end == len(data) - 1 else 1), end
        assert bool(notes) != whole, end
        if end % 7 and not whole:  # every write waits for the disk
            continue
        with RecordWriter(path, ENVIRONMENT, "resume") as writer:
            assert writer.outcomes == read
            assert writer.notes == notes
            writer.write(outcome(kernel="next"))
        notes.clear()
        environments, found = results.read(path, notes)
        assert (found, notes) == ([*read, outcome(kernel="next")], [])
        assert len(environments) == 2


def test_a_torn_first_line_is_begun_anew(path: Path) -> None:
    write(path, outcome())
    first = path.read_bytes().split(b"\n")[0]
    for end in range(len(first)):
        path.write_bytes(first[:end])
        assert results.read(path) == ([], [])
        if end % 7:
            continue
        write(path, outcome(), mode="append")
        assert results.read(path) == ([ENVIRONMENT], [outcome()])


def test_a_tail_of_zeros_is_torn_too(path: Path) -> None:
    write(path, outcome())
    with path.open("ab") as file:
        file.write(bytes(100))
    assert results.read(path)[1] == [outcome()]


@pytest.mark.parametrize("text", ["my notes", '{"my": "json"}', "a,b\n1,2\n", "\0\0", "[]\n"])
@pytest.mark.parametrize("mode", ["append", "resume"])
def test_a_file_of_others_is_never_mended(path: Path, text: str, mode: results.Mode) -> None:
    path.write_text(text)
    with pytest.raises(UsageError, match=r"x\.jsonl:1: "):
        write(path, outcome(), mode=mode)
    assert path.read_text() == text
    assert only(path.parent) == ["x.jsonl"]


def test_killed_at_any_moment_the_file_is_valid(path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from test_results import ENVIRONMENT, RecordWriter, outcome\n"
        "with RecordWriter(Path(sys.argv[1]), ENVIRONMENT, 'resume') as writer:\n"
        "    print(len(writer.outcomes), flush=True)\n"
        "    for i in range(len(writer.outcomes), 10**6):\n"
        "        writer.write(outcome(params={'I': i}, samples_ns=(1.5,) * 2000))\n"
    )
    for attempt in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", script, path, Path(__file__).parent], stdout=subprocess.PIPE
        )
        with child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(0.01 * (attempt + 1))
            child.send_signal(signal.SIGKILL)
        read = results.read(path)[1]
        assert [one.params["I"] for one in read] == list(range(len(read)))


# Modes


def test_an_existing_file_is_kept_unless_told(path: Path) -> None:
    write(path, outcome())
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"--append.*--force.*--resume"):
        write(path, outcome(kernel="other"))
    assert path.read_bytes() == before
    write(path, outcome(kernel="other"), mode="append")
    assert path.read_bytes().startswith(before)
    assert [one.kernel for one in results.read(path)[1]] == ["tiled", "other"]
    path.chmod(0o640)
    write(path, outcome(kernel="third"), mode="force")
    assert [one.kernel for one in results.read(path)[1]] == ["third"]
    assert path.stat().st_mode & 0o777 == 0o640
    assert only(path.parent) == ["x.jsonl"]


def test_force_keeps_the_old_file_until_something_is_recorded(path: Path) -> None:
    write(path, outcome())
    before = path.read_bytes()
    with RecordWriter(path, ENVIRONMENT, "force") as writer:
        assert path.read_bytes() == before
        writer.write(outcome(kernel="new"))
        assert [one.kernel for one in results.read(path)[1]] == ["new"]
        writer.write(outcome(kernel="newer"))
    assert [one.kernel for one in results.read(path)[1]] == ["new", "newer"]
    path.write_bytes(before)
    write(path, mode="force")
    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", ["new", "append", "force", "resume"])
def test_a_run_that_records_nothing_leaves_nothing(path: Path, mode: results.Mode) -> None:
    write(path, mode=mode)
    assert only(path.parent) == []


def test_an_empty_file_holds_nothing_that_could_be_lost(path: Path) -> None:
    path.touch()
    write(path, outcome())
    assert results.read(path)[1] == [outcome()]


def test_outcomes_are_on_disk_as_they_are_made(path: Path) -> None:
    with RecordWriter(path, ENVIRONMENT) as writer:
        for count in range(1, 4):
            writer.write(outcome())
            assert len(results.read(path)[1]) == count


def test_a_link_is_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    write(link, outcome())
    write(link, outcome(kernel="forced"), mode="force")
    assert link.is_symlink()
    assert results.read(path)[1] == [outcome(kernel="forced")]


# Refusals before anything runs


def refused(path: Path, mode: results.Mode = "new") -> str:
    with pytest.raises(UsageError) as raised:
        RecordWriter(path, ENVIRONMENT, mode).__enter__()
    message = str(raised.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "is a folder" in refused(tmp_path)
    assert f"no folder {tmp_path / 'missing'}" in refused(tmp_path / "missing" / "x.jsonl")
    assert "name another file" in refused(file / "x.jsonl")
    assert "name another file" in refused(tmp_path / ("x" * 300))
    assert "name another file" in refused(loop)
    assert "name another file" in refused(Path("/proc/x.jsonl"))
    assert only(tmp_path) == ["file", "loop"]


def test_a_missing_or_unreadable_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.jsonl"):
        with pytest.raises(UsageError, match="cannot be read"):
            results.read(path)


# The disk


def test_a_full_device_is_told_with_its_path() -> None:
    full = Path("/dev/full")
    with (
        RecordWriter(full, ENVIRONMENT) as writer,
        pytest.raises(MatbenchError, match=r"/dev/full: cannot be written: No space left"),
    ):
        writer.write(outcome())
    assert full.is_char_device()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The kernel refuses what would make a file larger, after it has taken what fits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_was_recorded_before_the_disk_was_full_is_kept(path: Path) -> None:
    with RecordWriter(path, ENVIRONMENT) as writer:
        writer.write(outcome())
        before = path.read_bytes()
        with (
            largest_file(len(before) + 100),
            pytest.raises(MatbenchError, match=r"keeps the 1 outcomes.*--resume"),
        ):
            writer.write(outcome(kernel="lost"))
        assert path.read_bytes() == before
        writer.write(outcome(kernel="after"))
    assert [one.kernel for one in results.read(path)[1]] == ["tiled", "after"]


def test_force_on_a_full_disk_keeps_the_old_file(path: Path) -> None:
    write(path, outcome())
    before = path.read_bytes()
    with RecordWriter(path, ENVIRONMENT, "force") as writer:
        with largest_file(100), pytest.raises(MatbenchError):
            writer.write(outcome(kernel="new"))
        assert path.read_bytes() == before
        assert only(path.parent) == [".x.jsonl.lock", "x.jsonl"]
    assert only(path.parent) == ["x.jsonl"]


# Two runs


def test_a_second_run_on_one_file_is_refused_until_the_first_is_gone(path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from test_results import ENVIRONMENT, RecordWriter, outcome\n"
        "with RecordWriter(Path(sys.argv[1]), ENVIRONMENT) as writer:\n"
        "    writer.write(outcome())\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, path, Path(__file__).parent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        before = path.read_bytes()
        for mode in ("new", "append", "force", "resume"):
            assert "another run is writing to it" in refused(path, mode)
        assert path.read_bytes() == before
        child.send_signal(signal.SIGKILL)
    assert only(path.parent) == [".x.jsonl.lock", "x.jsonl"]
    write(path, outcome(kernel="resumed"), mode="resume")
    assert [one.kernel for one in results.read(path)[1]] == ["tiled", "resumed"]
    assert only(path.parent) == ["x.jsonl"]


def test_the_lock_is_the_files_wherever_it_is_named_from(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    with RecordWriter(path, ENVIRONMENT) as writer:
        writer.write(outcome())
        assert "another run" in refused(link, "append")


# The last run


def test_the_last_run_is_recorded_where_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(tmp_path / "deep" / "state"))
    path = results.last_run_path()
    for kernel in ("one", "two"):
        with RecordWriter(path, ENVIRONMENT, "force", best_effort=True) as writer:
            writer.write(outcome(kernel=kernel))
        assert writer.error is None
        assert results.read(path)[1] == [outcome(kernel=kernel)]
    # Another run, or this one's own output, keeps it: nothing it recorded is lost.
    with (
        RecordWriter(path, ENVIRONMENT, "resume") as holder,
        RecordWriter(path, ENVIRONMENT, "force", best_effort=True) as writer,
    ):
        assert isinstance(writer.error, UsageError)
        writer.write(outcome(kernel="dropped"))
        holder.write(outcome(kernel="three"))
    assert [one.kernel for one in results.read(path)[1]] == ["two", "three"]
    assert only(path.parent) == ["last-run.jsonl"]


def test_best_effort_never_stops_a_run(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with RecordWriter(file / "state" / "x", ENVIRONMENT, "force", best_effort=True) as writer:
        writer.write(outcome())
    assert "cannot be written" in str(writer.error)
    with RecordWriter(Path("/dev/full"), ENVIRONMENT, "force", best_effort=True) as writer:
        writer.write(outcome())
        writer.write(outcome())
    assert "No space left" in str(writer.error)


# Schemas


def test_a_newer_schema_is_refused(path: Path) -> None:
    write(path, outcome())
    path.write_text(path.read_text().replace('"schema":1', '"schema":2', 1))
    for attempt in (lambda: results.read(path), lambda: write(path, outcome(), mode="append")):
        with pytest.raises(UsageError, match=r"x\.jsonl:1: written by a newer matbench \(schema 2"):
            attempt()


def test_an_older_schema_is_read_and_added_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, outcome())

    def upgrade(plain: dict[str, Any]) -> dict[str, Any]:
        if plain["type"] == "outcome":
            plain["notes"] = [*plain["notes"], "from schema 1"]
        return plain

    monkeypatch.setattr(results, "SCHEMA", 2)
    with pytest.raises(UsageError, match="there is no schema 1"):
        results.read(path)
    monkeypatch.setattr(results, "UPGRADES", {1: upgrade})
    newer = msgspec.structs.replace(ENVIRONMENT, schema=2)
    with RecordWriter(path, newer, "append") as writer:
        writer.write(outcome())
    environments, found = results.read(path)
    assert [one.schema for one in environments] == [1, 2]
    assert [one.notes for one in found] == [("from schema 1",), ()]


# Hostile files


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{}", "missing required field `type`"),
        (b'{"type":"outcome"}', "missing required field"),
        (b'{"type":"other"}', "other"),
        (b"[]", "Expected `object`"),
        (b"not json", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b'{"type":"environment","schema":null}', "no schema None"),
        (b'{"type":"environment","schema":-1}', "no schema -1"),
        (b'{"type":"environment","schema":true}', "Expected `int | null`"),
        (b'{"type":"outcome","x":' + b"[" * 500_000, "nested too deeply"),
        (b'{"type":"outcome","median_ns":' + b"9" * 5000 + b"}", "out of range"),
        (b'{"type":"outcome","median_ns":NaN}', "malformed"),
        (b"\x80\x04cos\nsystem\n(S'true'\ntR.", "malformed"),
    ],
)
def test_a_malformed_line_is_refused_with_its_place(path: Path, line: bytes, reason: str) -> None:
    write(path, outcome())
    path.write_bytes(path.read_bytes() + line + b"\n" + path.read_bytes())
    with pytest.raises(UsageError) as raised:
        results.read(path)
    message = str(raised.value)
    assert message.startswith(f"{path}:3: ")
    assert reason in message
    assert len(message) < 600
    assert "\n" not in message


@pytest.mark.parametrize("size", ["0", "-1", "9" * 4000])
def test_a_size_of_no_matrix_is_refused(path: Path, size: str) -> None:
    write(path, outcome(), outcome())
    path.write_text(path.read_text().replace('"M":17', f'"M":{size}', 1))
    with pytest.raises(UsageError, match=r"x\.jsonl:2: .*M is no size"):
        results.read(path)


def test_enormous_files_fail_cleanly(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"/dev/zero:1: longer than"):
        results.read(Path("/dev/zero"))
    write(path, outcome(), outcome())
    monkeypatch.setattr(results, "MAX_FILE_BYTES", path.stat().st_size - 1)
    with pytest.raises(UsageError, match="larger than"):
        results.read(path)


def test_paths_in_a_file_are_never_opened(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    os.mkfifo(secret)  # to open it would block without an end
    hostile = outcome(kernel=str(secret), device=f"file://{secret}", reason=f"; cat {secret}")
    write(path, hostile)
    assert results.read(path)[1] == [hostile]


WHOLE = (results._encode(ENVIRONMENT) + "\n" + results._encode(outcome()) + "\n").encode()


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 12), st.binary(max_size=12)),
        min_size=1,
        max_size=4,
    )
)
def test_a_file_of_any_bytes_is_read_or_refused(
    edits: list[tuple[int, int, bytes]], tmp_path: Path
) -> None:
    data = WHOLE
    for start, length, bytes_ in edits:
        data = data[:start] + bytes_ + data[start + length :]
    path = tmp_path / "fuzzed.jsonl"
    path.write_bytes(data)
    try:
        environments, found = results.read(path)
    except UsageError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
    else:
        assert len(environments) + len(found) <= data.count(b"\n") + 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(field=st.sampled_from(Outcome.__struct_fields__), value=json_values)
def test_a_field_of_any_value_is_read_or_refused(field: str, value: Any, tmp_path: Path) -> None:
    first, second = WHOLE.decode().splitlines()
    path = tmp_path / "fuzzed.jsonl"
    path.write_text(f"{first}\n{json.dumps({**json.loads(second), field: value})}\n")
    try:
        (read,) = results.read(path)[1]
    except UsageError as error:
        assert str(error).startswith(f"{path}:2: ")
    else:
        assert isinstance(read, Outcome)


# Resuming

KERNEL = Kernel(
    name="tiled", summary="s", launch=LaunchRules(block=(1,), grid=(1,)), sha256="0" * 64
)


def test_the_key_of_a_case_is_the_key_of_its_outcome() -> None:
    case = Case(KERNEL, Problem(17, 33, 65), {"TILE": 16}, None)
    assert results.case_key(case, DEVICE) == results.outcome_key(outcome())
    two = {"A": 1, "B": 2}
    assert results.outcome_key(outcome(params=two)) == results.outcome_key(
        outcome(params=dict(reversed(two.items())))
    )


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": "other"},
        {"sha256": "1" * 64},
        {"params": {"TILE": 8}},
        {"params": {}},
        {"problem": Problem(17, 33, 66)},
        {"problem": Problem(17, 33, 65, "signed")},
        {"problem": Problem(17, 33, 65, "uniform", 1)},
        {"backend": "cuda"},
        {"device": "Another Processor"},
    ],
)
def test_another_case_is_measured_anew(change: dict[str, Any], path: Path) -> None:
    write(path, outcome())
    with RecordWriter(path, ENVIRONMENT, "resume") as writer:
        done = results.finished(writer.outcomes)
    assert results.outcome_key(outcome()) in done
    assert results.outcome_key(outcome(**change)) not in done


def test_only_a_failed_case_is_tried_anew() -> None:
    records = [
        outcome(kernel=status, status=status)
        for status in ("measured", "wrong", "skipped", "failed")
    ]
    found = results.finished(records)
    assert [one.status for one in found.values()] == ["measured", "wrong", "skipped"]
    assert results.finished([outcome(status="failed"), outcome()]) == {
        results.outcome_key(outcome()): outcome()
    }


def test_a_retried_failure_is_told_by_the_later_try() -> None:
    failed = outcome(status="failed", reason="killed", median_ns=None)
    other = outcome(kernel="other", status="failed", reason="trap")
    kept = results.without_retried([failed, other, failed, outcome(), outcome()])
    assert [one.kernel for one in kept] == ["other", "tiled", "tiled"]
    assert kept[1].notes == ("an earlier try failed: killed",) * 2
    assert kept[2].notes == ()


# Provenance


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True,
        capture_output=True,
    )  # fmt: skip


def test_the_environment_says_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    found = results.environment(["matbench", "run"], [DEVICE], {"seed": 0, "timeout": math.inf})
    assert found.schema == results.SCHEMA
    assert found.devices == (DEVICE,)
    assert found.packages["numpy"] == np.__version__
    assert "pycuda" not in found.packages or found.packages["pycuda"]
    assert found.time.endswith("+00:00")
    assert found.project_revision is None
    assert json.loads(results.to_json([found], []))[0]["settings"] == {"seed": 0, "timeout": None}
    git(tmp_path, "init")
    assert results.environment([], [], {}).project_revision is None
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "a")
    clean = results.environment([], [], {}).project_revision
    assert clean is not None
    assert len(clean) == 40
    (tmp_path / "a").write_text("2")
    assert results.environment([], [], {}).project_revision == f"{clean}-dirty"
    monkeypatch.setenv("PATH", "")
    assert results.environment([], [], {}).project_revision is None


def test_no_descriptor_is_left_open(path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    write(path, outcome())
    write(path, outcome(), mode="force")
    for mode in ("new", "append"):
        path.write_text("not ours")
        with pytest.raises(UsageError):
            write(path, outcome(), mode=mode)
    assert set(Path("/proc/self/fd").iterdir()) == before
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
