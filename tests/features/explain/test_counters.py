"""Parsing the output of Nsight Compute."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from support.optional import present
from support.paths import output_of

from matbench.errors import MatbenchError
from matbench.features.explain import counters
from matbench.features.explain.record import HardwareCounters
from matbench.kernelfile import catalogue, sweep
from matbench.model import DeviceInfo, Problem

PRINTED = output_of("ncu.csv")


def test_counters_are_read_by_name() -> None:
    assert counters.counted(PRINTED) == HardwareCounters(
        dram_read_bytes=8_027_648.0, dram_written_bytes=3968.0, achieved_occupancy=0.9375
    )
    assert counters.counted(PRINTED.replace('"n/a"', '"nan"')) == counters.counted(PRINTED)


def line(metric: str, value: str) -> str:
    return (
        '"0","4711","python3","127.0.0.1","tiled","1","13","(32, 32, 1)","(32, 32, 1)","0","9.0",'
        f'"Command line profiler metrics","{metric}","%","{value}"\n'
    )


def test_each_resource_is_as_busy_as_its_busiest_part() -> None:
    end = ".avg.pct_of_peak_sustained_elapsed"
    printed = PRINTED + "".join(
        line(name + end, value)
        for name, value in {
            "sm__inst_issued": "77.5",
            "sm__pipe_fma_cycles_active": "70",
            "sm__inst_executed_pipe_alu": "12",
            "l1tex__data_pipe_lsu_wavefronts": "44",
            "l1tex__lsuin_requests": "8",
            "l1tex__m_xbar2l1tex_read_sectors": "3",
            "dram__cycles_active": "n/a",
            "idc__request_cycles_active": "99",
        }.items()
    )
    found = counters.counted(printed)
    assert present(found).busy == {
        "issue slots": 0.775, "float32 pipe": 0.7, "integer pipe": 0.12,
        "shared memory and L1": 0.44, "L2 cache": 0.03,
    }  # fmt: skip


def test_output_without_counters_is_none() -> None:
    assert counters.counted("==ERROR== no permission\n") is None


@pytest.fixture
def fake_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name, first on PATH; the test decides what it prints."""
    path = tmp_path / "ncu"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return path


def install(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def count(device: DeviceInfo, timeout_s: float = 30) -> HardwareCounters:
    kernel = catalogue.Catalogue(catalogue.builtin()).get("tiled")
    case = sweep.case(kernel, Problem(33, 33, 33), {"TILE": 8}, device)
    return counters.count(device, case, timeout_s)


def test_the_case_is_handed_to_ncu(fake_ncu: Path, device: DeviceInfo, tmp_path: Path) -> None:
    """The stand-in runs the command that it profiles, so that the child does its work too."""
    printed, seen = tmp_path / "printed", tmp_path / "seen"
    printed.write_text(PRINTED, encoding="utf-8")
    install(
        fake_ncu,
        f'echo "$@" > {seen}\nwhile [ "$1" != "--metrics" ]; do shift; done\nshift 2\n'
        f'"$@" || exit 1\ncat {printed}',
    )
    assert count(device).achieved_occupancy == 0.9375
    asked = seen.read_text()
    assert "--clock-control none" in asked  # clocks must not be changed
    assert "--kernel-name tiled" in asked


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo '==ERROR== ERR_NVGPUCTRPERM: no permission'; exit 1", "ERR_NVGPUCTRPERM"),
        ("exit 3", "no output"),
    ],
)
def test_ncu_counts_nothing(fake_ncu: Path, device: DeviceInfo, script: str, message: str) -> None:
    install(fake_ncu, script)
    with pytest.raises(MatbenchError, match=message):
        count(device)


def test_an_ncu_that_hangs_is_stopped(fake_ncu: Path, device: DeviceInfo) -> None:
    install(fake_ncu, "exec sleep 30")
    with pytest.raises(MatbenchError, match=r"took longer than 0\.5 s"):
        count(device, timeout_s=0.5)
