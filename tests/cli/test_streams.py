"""Standard streams: full disks, closed pipes, no stream at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.cli import records_in
from support.record_files import write
from support.records import outcome
from support.terminal import COMMAND

from matbench.model import DeviceInfo

FULL = Path("/dev/full")


def id_of(value: str | tuple[str | int, ...]) -> str:
    """Of a command, of descriptors, or of `PYTHONUNBUFFERED`."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value and 'un'}buffered"


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize(("command", "unbuffered"), [
    (("report", "FILE"), ""), (("report", "FILE"), "1"),
    (("report", "FILE", "--format", "json"), ""), (("show", "tiled"), ""), (("--help",), "1"),
], ids=id_of)  # fmt: skip
def test_a_full_disk_behind_standard_output_is_one_line(
    command: tuple[str, ...], unbuffered: str, tmp_path: Path, device: DeviceInfo
) -> None:
    file = tmp_path / "out.jsonl"
    write(file, outcome())
    with FULL.open("w") as full:
        done = subprocess.run(
            [*COMMAND, *(str(file) if word == "FILE" else word for word in command)], stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=60, check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "matbench: standard output: No space left on device\n"


RUN = ("run", "tiled", "--set", "TILE=8", "--sizes", "9", "--max-time", "0.001", "--no-blocks")


@pytest.mark.parametrize(("command", "descriptors"), [
    (RUN, (0, 1, 2)), pytest.param(RUN, (2,), marks=pytest.mark.long), (("list",), (1,)),
], ids=id_of)  # fmt: skip
def test_a_stream_that_is_closed_is_the_null_device(
    command: tuple[str, ...], descriptors: tuple[int, ...], device: DeviceInfo, tmp_path: Path
) -> None:
    """No file, pipe or process takes the place of a closed stream."""
    output = tmp_path / "out.jsonl"
    keeping = ("--output", str(output)) if command[0] == "run" else ()

    def close() -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    done = subprocess.run(
        [*COMMAND, *command, *keeping], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60, check=False, preexec_fn=close,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (1 not in descriptors)
    if keeping:
        assert [outcome.status for outcome in records_in(output)] == ["measured"]


@pytest.mark.parametrize(("command", "unbuffered"), [
    (RUN, ""), (("list",), "1"), (("--help",), ""),
], ids=id_of)  # fmt: skip
def test_a_reader_that_leaves_early_is_no_failure(
    command: tuple[str, ...], unbuffered: str, device: DeviceInfo, tmp_path: Path
) -> None:
    """It ends quietly, with exit code 1, and keeps what was measured."""
    output = tmp_path / "out.jsonl"
    keeping = ("--output", str(output)) if command == RUN else ()
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, *command, *keeping], stdout=writer, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False, env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
    if keeping:
        assert [outcome.status for outcome in records_in(output)] == ["measured"]
