"""Parsing the output of compute-sanitizer into findings with file and line."""

from __future__ import annotations

import pytest
from support.cli import Matbench

from matbench import programs
from matbench.features.check import sanitizer
from matbench.features.check.probe import SanitizerFinding

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at mine+0x3a0 in kernels/mine.cu:33
=========     by thread (17,0,0) in block (1,0,0)
=========     Access to 0x7f0a is out of bounds
=========         Host Frame: cuLaunchKernel in libcuda.so.1
=========
========= Invalid __global__ write of size 4 bytes
=========     at mine+0x3a0 in kernels/mine.cu:33
=========     by thread (18,0,0) in block (1,0,0)
=========
========= Invalid __global__ read of size 4 bytes
=========     at mine+0x110 in kernels/mine.cu:29
=========     by thread (18,0,0) in block (1,0,0)
=========
========= ERROR SUMMARY: 3 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at mine+0x330 in mine.cu:31
=========     and Read access at mine+0x440 in mine.cu:37 [32768 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
CLEAN = """\
========= COMPUTE-SANITIZER
========= ERROR SUMMARY: 0 errors
"""


def test_equal_errors_are_counted_together() -> None:
    assert sanitizer.findings("memcheck", MEMCHECK) == [
        SanitizerFinding(
            "memcheck", "Invalid __global__ read of size 4 bytes", "kernels/mine.cu:29", 1
        ),
        SanitizerFinding(
            "memcheck", "Invalid __global__ write of size 4 bytes", "kernels/mine.cu:33", 2
        ),
    ]


def test_a_race_names_both_lines() -> None:
    (found,) = sanitizer.findings("racecheck", RACECHECK)
    assert "mine.cu:31" in str(found)
    assert "mine.cu:37" in str(found)
    assert found.what.startswith("Race reported")


def test_a_clean_run_has_no_findings() -> None:
    assert sanitizer.findings("memcheck", CLEAN) == []


def test_a_finding_reads_as_a_line() -> None:
    found = SanitizerFinding("memcheck", "Invalid __global__ read", "mine.cu:3", 2)
    assert str(found) == "memcheck: Invalid __global__ read at mine.cu:3 (2 times)"


def test_without_the_sanitizer_one_line_says_so(
    matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "which", lambda *_, **__: None)
    result = matbench("check", "tiled", "--sanitize", code=2)
    assert "needs compute-sanitizer" in result.stderr
    assert len(result.stderr.splitlines()) == 1
