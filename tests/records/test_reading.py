"""Reading: a torn end costs only itself, and nothing but records is believed."""

from __future__ import annotations


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.jsonl"


def only(folder: Path) -> list[str]:
    """The files of a folder, hidden ones too."""
    return sorted(entry.name for entry in folder.iterdir())


# Torn files


def test_a_last_line_torn_anywhere_costs_only_itself(path: Path) -> None:
    write(path, outcome(), outcome(reason="größer", params={}))
    data = path.read_bytes()
    start = data.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(data)):
        path.write_bytes(data[:end])
        whole = end in (start, len(data) - 1)
        notes: list[str] = []
        read = read(path, notes)[1]
        assert len(read) == (2 if end == len(data) - 1 else 1), end
        assert bool(notes) != whole, end
        if end % 7 and not whole:  # every write waits for the disk
            continue
        with RecordWriter(path, environment(), "resume") as writer:
            assert writer.outcomes == read
            assert writer.notes == notes
            writer.write(outcome(kernel="next"))
        notes.clear()
        environments, found = read(path, notes)
        assert (found, notes) == ([*read, outcome(kernel="next")], [])
        assert len(environments) == 2


def test_a_torn_first_line_is_begun_anew(path: Path) -> None:
    write(path, outcome())
    first = path.read_bytes().split(b"\n")[0]
    for end in range(len(first)):
        path.write_bytes(first[:end])
        assert read(path) == ([], [])
        if end % 7:
            continue
        write(path, outcome(), mode="append")
        assert read(path) == ([environment()], [outcome()])


def test_a_tail_of_zeros_is_torn_too(path: Path) -> None:
    write(path, outcome())
    with path.open("ab") as file:
        file.write(bytes(100))
    assert read(path)[1] == [outcome()]


@pytest.mark.parametrize("text", ["my notes", '{"my": "json"}', "a,b\n1,2\n", "\0\0", "[]\n"])
@pytest.mark.parametrize("mode", ["append", "resume"])
def test_a_file_of_others_is_never_mended(path: Path, text: str, mode: Mode) -> None:
    path.write_text(text)
    with pytest.raises(UsageError, match=r"x\.jsonl:1: "):
        write(path, outcome(), mode=mode)
    assert path.read_text() == text
    assert only(path.parent) == ["x.jsonl"]


def test_killed_at_any_moment_the_file_is_valid(path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from support.records import environment, outcome, timing\n"
        "from matbench.records.writing import RecordWriter\n"
        "with RecordWriter(Path(sys.argv[1]), environment(), 'resume') as writer:\n"
        "    print(len(writer.outcomes), flush=True)\n"
        "    for i in range(len(writer.outcomes), 10**6):\n"
        "        writer.write(outcome(params={'I': i}, cold=timing(samples_ns=(1.5,) * 2000)))\n"
    )
    for attempt in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", script, path, TESTS], stdout=subprocess.PIPE
        )
        with child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(0.01 * (attempt + 1))
            child.send_signal(signal.SIGKILL)
        read = read(path)[1]
        assert [one.case.params["I"] for one in read] == list(range(len(read)))


# Schemas


def test_a_newer_schema_is_refused(path: Path) -> None:
    write(path, outcome())
    path.write_text(path.read_text().replace('"schema":1', '"schema":2', 1))
    for attempt in (lambda: read(path), lambda: write(path, outcome(), mode="append")):
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
        read(path)
    monkeypatch.setattr(results, "UPGRADES", {1: upgrade})
    newer = msgspec.structs.replace(environment(), schema=2)
    with RecordWriter(path, newer, "append") as writer:
        writer.write(outcome())
    environments, found = read(path)
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
        read(path)
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
        read(path)


def test_enormous_files_fail_cleanly(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"/dev/zero:1: longer than"):
        read(Path("/dev/zero"))
    write(path, outcome(), outcome())
    monkeypatch.setattr(results, "MAX_FILE_BYTES", path.stat().st_size - 1)
    with pytest.raises(UsageError, match="larger than"):
        read(path)


def test_paths_in_a_file_are_never_opened(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    os.mkfifo(secret)  # to open it would block without an end
    hostile = outcome(kernel=str(secret), device=f"file://{secret}", reason=f"; cat {secret}")
    write(path, hostile)
    assert read(path)[1] == [hostile]


WHOLE = (results._encode(environment()) + "\n" + results._encode(outcome()) + "\n").encode()


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
        environments, found = read(path)
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
        (read,) = read(path)[1]
    except UsageError as error:
        assert str(error).startswith(f"{path}:2: ")
    else:
        assert isinstance(read, Outcome)
