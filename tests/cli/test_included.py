"""An included header changes between two commands: no old result is used."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import QUICK, Matbench
from support.kernels import GOOD_BODY, KernelWriter

from matbench.model import DeviceInfo
from matbench.records import reading

SIZE = ("--sizes", "24")


def with_header(write_kernel: KernelWriter) -> tuple[Path, Path]:
    """A kernel that is right as long as its header says 1."""
    kernel = write_kernel(
        body='#include "factor.h"' + GOOD_BODY.replace("= sum;", "= FACTOR * sum;")
    )
    header = kernel.with_name("factor.h")
    header.write_text("#define FACTOR 1\n")
    return kernel, header


def test_a_changed_header_is_run_and_resumed_anew(
    matbench: Matbench, write_kernel: KernelWriter, device: DeviceInfo, tmp_path: Path
) -> None:
    kernel, header = with_header(write_kernel)
    results = tmp_path / "results.jsonl"
    command = ("run", "--kernel", kernel, "mine", *SIZE, *QUICK)
    matbench(*command, "--output", results)
    matbench(*command, "--resume", results)
    header.write_text("#define FACTOR 2\n")
    matbench(*command, "--resume", results, code=1)
    header.write_text("#define FACTOR 1 // as before\n")
    matbench(*command, "--resume", results)
    _, outcomes = reading.read(results)
    assert [outcome.status for outcome in outcomes] == ["measured", "wrong", "measured"]
    assert len({outcome.case.sha256 for outcome in outcomes}) == 3


@pytest.mark.usefixtures("short_turns")
def test_winners_of_another_header_are_not_taken(
    matbench: Matbench, write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    kernel, header = with_header(write_kernel)
    matbench("tune", "--kernel", kernel, "mine", *SIZE, "--set", "TILE=4,8", "--budget", "2")
    command = ("run", "--kernel", kernel, "mine", *SIZE, *QUICK, "--tuned")
    assert "is not tuned" not in matbench(*command).stderr
    header.write_text("#define FACTOR (1)\n")
    assert "mine is not tuned" in matbench(*command).stderr
