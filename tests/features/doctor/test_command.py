"""`matbench doctor` on machines with and without a GPU, made of stand-ins; and the line that other
commands print if they take the CPU instead of the GPU."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest
from support import drivers
from support.cli import QUICK, Matbench
from support.devices import CPU, GPU
from support.drivers import Nvml, NVMLError
from support.golden import paged

from matbench import backends
from matbench.backends import UnavailableError, cuda, opencl
from matbench.backends.cuda import compilation, cublas, device, libcuda
from matbench.cache import Cache
from matbench.features.doctor import cuda as doctor

pytestmark = pytest.mark.usefixtures("own_state")


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
        forget()

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


def forget() -> None:
    for cached in (compilation.nvcc, compilation.architectures, device.driver, cublas.place):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    forget()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path / "machine", monkeypatch)


def test_devices_follow_with_their_properties(matbench: Matbench) -> None:
    found, _, text = matbench("doctor", code=None).stdout.partition("\n\n")
    assert re.search(r"^cache +ok +\S+, [\d,.]+ MB of at most 2,147 MB$", found, re.MULTILINE)
    for info in backends.devices("opencl"):
        assert info.label in text
        assert info.driver in text
        assert all(label in text for label in info.properties)


def test_a_device_that_builds_no_kernel_is_told() -> None:
    opencl.try_out()
    with pytest.raises(opencl.pyopencl().RuntimeError):
        opencl.try_out("kernel void nothing() { none(); }")


# -- Machines with something missing or wrong ------------------------------------------------------


def fail(error: Exception) -> Callable[..., Any]:
    def failing(*_: Any) -> None:
        raise error

    return failing


def no_opencl(machine: Machine) -> None:
    missing = UnavailableError("pyopencl is missing (oh)", "pip install 'matbench-cuda[cpu]'")
    machine.patch.setattr(opencl, "devices", fail(missing))


def nothing_to_measure(machine: Machine) -> None:
    no_opencl(machine)
    (machine.bin / "g++").unlink()


def broken_tools(machine: Machine) -> None:
    drivers.program(machine.bin / "g++", "echo 'error: no cc1plus' >&2; exit 1")
    machine.patch.setattr(opencl, "try_out", fail(RuntimeError("clBuildProgram failed")))


def open_cache(machine: Machine) -> None:
    (shared := machine.folder / "shared").mkdir()
    shared.chmod(0o777)
    machine.patch.setenv("MATBENCH_CACHE_DIR", str(shared))


def pci(machine: Machine, kind: str) -> None:
    """Another vendor's display, and a device of NVIDIA's."""
    for name, vendor, what in (("1", "0x1af4", "0x030200"), ("2", "0x10de", kind)):
        (folder := machine.pci / f"0000:0{name}:00.0").mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{what}\n")


def hidden_gpus(machine: Machine) -> None:
    machine.driver(status=100)
    machine.patch.setenv("CUDA_VISIBLE_DEVICES", "")


def broken_driver(machine: Machine) -> None:
    machine.device_file.touch()
    machine.driver(status=803)


def lost_library(machine: Machine) -> None:
    machine.device_file.touch()
    machine.patch.setattr(libcuda, "library", lambda: None)


def lost_cublas(machine: Machine) -> None:
    load = fail(RuntimeError("Failure finding libcublasLt.so"))
    machine.module("cuda", SimpleNamespace())
    machine.module("cuda.pathfinder", SimpleNamespace(load_nvidia_dynamic_lib=load))
    machine.patch.setattr(cublas, "version", lambda: str(cublas.place()))


def lost_nvdisasm(machine: Machine) -> None:
    find = compilation.find
    machine.patch.setattr(
        compilation, "find", lambda name="nvcc": None if name == "nvdisasm" else find(name)
    )


def restricted_counters(user: int) -> Callable[[Machine], None]:
    def restrict(machine: Machine) -> None:
        machine.params.write_text("RmProfilingAdminOnly: 1\n")
        machine.patch.setattr(os, "geteuid", lambda: user)

    return restrict


def nvml(**values: Any) -> Callable[[Machine], None]:
    return lambda machine: machine.module("pynvml", Nvml(**values))


def processes(*others: int) -> list[SimpleNamespace]:
    return [SimpleNamespace(pid=pid) for pid in (os.getpid(), *others)]


Change = Callable[[Machine], object]
WITHOUT_GPU: dict[str, Change] = {
    "nothing else": lambda _: None,
    "no OpenCL, no C++ compiler": nothing_to_measure,
    "tools that fail": broken_tools,
    "a cache that is open to others": open_cache,
    "a full disk": lambda machine: machine.patch.setattr(Cache, "put", lambda *_: None),
    "NVIDIA's display": lambda machine: pci(machine, "0x030200"),
    "NVIDIA's sound": lambda machine: pci(machine, "0x040300"),
    "hidden GPUs": hidden_gpus,
    "a driver alone": lambda machine: machine.driver(),
}
WITH_EVERYTHING: dict[str, Change] = {
    "no OpenCL, no C++ compiler": nothing_to_measure,
    "a driver that does not start": broken_driver,
    "no library of the driver": lost_library,
    "a newer nvcc": lambda machine: drivers.nvcc(machine.bin / "nvcc", release="14.1.2"),
    "an nvcc that fails": lambda machine: drivers.nvcc(machine.bin / "nvcc", compiles=False),
    "no C++ compiler": lambda machine: (machine.bin / "g++").unlink(),
    "no PyCUDA": lambda machine: machine.module("pycuda.driver", None),
    "half of PyCUDA": lambda machine: machine.patch.setattr(doctor, "version", {}.__getitem__),
    "no device": lambda machine: machine.patch.setattr(
        device, "devices", fail(UnavailableError("the driver reports no CUDA device"))
    ),
    "no cuBLAS": lost_cublas,
    "no nvdisasm": lost_nvdisasm,
    "no ncu": lambda machine: (machine.bin / "ncu").unlink(),
    "counters for root": restricted_counters(1000),
    "counters for root, who asks": restricted_counters(0),
    "no pynvml": lambda machine: machine.module("pynvml", None),
    "no NVML": nvml(Init=NVMLError("no library")),
    "heat": nvml(DeviceGetCurrentClocksThrottleReasons=64),
    "an owner's limit": nvml(DeviceGetCurrentClocksThrottleReasons=2),
    "ECC until a reboot": nvml(DeviceGetEccMode=[1, 0]),
    "no ECC": nvml(DeviceGetEccMode=[0, 0]),
    "unknown ECC": nvml(DeviceGetEccMode=NVMLError("Not Supported")),
    "errors of memory": nvml(DeviceGetTotalEccErrors=3),
    "two GPUs in parts": nvml(DeviceGetCount=2, DeviceGetMigMode=[1, 1]),
    "an odd NVML": nvml(DeviceGetMigMode=TypeError("odd")),
    "other processes": nvml(DeviceGetComputeRunningProcesses=processes(999_999_999)),
    "others that draw": nvml(
        DeviceGetComputeRunningProcesses=[],
        DeviceGetGraphicsRunningProcesses=processes(999_999_999),
    ),
    "others out of sight": nvml(DeviceGetUtilizationRates=SimpleNamespace(gpu=97)),
}


def test_machines(tmp_path: Path, matbench: Matbench, file_regression: Any) -> None:
    """The lines of each machine that one with everything does not have."""

    def lines(has_everything: bool, change: Change) -> list[str]:
        with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(dir=tmp_path) as folder:
            machine = Machine(Path(folder), patch)
            if has_everything:
                machine.with_everything()
            change(machine)
            result = matbench("doctor", code=None)
        assert result.stderr == ""
        text = result.stdout.partition("\n\n")[0].replace(folder, "FOLDER")
        text = re.sub(r", [\d,.]+ MB of at most 2,147 MB$", "", text, flags=re.MULTILINE)
        found = [re.split(r"  +", line.rstrip(), maxsplit=2) for line in text.splitlines()]
        assert result.exit_code == any(status == "problem" for _, status, _ in found)
        return ["  ".join(line) for line in found]

    whole = lines(True, lambda _: None)
    pages = {"a GPU with everything": whole}
    for is_whole, changes in ((False, WITHOUT_GPU), (True, WITH_EVERYTHING)):
        for name, change in changes.items():
            pages[f"{'with everything' if is_whole else 'without a GPU'}: {name}"] = [
                line for line in lines(is_whole, change) if line not in whole
            ]
    file_regression.check(paged({name: "\n".join(page) for name, page in pages.items()}))


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
