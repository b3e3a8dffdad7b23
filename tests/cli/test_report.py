"""`matbench report`: what a run has printed and recorded, read back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from support.cli import QUICK, Matbench
from support.kernels import kernel_text

from matbench.model import DeviceInfo
from matbench.records import provenance, reading

pytestmark = pytest.mark.usefixtures("own_state")


def test_a_run_is_printed_recorded_and_reported(matbench: Matbench, device: DeviceInfo) -> None:
    """Good and bad kernels; JSON has the records, and a report of the fastest one of each."""
    files = {
        "good": kernel_text("good"),
        "liar": kernel_text("liar").replace("k < K", "k < K - 1"),
        "typo": kernel_text("typo").replace("sum +=", "summ +="),
    }
    for name, text in files.items():
        Path(f"{name}.cu").write_text(text, encoding="utf-8")
    output = Path("out.jsonl")
    words = ("--kernels-dir", ".", "--sizes", "20,9x8x5", "--set", "TILE=4,8", "--format", "json")
    printed = matbench("run", *words, *QUICK, "--output", output, code=1).stdout
    assert reading.read(provenance.last_run_path()) == reading.read(output)
    recorded = output.read_text(encoding="utf-8")
    assert json.loads(printed) == [json.loads(line) for line in recorded.splitlines()]
    assert "NaN" not in recorded
    shown = matbench("report", output, "--fastest", "--format", "csv").stdout
    cases = [(row["size"], row["kernel"]) for row in csv.DictReader(io.StringIO(shown))]
    assert sorted(cases) == sorted((size, name) for size in ("20", "9x8x5") for name in files)
