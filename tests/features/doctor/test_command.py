"""`matbench doctor` on machines with and without a GPU, made of stand-ins; and the line that other
commands print if they take the CPU instead of the GPU."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest
from support import drivers
from support.cli import QUICK, Matbench
from support.devices import CPU, GPU
from support.drivers import Nvml, NVMLError

from matbench import backends
from matbench.backends import UnavailableError, cuda, opencl
from matbench.backends.cuda import compilation, cublas, device, libcuda
from matbench.cache import Cache
from matbench.features.doctor import cuda as doctor

pytestmark = pytest.mark.usefixtures("own_state")
INSTALL = "; fix: matbench doctor --install"


class Machine:
    """A machine of stand-ins; at first one without GPU or driver, but with OpenCL."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch, self.bin = folder, monkeypatch, folder / "bin"
        monkeypatch.setenv("PATH", str(self.bin))
        monkeypatch.setenv("MATBENCH_CACHE_DIR", str(folder / "cache"))
        for name in ("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "NVCC_CCBIN"):
            monkeypatch.delenv(name, raising=False)
        drivers.program(self.bin / "g++", "echo 'g++ 12.2.0'")
        drivers.program(self.bin / "cat", "exec /bin/cat")
        self.pci, self.params, self.device_file = (folder / n for n in ("pci", "params", "ctl"))
        monkeypatch.setattr(doctor, "_PCI_DEVICES", self.pci)
        monkeypatch.setattr(doctor, "_PARAMETERS", self.params)
        monkeypatch.setattr(libcuda, "_DEVICE_FILE", self.device_file)
        monkeypatch.setattr(libcuda, "library", lambda: None)
        monkeypatch.setattr(opencl, "devices", lambda: [CPU])
        monkeypatch.setattr(opencl, "try_out", lambda: None)
        # This machine's own toolkit and tools are out of sight.
        seen = os.access
        inside: Callable[..., bool] = lambda path, *rest, **more: (  # noqa: E731
            str(path).startswith(str(folder)) and seen(path, *rest, **more)
        )
        monkeypatch.setattr(os, "access", inside)
        for name in ("pycuda", "pycuda.driver", "pynvml", "cuda.pathfinder"):
            monkeypatch.setitem(sys.modules, name, None)
        for cached in (compilation.nvcc, compilation.architectures, device.driver, cublas.place):
            cached.cache_clear()

    def driver(self, **about: int) -> None:
        # A path of its own, or the library that is already loaded would be taken.
        library = drivers.loaded(
            self.folder / "-".join(["driver", *map(str, about.values())]), **about
        )
        self.patch.setattr(libcuda, "library", lambda: library)

    def module(self, name: str, module: Any) -> None:
        self.patch.setitem(sys.modules, name, module)

    def with_everything(self) -> None:
        """A GPU with all that matbench uses."""
        self.driver()
        self.patch.setattr(device, "driver_release", lambda: "580.1")
        drivers.nvcc(self.bin / "nvcc")
        drivers.program(self.bin / "nvdisasm")
        drivers.program(self.bin / "ncu")
        self.params.write_text("RmProfilingAdminOnly: 0\n")
        self.patch.setattr(doctor, "version", lambda name: {"pycuda": "2026.1"}[name])
        package = ModuleType("pycuda")
        package.driver = SimpleNamespace()  # type: ignore[attr-defined]
        self.module("pycuda", package)
        self.module("pycuda.driver", package.driver)
        self.patch.setattr(device, "devices", lambda: [GPU])
        self.module("pynvml", Nvml())
        self.patch.setattr(cublas, "version", lambda: "13.12.11")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    yield Machine(tmp_path / "machine", monkeypatch)
    for cached in (compilation.nvcc, compilation.architectures, device.driver):
        cached.cache_clear()


@pytest.fixture
def lines(matbench: Matbench) -> Callable[..., dict[str, tuple[str, str]]]:
    """Status and text of each line, by name; the exit code is that of the worst status."""

    def run(code: int = 0) -> dict[str, tuple[str, str]]:
        result = matbench("doctor", code=code)
        assert result.stderr == ""
        split = (
            re.split(r"  +", line.rstrip(), maxsplit=2)
            for line in result.stdout.partition("\n\n")[0].splitlines()
        )
        size = re.compile(r", [\d,.]+ MB of at most 2,147 MB$")
        found = {name: (status, size.sub("", text)) for name, status, text in split}
        assert (code == 1) == any(status == "problem" for status, _ in found.values())
        return found

    return run


Lines = Callable[..., dict[str, tuple[str, str]]]


def test_without_a_gpu_opencl_is_enough(machine: Machine, lines: Lines) -> None:
    assert lines() == {
        "driver": ("ok", "none, and no NVIDIA GPU: kernels run through OpenCL"),
        "C++ compiler": ("ok", "g++ 12.2.0"),
        "OpenCL": ("ok", "opencl:0 A GPU"),
        "cache": ("ok", os.environ["MATBENCH_CACHE_DIR"]),
        "isolation": ("ok", "functions on the CPU are called in a process of their own"),
    }


def test_devices_follow_with_their_properties(matbench: Matbench) -> None:
    found, _, text = matbench("doctor", code=None).stdout.partition("\n\n")
    assert re.search(r"^cache +ok +\S+, [\d,.]+ MB of at most 2,147 MB$", found, re.MULTILINE)
    for info in backends.devices("opencl"):
        assert info.label in text
        assert info.driver in text
        assert all(label in text for label in info.properties)


def test_without_a_gpu_or_opencl_nothing_can_be_measured(machine: Machine, lines: Lines) -> None:
    def missing() -> None:
        raise UnavailableError("pyopencl is missing (oh)", "pip install 'matbench-cuda[cpu]'")

    machine.patch.setattr(opencl, "devices", missing)
    (machine.bin / "g++").unlink()
    found = lines(code=1)
    fix = "; fix: pip install 'matbench-cuda[cpu]'"
    assert found["OpenCL"] == ("problem", f"pyopencl is missing (oh){fix}")
    assert found["C++ compiler"][0] == "note"
    assert found["C++ compiler"][1].startswith("no g++, which nvcc needs; fix: sudo ")
    machine.with_everything()
    found = lines(code=1)
    assert [found[name][0] for name in ("OpenCL", "C++ compiler")] == ["note", "problem"]


def test_what_is_found_is_tried(machine: Machine, lines: Lines) -> None:
    def refused() -> None:
        raise RuntimeError("clBuildProgram failed")

    drivers.program(machine.bin / "g++", "echo 'error: no cc1plus' >&2; exit 1")
    machine.patch.setattr(opencl, "try_out", refused)
    (shared := machine.folder / "shared").mkdir()
    shared.chmod(0o777)
    machine.patch.setenv("MATBENCH_CACHE_DIR", str(shared))
    found = lines(code=1)
    assert found["C++ compiler"] == ("note", "BuildError: error: no cc1plus")
    assert found["OpenCL"] == ("problem", "RuntimeError: clBuildProgram failed")
    assert found["cache"][0] == "problem"
    assert "other users can write to it" in found["cache"][1]
    machine.patch.setattr(Cache, "put", lambda *_: None)  # a full disk
    machine.patch.setenv("MATBENCH_CACHE_DIR", str(machine.folder / "own"))
    assert "keeps nothing: is its disk full?" in lines(code=1)["cache"][1]


def test_a_device_that_builds_no_kernel_is_told() -> None:
    opencl.try_out()
    with pytest.raises(opencl.pyopencl().RuntimeError):
        opencl.try_out("kernel void nothing() { none(); }")


def test_a_gpu_without_a_driver(machine: Machine, lines: Lines) -> None:
    for name, vendor in (("0000:01:00.0", "0x1af4"), ("0000:02:00.0", "0x10de")):
        (machine.pci / name).mkdir(parents=True)
        (machine.pci / name / "vendor").write_text(f"{vendor}\n")
        (machine.pci / name / "class").write_text("0x030200\n")
    status, text = lines(code=1)["driver"]
    assert status == "problem"
    assert text.startswith("none, but there is an NVIDIA GPU at 0000:02:00.0; fix: install NVIDIA")
    (machine.pci / "0000:02:00.0/class").write_text("0x040300\n")  # its sound
    assert lines()["driver"][0] == "ok"


def test_gpus_that_the_user_hides(machine: Machine, lines: Lines) -> None:
    machine.driver(status=100)
    machine.patch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert lines()["driver"] == (
        "note",
        "no GPU is visible: CUDA_VISIBLE_DEVICES is ''; fix: unset CUDA_VISIBLE_DEVICES",
    )


def test_a_driver_alone(machine: Machine, lines: Lines) -> None:
    machine.driver()
    found = lines(code=1)
    assert found["driver"][0] == "ok"
    assert found["driver"][1].endswith("(CUDA 13.0)")
    nvcc = f"not found{INSTALL}; or put a CUDA toolkit's bin folder on PATH"
    assert found["nvcc"] == ("problem", nvcc)
    assert found["PyCUDA"][0] == "problem"
    assert found["PyCUDA"][1].endswith(INSTALL)
    assert found["cuBLAS"] == (
        "note",
        "cuda-pathfinder is missing; fix: pip install 'matbench-cuda[cuda]'",
    )
    assert found["counters"][0] == "note"
    assert found["NVML"][0] == "note"
    assert found["NVML"][1].endswith(INSTALL)
    assert "CUDA devices" not in found


def test_a_gpu_with_everything(machine: Machine, lines: Lines) -> None:
    machine.with_everything()
    assert lines() == {
        "driver": ("ok", "580.1 (CUDA 13.0)"),
        "nvcc": ("ok", f"13.0.88 of a toolkit, {machine.bin / 'nvcc'}"),
        "PyCUDA": ("ok", "2026.1"),
        "CUDA devices": ("ok", "cuda:0 A GPU"),
        "cuBLAS": ("ok", "13.12.11"),
        "nvdisasm": ("ok", str(machine.bin / "nvdisasm")),
        "counters": ("ok", str(machine.bin / "ncu")),
        "NVML": ("ok", "1 GPU"),
        "GPU 0 clocks": ("ok", "SM at 345 of at most 1,980 MHz, not throttled"),
        "GPU 0 ECC": ("ok", "on"),
        "GPU 0 MIG": ("ok", "off"),
        "GPU 0 processes": ("ok", "no others"),
        "C++ compiler": ("ok", "g++ 12.2.0"),
        "OpenCL": ("ok", "opencl:0 A GPU"),
        "cache": ("ok", os.environ["MATBENCH_CACHE_DIR"]),
        "isolation": ("ok", "functions on the CPU are called in a process of their own"),
    }


def change_nvcc(**about: Any) -> Callable[[Machine], object]:
    return lambda machine: drivers.nvcc(machine.bin / "nvcc", **about)


def change_nvml(**values: Any) -> Callable[[Machine], object]:
    return lambda machine: machine.module("pynvml", Nvml(**values))


def break_driver(machine: Machine) -> None:
    machine.device_file.touch()
    machine.driver(status=803)


def lose_library(machine: Machine) -> None:
    machine.device_file.touch()
    machine.patch.setattr(libcuda, "library", lambda: None)


def refuse_devices(machine: Machine) -> None:
    def refuse() -> None:
        raise UnavailableError("the driver reports no CUDA device")

    machine.patch.setattr(device, "devices", refuse)


def lose_cublas(machine: Machine) -> None:
    def load(name: str) -> None:
        raise RuntimeError(f"Failure finding lib{name}.so")

    machine.module("cuda", SimpleNamespace())
    machine.module("cuda.pathfinder", SimpleNamespace(load_nvidia_dynamic_lib=load))
    machine.patch.setattr(cublas, "version", lambda: str(cublas.place()))


def lose_nvdisasm(machine: Machine) -> None:
    find = compilation.find
    machine.patch.setattr(
        compilation, "find", lambda name="nvcc": None if name == "nvdisasm" else find(name)
    )


def restrict_counters(machine: Machine) -> None:
    machine.params.write_text("RmProfilingAdminOnly: 1\n")
    machine.patch.setattr(os, "geteuid", lambda: 1000)


def restrict_counters_to_root(machine: Machine) -> None:
    machine.params.write_text("RmProfilingAdminOnly: 1\n")
    machine.patch.setattr(os, "geteuid", lambda: 0)


def other(pid: int) -> list[SimpleNamespace]:
    return [SimpleNamespace(pid=os.getpid()), SimpleNamespace(pid=pid)]


@pytest.mark.parametrize(("change", "name", "status", "text"), [
    (break_driver, "driver", "problem", "580.1 (CUDA 13.0) does not start: it is broken; fix: nvi"),
    (lose_library, "driver", "problem", "libcuda cannot be loaded; fix: reinstall NVIDIA's driver"),
    (change_nvcc(release="14.1.2"), "nvcc", "problem", "the driver supports CUDA 13.0; fix: update "
     "the driver, or install CUDA toolkit 13.0"),
    (change_nvcc(compiles=False), "nvcc", "problem", "does not compile: host.h(1): error: unsup"),
    (lambda machine: (machine.bin / "g++").unlink(), "nvcc", "problem", "install g++"),
    (lambda machine: (machine.bin / "g++").unlink(), "C++ compiler", "problem", "; fix: sudo "),
    (lambda machine: machine.module("pycuda.driver", None), "PyCUDA", "problem", INSTALL),
    (lambda machine: machine.patch.setattr(doctor, "version", {}.__getitem__), "PyCUDA", "problem",
     "KeyError: 'pycuda'"),
    (refuse_devices, "CUDA devices", "problem", "the driver reports no CUDA device"),
    (lose_cublas, "cuBLAS", "note", "fix: pip install 'cuda-toolkit[cublas]==13.0.*'"),
    (lose_nvdisasm, "nvdisasm", "note", "not found; fix: pip install nvidia-cuda-nvdisasm"),
    (lambda machine: (machine.bin / "ncu").unlink(), "counters", "note", "put ncu on PATH"),
    (restrict_counters, "counters", "note", "only root may read them; fix: echo options nvidia "),
    (restrict_counters_to_root, "counters", "ok", "ncu, as root"),
    (lambda machine: machine.module("pynvml", None), "NVML", "note", INSTALL),
    (change_nvml(Init=NVMLError("no library")), "NVML", "note", "(no library); fix: nvidia-smi"),
    (change_nvml(DeviceGetCurrentClocksThrottleReasons=64), "GPU 0 clocks", "note",
     "throttled: HwThermalSlowdown; fix: nvidia-smi -i 0 -q -d PERFORMANCE,"),
    (change_nvml(DeviceGetCurrentClocksThrottleReasons=2), "GPU 0 clocks", "ok",
     "1,980 MHz, limited by its owner, not throttled"),
    (change_nvml(DeviceGetEccMode=[1, 0]), "GPU 0 ECC", "note", "on until the next reboot; fix: "),
    (change_nvml(DeviceGetEccMode=[0, 0]), "GPU 0 ECC", "ok", "off"),
    (change_nvml(DeviceGetEccMode=NVMLError("Not Supported")), "GPU 0 ECC", "ok",
     "unknown (Not Supported)"),
    (change_nvml(DeviceGetTotalEccErrors=3), "GPU 0 ECC", "note",
     "3 uncorrected errors since the last boot; fix: nvidia-smi -i 0 -q -d ECC"),
    (change_nvml(DeviceGetMigMode=[1, 1]), "GPU 0 MIG", "note", "fix: sudo nvidia-smi -i 0 -mig 0"),
    (change_nvml(DeviceGetMigMode=TypeError("odd")), "GPU 0 MIG", "note", "TypeError: odd"),
    (change_nvml(DeviceGetComputeRunningProcesses=other(999_999_999)), "GPU 0 processes", "note",
     "unknown (999999999); the GPU is 0% busy; fix: end them"),
    (change_nvml(DeviceGetComputeRunningProcesses=[], DeviceGetGraphicsRunningProcesses=other(1)),
     "GPU 0 processes", "note", " (1); the GPU is 0% busy; fix: end them"),
    (change_nvml(DeviceGetUtilizationRates=SimpleNamespace(gpu=97)), "GPU 0 processes", "note",
     "none visible, perhaps in another container; the GPU is 97% busy"),
])  # fmt: skip
def test_what_is_wrong_is_one_line_with_a_fix(
    change: Callable[[Machine], object], name: str, status: str, text: str, machine: Machine,
    lines: Lines,
) -> None:  # fmt: skip
    machine.with_everything()
    change(machine)
    # Only lines of the same cause may be other than ok.
    found = lines(code=1 if status == "problem" else 0)
    assert found[name][0] == status
    assert text in found[name][1]


def test_every_gpu_has_its_lines(machine: Machine, lines: Lines) -> None:
    machine.with_everything()
    machine.module("pynvml", Nvml(DeviceGetCount=2, DeviceGetMigMode=[1, 1]))
    found = lines()
    assert found["NVML"] == ("ok", "2 GPUs")
    assert found["GPU 1 MIG"][1].endswith("fix: sudo nvidia-smi -i 1 -mig 0")


# -- The CPU instead of the GPU ------------------------------------------------------------------


@pytest.fixture
def only_the_cpu(machine: Machine, device: Any) -> Machine:
    """A driver and a GPU, but no PyCUDA; the OpenCL device is a real one."""
    machine.driver()
    machine.patch.setattr(opencl, "devices", lambda: [device])
    return machine


def test_a_run_says_that_it_takes_the_cpu(only_the_cpu: Machine, matbench: Matbench) -> None:
    run = matbench("run", "tiled", "--sizes", "8", "--set", "TILE=8", *QUICK)
    [said] = [line for line in run.stderr.splitlines() if "GPU" in line]
    assert said.startswith("the CPU is used instead of the NVIDIA GPU: PyCUDA cannot be import")
    assert said.endswith("with an NVIDIA driver: matbench doctor --install")


def test_no_fix_names_the_doctor(only_the_cpu: Machine, caplog: pytest.LogCaptureFixture) -> None:
    def unusable() -> list[Any]:
        raise UnavailableError("the toolkit is too new")

    only_the_cpu.patch.setattr(cuda, "devices", unusable)
    backends.choose("auto", None)
    [said] = caplog.messages
    assert said.endswith("GPU: the toolkit is too new (see matbench doctor)")


def test_a_chosen_cpu_is_not_told(only_the_cpu: Machine, caplog: pytest.LogCaptureFixture) -> None:
    backends.choose("opencl", None)
    backends.choose("auto", "0")
    only_the_cpu.driver(status=100)  # hidden, or none
    backends.choose("auto", None)
    assert caplog.messages == []


def test_opencl_gpus_are_no_cpu(only_the_cpu: Machine, caplog: pytest.LogCaptureFixture) -> None:
    gpu = msgspec.structs.replace(GPU, backend="opencl")
    only_the_cpu.patch.setattr(opencl, "devices", lambda: [gpu])
    assert backends.choose("auto", None) == gpu
    assert caplog.messages == []
