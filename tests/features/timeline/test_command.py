"""`matbench blocks`, on this machine's device."""

from __future__ import annotations

import csv
import json
import re

from support.cli import Matbench
from support.kernels import KernelWriter

from matbench.model import DeviceInfo

TWO_DIMENSIONS = ("blocks", "tiled", "--sizes", "100x64x32", "--set", "TILE=8")


def test_csv_is_the_stamps_of_each_block(matbench: Matbench, device: DeviceInfo) -> None:
    rows = list(csv.DictReader(matbench(*TWO_DIMENSIONS, "--format", "csv").stdout.splitlines()))
    places = [(int(row["block_x"]), int(row["block_y"]), int(row["block_z"])) for row in rows]
    assert places == [(x, y, 0) for y in range(13) for x in range(8)]
    assert all(int(row["end_ticks"]) >= int(row["start_ticks"]) > 0 for row in rows)
    if device.kind == "cpu":
        assert {(row["multiprocessor"], row["start_ns"], row["end_ns"]) for row in rows} == {
            ("", "", "")
        }


def test_without_a_tile_the_fastest_is_taken(matbench: Matbench) -> None:
    said = matbench("blocks", "tiled", "--sizes", "40").stdout
    assert re.match(r"tiled TILE=(8|16|32) at 40\n", said)


def test_a_block_that_returns_is_stamped(matbench: Matbench, write_kernel: KernelWriter) -> None:
    path = write_kernel("wide", launch='block = ["TILE", "TILE"]\ngrid = ["9", "9"]')
    found = json.loads(matbench("blocks", path, "--sizes", "17", "--format", "json").stdout)[-1]
    assert (found["blocks"], found["unstamped_blocks"]) == (81, 0)


def test_what_the_device_cannot_run_is_skipped(matbench: Matbench) -> None:
    said = matbench("blocks", "tiled", "--sizes", "20", "--set", "TILE=4096").stdout
    assert "skipped: needs" in said
