"""`matbench doctor` on machines with and without a GPU, made of stand-ins; and the line that other
commands print if they take the CPU instead of the GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import msgspec
import pytest
from support import drivers
from support.cli import QUICK, Matbench
from support.devices import CPU, GPU
from support.drivers import Nvml, NVMLError
from support.golden import paged

from matbench import backends
from matbench.backends import cuda, opencl
from matbench.backends.cuda import compilation, cublas, device, libcuda
from matbench.backends.protocol import UnavailableError
from matbench.cache import Cache
from matbench.errors import MatbenchError
from matbench.features.doctor import cuda as doctor
from matbench.features.doctor import installing
from matbench.features.doctor import machine as looking

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
        monkeypatch.setattr(libcuda, "loaded", lambda: None)
        monkeypatch.setattr(opencl, "devices", lambda: [CPU])
        monkeypatch.setattr(looking, "try_out", lambda: None)
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
        self.patch.setattr(libcuda, "loaded", lambda: library)

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
    looking.try_out()
    with pytest.raises(opencl.cl.RuntimeError):
        looking.try_out("kernel void nothing() { none(); }")


# -- Machines with something missing or wrong ------------------------------------------------------


def fail(error: Exception) -> mock.Mock:
    return mock.Mock(side_effect=error)


def nothing_to_measure(machine: Machine) -> None:
    missing = UnavailableError("pyopencl is missing (oh)", "pip install 'matbench-cuda[cpu]'")
    machine.patch.setattr(opencl, "devices", fail(missing))
    (machine.bin / "g++").unlink()


def broken_tools(machine: Machine) -> None:
    drivers.program(machine.bin / "g++", "echo 'error: no cc1plus' >&2; exit 1")
    machine.patch.setattr(looking, "try_out", fail(RuntimeError("clBuildProgram failed")))


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
    machine.patch.setattr(libcuda, "loaded", lambda: None)


def lost_cublas(machine: Machine) -> None:
    load = fail(RuntimeError("Failure finding libcublasLt.so"))
    machine.module("cuda", SimpleNamespace())
    machine.module("cuda.pathfinder", SimpleNamespace(load_nvidia_dynamic_lib=load))
    machine.patch.setattr(cublas, "version", lambda: str(cublas.place()))


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
    "no nvdisasm": lambda machine: (machine.bin / "nvdisasm").unlink(),
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
    only_the_cpu.patch.setattr(cuda, "devices", fail(UnavailableError("the toolkit is too new")))
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


# -- doctor --install ------------------------------------------------------------------------------


#: Runs PyCUDA's build in small: it needs curand.h, and libraries by the names that linkers use.
CODE = """
#include <curand.h>
int cuInit(unsigned);
int both(void) { return cuInit(0) + curandGetVersion(); }
"""


real_pip, really_imports = installing._pip, installing._imports


@pytest.fixture(autouse=True)
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test installs anything here, even if a check fails to stop it."""
    monkeypatch.setattr(installing, "_pip", lambda: ["false"])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site-packages with a toolkit from wheels, and a driver."""
    site = tmp_path / "site"
    root = site / "nvidia" / "cu13"
    drivers.nvcc(root / "bin" / "nvcc")
    (root / "include").mkdir()
    (root / "include" / "curand.h").write_text("int curandGetVersion(void);\n")
    drivers.shared_library(
        root / "lib" / "libcurand.so.10", "int curandGetVersion(void) { return 42; }"
    )
    monkeypatch.setattr(compilation, "_wheels", lambda: [site / "nvidia"])
    monkeypatch.setattr(compilation, "find", lambda: root / "bin" / "nvcc")
    driver, library = drivers.driver(tmp_path / "driver"), drivers.loaded(tmp_path)
    monkeypatch.setattr(libcuda, "loaded", lambda: library)
    monkeypatch.setattr(libcuda, "path", lambda: driver)
    for name in ("CPATH", "LIBRARY_PATH", "LDFLAGS"):
        monkeypatch.delenv(name, raising=False)
    return site


def test_wheels_are_found(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPATH", "/another")
    nvcc = site / "nvidia" / "cu13" / "bin" / "nvcc"
    with installing.build_environment(nvcc) as variables:
        assert variables["CUDA_ROOT"] == str(nvcc.parents[1])
        assert variables["PATH"].split(os.pathsep)[0] == str(nvcc.parent)
        assert variables["PATH"].endswith(os.environ["PATH"])
        assert variables["CPATH"] == f"{nvcc.parents[1] / 'include'}:/another"
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        extension = site / "pycuda" / "_driver.so"
        drivers.shared_library(extension, CODE, "-lcuda", "-lcurand", variables["LDFLAGS"])
    assert not Path(variables["LIBRARY_PATH"]).exists()
    # Elsewhere, as if the environment had been moved, and with only the driver to be found.
    moved = site.rename(tmp_path / "moved")
    load = f"import ctypes; print(ctypes.CDLL({str(moved / 'pycuda/_driver.so')!r}).both())"
    done = subprocess.run(
        [sys.executable, "-c", load],
        env={"LD_LIBRARY_PATH": str(tmp_path / "driver")}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "42\n", done.stderr


def test_a_toolkit_is_found_by_its_root_even_if_nvcc_is_a_script(tmp_path: Path) -> None:
    drivers.nvcc(tmp_path / "cuda" / "bin" / "nvcc")
    script = drivers.program(tmp_path / "bin/nvcc", f'exec {tmp_path}/cuda/bin/nvcc "$@"')
    with installing.build_environment(script) as variables:
        assert variables["CUDA_ROOT"] == str(tmp_path / "cuda")
        assert variables["PATH"].startswith(f"{tmp_path}/cuda/bin{os.pathsep}")
        assert variables.keys() == {"CUDA_ROOT", "PATH"}


@pytest.fixture
def pip(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Installs with a pip that writes down its arguments, and may fail with a message."""
    written = tmp_path / "written"
    monkeypatch.setattr(installing, "build_tools_missing", lambda: None)
    monkeypatch.setattr(installing, "_imports", lambda module: True)

    def install(fails: str | None = None) -> list[str]:
        script = f'echo "$* root=${{CUDA_ROOT##*/}}" >> {written}'
        if fails is not None:
            script += f"\ncat <<'END'\n{fails}\nEND\nexit 1"
        fake = drivers.program(tmp_path / "pip", script)
        monkeypatch.setattr(installing, "_pip", lambda: [str(fake)])
        said = list(installing.install())
        assert all(said)
        return written.read_text().splitlines()

    return install


