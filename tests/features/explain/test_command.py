"""The output of `matbench explain`: the lecture's numbers, occupancy, and conclusions."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from click.testing import Result
from support import drivers, toml, tunable
from support.cli import Matbench
from support.golden import paged
from support.kernels import GOOD_BODY, KernelWriter, kernel_text, saved
from support.machine_code import missing
from support.nvcc import find_nvcc
from support.optional import present
from support.paths import output_of

from matbench import backends, programs
from matbench.backends.cuda import compilation
from matbench.backends.protocol import Backend, NoDeviceError, UnavailableError
from matbench.bench import bandwidth
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import MatbenchError
from matbench.features.explain import counters, disassembly, limits
from matbench.features.explain.record import Explanation, HardwareCounters
from matbench.features.nvidia_tools import observer
from matbench.kernelfile import catalogue, sweep
from matbench.model import DeviceInfo, Problem
from matbench.worker.worker import Worker


@pytest.fixture(autouse=True)
def no_nvcc(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled for other architectures unless a test says so."""
    if "nvcc_on_path" not in request.fixturenames:
        missing = mock.Mock(side_effect=UnavailableError("nvcc is missing"))
        monkeypatch.setattr(compilation, "compiled_by_nvcc", missing)
        monkeypatch.setattr(disassembly, "nvdisasm", lambda: "nvdisasm")


@pytest.fixture(autouse=True)
def limits_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device's limits, measured only once."""
    run = Worker.run
    monkeypatch.setattr(Worker, "run", lambda worker, task, _, case: run(worker, task, case=case))


@pytest.fixture
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without devices."""

    told = "no device to run on; cuda: PyCUDA is missing; opencl: no device"
    monkeypatch.setattr(backends, "choose", mock.Mock(side_effect=NoDeviceError(told)))


def lines_of(result: Result, start: str) -> list[list[str]]:
    """The words of all lines with this start."""
    return [line.split() for line in result.stdout.splitlines() if line.startswith(start)]


# -- figures from the sources --------------------------------------------------------------------


@pytest.fixture
def nvcc_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc where matbench looks for it, from the toolkit or from wheels."""
    found = find_nvcc()
    if found is None:
        pytest.skip("no nvcc, or no host compiler for it")
    monkeypatch.setenv("PATH", f"{found.parent}:{os.environ['PATH']}")


#: What is asked without a device and without nvcc.
ASKED = toml.table(Path(__file__).with_name("asked.toml"))


@pytest.mark.usefixtures("no_device")
def test_pages(matbench: Matbench, file_regression: Any) -> None:
    found = {}
    for name, words in ASKED.items():
        done = matbench("explain", *words.split())
        found[f"{name}: {words}"] = f"{done.stdout}{done.stderr}"
    file_regression.check(paged(found), encoding="utf-8")


# -- on a device ---------------------------------------------------------------------------------


def test_records_hold_all_of_it(matbench: Matbench, device: DeviceInfo) -> None:
    result = matbench("explain", "kahan", "--sizes", "33", "--set", "TILE=8", "--format", "json")
    about, found = json.loads(result.stdout)
    assert about["type"] == "environment"
    assert found["type"] == "explanation"
    assert found["case"]["params"] == {"TILE": 8}
    assert msgspec.convert(found["case"]["problem"], Problem) == Problem(33, 33, 33)
    samples = "hot" if device.kind == "cpu" else "cold"
    median_ns = found["outcome"][samples]["median_ns"]
    assert median_ns > 0
    assert found["operations_per_s"] == pytest.approx(2 * 33**3 / median_ns * 1e9)
    assert found["limits"]["device"] == device.name
    assert [fit["params"] for fit in found["fits"]] == [{"TILE": 8}] * (device.backend == "cuda")
    assert msgspec.convert(found, Explanation).case.kernel == "kahan"


def test_what_this_device_cannot_run_is_explained(matbench: Matbench, device: DeviceInfo) -> None:
    if device.backend == "cuda":
        pytest.skip("this device can")
    result = matbench(
        "explain", "warp-tiled", "--sizes", "33", "--arch", "kepler", "--format", "plain"
    )
    assert "What limits it is not known: skipped, needs CUDA" in result.stdout
    assert "Kepler 3.0" in result.stdout
    assert "needs sm_80" in result.stdout


@pytest.mark.usefixtures("nvcc_on_path")
def test_registers_are_those_that_nvcc_gives(matbench: Matbench, device: DeviceInfo) -> None:
    if device.kind == "gpu":
        pytest.skip("its own compiler told them")
    arguments = ("--sizes", "33", "--set", "TILE=8", "--arch", "hopper", "--format", "json")
    [fit] = json.loads(matbench("explain", "tiled", *arguments).stdout)[1]["fits"]
    assert fit["architecture"] == "Hopper 9.0"
    assert fit["registers"] > 0


def test_of_several_values_the_fastest_is_explained(matbench: Matbench, tmp_path: Path) -> None:
    path = saved(tmp_path / "tunable.cu", tunable.KERNEL)
    options = ("--sizes", "48", "--set", "TURNS=64,1", "--set", "KIND=1", "--format", "json")
    result = matbench("explain", path, *options)
    assert json.loads(result.stdout)[1]["case"]["params"] == {"TURNS": 1, "KIND": 1}