def test_without_a_toolkit_the_drivers_wheels_are_first(pip: Callable[..., list[str]]) -> None:
    assert pip() == [
        "nvidia-cuda-nvdisasm "
        "cuda-toolkit[cccl,crt,cudart,curand,nvcc,nvvm,profiler]==13.0.* root=",
        "--no-cache-dir matbench-cuda[cuda] root=cu13",
    ]


def test_a_toolkit_needs_no_wheels_and_no_driver(
    pip: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc = drivers.nvcc(tmp_path / "cuda-12" / "bin" / "nvcc")
    monkeypatch.setattr(compilation, "find", lambda: nvcc)
    monkeypatch.setattr(libcuda, "loaded", lambda: None)
    assert pip() == ["--no-cache-dir matbench-cuda[cuda] root=cuda-12"]


def test_a_pycuda_that_cannot_be_imported_is_built_again(
    pip: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken" / "pycuda").mkdir(parents=True)
    (tmp_path / "broken" / "pycuda" / "__init__.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path / "broken")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    monkeypatch.setattr(installing, "_imports", really_imports)
    assert "--no-cache-dir --force-reinstall --no-deps pycuda root=cu13" in pip()


@pytest.fixture
def refused(matbench: Matbench) -> Callable[..., str]:
    """The one line of a `matbench doctor --install` that fails, after the steps that it says."""

    def refusal(code: int) -> str:
        result = matbench("doctor", "--install", code=code)
        assert result.stdout == ""
        return result.stderr.splitlines()[-1]

    return refusal


def test_a_failed_installation_is_one_line_below_what_pip_says(
    pip: Callable[..., list[str]], refused: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MatbenchError, match="pip could not install"):
        pip(fails="cannot find -lcurand")
    said = refused(1)
    assert said.startswith("matbench: pip could not install cuda-toolkit[")
    assert said.endswith("; its messages are above")
    assert capfd.readouterr().out.count("cannot find -lcurand") == 2


@pytest.mark.usefixtures("site")
def test_what_pip_cannot_install_is_said_with_the_command(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    assert refused(2) == (
        "matbench: PyCUDA cannot be built: no C++ compiler; sudo apt-get install g++"
    )
    drivers.program(tmp_path / "tools" / "dnf")
    assert refused(2).endswith("no C++ compiler; sudo dnf install gcc-c++")
    drivers.program(tmp_path / "tools" / "g++")
    headers = sysconfig.get_path
    monkeypatch.setattr(sysconfig, "get_path", lambda name: f"/nowhere/{name}")
    assert "no /nowhere/include/Python.h; sudo dnf install python3-devel" in refused(2)
    monkeypatch.setattr(sysconfig, "get_path", headers)
    monkeypatch.setattr(libcuda, "version", lambda: (12, 4))
    monkeypatch.setattr(installing, "build_tools_missing", lambda: None)
    assert refused(2) == (
        "matbench: the driver supports CUDA 12.4, whose nvcc does not come as wheels; install the "
        "CUDA toolkit 12.4 and put its bin folder on PATH, or update the driver to 580 or newer"
    )
    monkeypatch.setattr(libcuda, "version", lambda: None)
    assert refused(2).startswith("matbench: no NVIDIA driver; install it first")


def test_environments_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Exception, match="has no pip; run its -m ensurepip, or install uv"):
        real_pip()
    uv = drivers.program(tmp_path / "uv")
    assert real_pip()[:3] == [str(uv), "pip", "install"]
    assert real_pip()[-2:] == ["--python", sys.executable]


def test_a_folders_settings_are_not_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv would take its index from a `uv.toml` there."""
    here = tmp_path / "folder"
    here.mkdir()
    (here / "uv.toml").write_text("index-url = 'https://example.invalid'")
    monkeypatch.chdir(here)
    code = f"import os; open({str(tmp_path / 'seen')!r}, 'w').write(str(os.listdir()))"
    installing._run([sys.executable, "-c", code])
    assert (tmp_path / "seen").read_text() == "[]"