def test_on_a_cpu_gpus_come_only_if_asked(matbench: Matbench, device: DeviceInfo) -> None:
    if device.kind == "gpu":
        pytest.skip("needs a CPU")
    arguments = ("explain", "naive-2d", "--sizes", "33", "--set", "TILE=8,16", "--format", "plain")
    shown = matbench(*arguments).stdout
    first, second, *_ = shown.splitlines()
    assert re.fullmatch(rf"naive-2d TILE=(8|16) at 33 on {re.escape(device.label)}", first)
    assert second == (
        "this is a CPU: times and limits are its own; "
        "for occupancy and machine code of a GPU, add --arch hopper"
    )
    assert "measured multiply-adds" in shown
    for gpus in ("Hopper", "multiprocessor", "registers", "the model does not show what limits it"):
        assert gpus not in shown
    asked = matbench(*arguments, "--arch", "hopper").stdout
    assert asked.splitlines()[1] == (
        "this is a CPU: times and limits are its own; Hopper 9.0: as computed"
    )
    assert "Hopper 9.0: a multiprocessor holds" in asked


def test_wrong_is_untimed_and_no_success(matbench: Matbench, write_kernel: KernelWriter) -> None:
    path = write_kernel("faulty", body=GOOD_BODY.replace("k < K", "k < K - 1"))
    options = ("--sizes", "33", "--set", "TILE=8", "--arch", "hopper")
    result = matbench("explain", path, *options, code=1)
    assert "machine code" not in result.stderr
    assert "What limits it is not known: wrong, " in result.stdout


def test_without_ncu_counters_are_told(matbench: Matbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "which", lambda *_, **__: None)
    result = matbench("explain", "tiled", "--counters", code=2)
    assert "--counters needs ncu" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_no_opencl(matbench: Matbench, monkeypatch: pytest.MonkeyPatch, device: DeviceInfo) -> None:
    if device.backend == "cuda":
        pytest.skip("this is CUDA")
    monkeypatch.setattr(observer, "executable", lambda name: name)
    result = matbench("explain", "tiled", "--counters", code=2)
    assert result.stderr == f"matbench: --counters needs CUDA; this is {device.label}\n"


# -- machine code ----------------------------------------------------------------------------------


@pytest.fixture
def machine_code(nvcc_on_path: None) -> None:
    """nvcc and nvdisasm, from the toolkit or from wheels."""
    if (why := missing()) is not None:
        pytest.skip(why)


@pytest.mark.usefixtures("no_device", "machine_code")
def test_without_a_device_the_machine_code_gives_a_ceiling(matbench: Matbench) -> None:
    result = matbench(
        *("explain", "tiled", "--sizes", "512", "--set", "TILE=16,32", "--arch", "sm_90"),
        *("--format", "plain"),
    )
    assert result.exit_code == 0
    assert "machine code: sm_90" in result.stdout
    assert lines_of(result, "shared memory cycles") == [
        ["shared", "memory", "cycles", "1.00", "×", "no", "bank", "conflicts"]
    ]
    assert "Its machine code allows at most" in result.stdout
    assert "bound by shared memory" in result.stdout


@pytest.mark.usefixtures("no_device", "machine_code")
def test_traffic_without_a_model_is_derived(matbench: Matbench, write_kernel: KernelWriter) -> None:
    path = write_kernel(body=kernel_text())
    options = ("--set", "TILE=8,16", "--arch", "sm_90", "--format", "json")
    result = matbench("explain", path, "--sizes", "64", *options)
    _, found = json.loads(result.stdout)
    assert found["traffic"]["is_derived"]
    assert found["traffic"]["loads"] == 2 * 64**3
    assert found["code"]["not_derived"] == []


# -- a device's limits, measured and cached -----------------------------------------------------


@pytest.fixture
def own_session(backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session with an empty cache, whose copies are of 32 MB instead of half a GB."""
    monkeypatch.setattr(bandwidth, "_MOST_BYTES", 2**25)
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    return Session(backend, Cache(folder), Options(timed=False))


def test_limits_are_measured_once_and_kept(own_session: Session) -> None:
    found = limits.measured(own_session)
    assert found.device == own_session.backend.info.name
    assert 1e8 < found.fma_flop_per_s < 1e17
    known = bandwidth.measured(own_session.backend, own_session.cache)
    assert (found.copy_bytes_per_s, found.read_bytes_per_s) == known
    assert limits.measured(own_session) == found


def test_measuring_anew_keeps_the_better_figure(own_session: Session) -> None:
    first = limits.measured(own_session)
    again = limits.measured(own_session, anew=True)
    assert again.copy_bytes_per_s >= first.copy_bytes_per_s
    assert again.fma_flop_per_s >= first.fma_flop_per_s
    assert limits.measured(own_session) == again


# -- counters of Nsight Compute --------------------------------------------------------------------


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


def count(device: DeviceInfo, timeout_s: float = 30) -> HardwareCounters:
    kernel = catalogue.Catalogue(catalogue.builtin()).get("tiled")
    case = sweep.case(kernel, Problem(33, 33, 33), {"TILE": 8}, device)
    return counters.count(device, case, timeout_s)


def test_the_case_is_handed_to_ncu(fake_ncu: Path, device: DeviceInfo, tmp_path: Path) -> None:
    """The stand-in runs the command that it profiles, so that the child does its work too."""
    printed, seen = tmp_path / "printed", tmp_path / "seen"
    printed.write_text(PRINTED, encoding="utf-8")
    drivers.program(
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
    drivers.program(fake_ncu, script)
    with pytest.raises(MatbenchError, match=message):
        count(device)


def test_an_ncu_that_hangs_is_stopped(fake_ncu: Path, device: DeviceInfo) -> None:
    drivers.program(fake_ncu, "exec sleep 30")
    with pytest.raises(MatbenchError, match=r"took longer than 0\.5 s"):
        count(device, timeout_s=0.5)
