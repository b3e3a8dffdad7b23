"""Device selection and its errors, tested without a GPU by stand-ins; the host as a device."""

from __future__ import annotations

import os
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from support.devices import CPU, GPU

from matbench import backends
from matbench.backends import Array, Backend, UnavailableError, Work, host
from matbench.backends.cuda import compilation
from matbench.backends.cuda import device as cuda_device
from matbench.bench.kernel_arguments import Memory
from matbench.errors import UsageError
from matbench.kernelfile import catalogue
from matbench.model import DeviceInfo, Launch

OPENCL_GPU = msgspec.structs.replace(GPU, backend="opencl", compute_capability=None)
SECOND = msgspec.structs.replace(GPU, index=1, name="Another GPU")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[DeviceInfo]]:
    """The devices that each backend finds; a backend that is not given cannot be used."""
    found: dict[str, list[DeviceInfo]] = {}

    def devices(name: str) -> list[DeviceInfo]:
        if name not in found:
            raise UnavailableError(f"{name} is missing; install it")
        return found[name]

    monkeypatch.setattr(backends, "devices", devices)
    return found


def test_auto_takes_cuda_then_opencl_gpus_then_a_cpu(machine: dict[str, list[DeviceInfo]]) -> None:
    machine["opencl"] = [CPU]
    assert backends.choose("auto", None) == CPU
    machine["opencl"] = [OPENCL_GPU, CPU]  # a driver, but no toolkit
    assert backends.choose("auto", None) == OPENCL_GPU
    machine["cuda"] = [GPU, SECOND]
    assert backends.choose("auto", None) == GPU
    assert backends.choose("opencl", None) == OPENCL_GPU
    assert backends.choose("cuda", "1") == SECOND
    assert backends.choose("auto", "another") == SECOND
    assert backends.choose("auto", "opencl:0") == OPENCL_GPU
    assert backends.host_device() == CPU


def test_a_name_of_several_devices_is_a_question(machine: dict[str, list[DeviceInfo]]) -> None:
    twin, longer = (
        msgspec.structs.replace(GPU, index=index, name=name)
        for index, name in ((1, GPU.name), (2, f"{GPU.name} NVL"))
    )
    machine["cuda"], machine["opencl"] = [GPU, twin, longer], [OPENCL_GPU, CPU]
    with pytest.raises(UsageError) as refused:
        backends.choose("auto", "a gpu")  # the whole name of two of them
    assert str(refused.value) == (
        "--device 'a gpu': which one? cuda:0 A GPU; cuda:1 A GPU (or several: cuda:0,cuda:1)"
    )
    assert backends.choose("auto", "nvl") == longer
    assert backends.choose("auto", "1") == twin
    machine["cuda"] = [GPU, longer]
    assert backends.choose("auto", "a gpu") == GPU  # not the longer name, nor through OpenCL


def test_several_devices(machine: dict[str, list[DeviceInfo]]) -> None:
    twin = msgspec.structs.replace(GPU, index=1)
    machine["opencl"] = [OPENCL_GPU, CPU]
    machine["cuda"] = [GPU, twin]
    assert backends.choose_all("auto", "all") == [GPU, twin]
    assert backends.choose_all("auto", None) == [GPU]
    assert backends.choose_all("auto", "1, cuda:0,1") == [twin, GPU]
    assert backends.choose_all("opencl", "ALL") == [OPENCL_GPU]
    machine["opencl"] = [CPU, msgspec.structs.replace(CPU, index=1)]
    assert backends.choose_all("opencl", "all") == [CPU]  # the other is the same processor
    with pytest.raises(UsageError, match="no such device"):
        backends.choose_all("auto", "0,,1")


def test_no_device_says_what_is_missing_and_the_fix(machine: dict[str, list[DeviceInfo]]) -> None:
    with pytest.raises(UsageError) as refused:
        backends.choose("auto", None)
    assert str(refused.value) == (
        "no device to run on; cuda: cuda is missing; install it; "
        "opencl: opencl is missing; install it"
    )
    machine["opencl"] = [OPENCL_GPU]
    with pytest.raises(UnavailableError, match=r"no OpenCL CPU device; pip install .*\[cpu\]"):
        backends.host_device()


# -- CUDA: incompatible toolkits and drivers -----------------------------------------------------


def use(
    monkeypatch: pytest.MonkeyPatch, *, driver: int, toolkit: str, architectures: set[str]
) -> None:
    """A driver that supports CUDA `driver` / 1000, a toolkit, and an sm_90 device."""
    stand_in = SimpleNamespace(
        get_driver_version=lambda: driver, Device=SimpleNamespace(count=lambda: 1)
    )
    monkeypatch.setattr(cuda_device, "driver", lambda: stand_in)
    monkeypatch.setattr(cuda_device, "describe", lambda *_: GPU)
    monkeypatch.setattr(compilation, "nvcc", lambda: compilation.Nvcc("nvcc", toolkit))
    monkeypatch.setattr(compilation, "architectures", lambda: frozenset(architectures))


def test_a_toolkit_too_new_for_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, driver=12040, toolkit="13.0.88", architectures={"90"})
    with pytest.raises(UsageError) as refused:
        backends.choose("cuda", None)
    assert str(refused.value) == (
        "no device to run on; cuda: the CUDA toolkit 13.0.88 is too new for the driver, which "
        "supports CUDA 12.4; update the driver or install an older toolkit"
    )


def test_a_toolkit_too_old_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, driver=13000, toolkit="11.2.152", architectures={"80", "86"})
    with pytest.raises(UsageError) as refused:
        backends.choose("cuda", None)
    assert str(refused.value) == (
        "no device to run on; cuda: the CUDA toolkit 11.2.152 does not support A GPU (sm_90); "
        "install one that does (the driver supports CUDA 13.0)"
    )


@pytest.mark.parametrize("toolkit", ["12.0.1", "13.0.88", "unknown"])
def test_a_toolkit_that_suits(toolkit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, driver=13000, toolkit=toolkit, architectures={"80", "90"})
    assert backends.devices("cuda") == [GPU]


def test_a_gpu_that_has_failed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, driver=13000, toolkit="13.0.88", architectures={"90"})

    def fail(*_: object) -> None:
        raise RuntimeError("cuDeviceGetAttribute failed: unknown error")

    monkeypatch.setattr(cuda_device.driver(), "Error", RuntimeError, raising=False)
    monkeypatch.setattr(cuda_device, "describe", fail)
    with pytest.raises(UnavailableError, match=r"cannot use its devices \(unknown error\)"):
        backends.devices("cuda")


@pytest.mark.parametrize(("small", "calls"), [(1 << 20, 4), (1 << 15, 2)])
def test_a_short_function_of_the_host_is_called_before_it_is_timed(
    small: int, calls: int, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_SMALL_BYTES", small)
    numpy = catalogue.Catalogue(catalogue.builtin()).get("numpy")
    source = (
        "def numpy(A, B, C, alpha, beta):\n    C += alpha * A\n    calls.append(beta)\ncalls = []\n"
    )
    kernel = msgspec.structs.replace(numpy, source=source)
    opened = host.HostBackend(host.device(), backend)
    program = cast(host.HostProgram, opened.build(kernel, {}))
    ones = np.ones((64, 64), np.float32)
    with Memory(backend) as memory:
        A, B, C = (Array(memory.upload(ones), "float32", ones.shape, ()) for _ in "ABC")
        for _ in range(2):
            call = program.call(Launch((1, 1, 1), (1, 1, 1)), [A, B, C, 2.0, 1.0])
            assert opened.timed_ns(Work([call])) > 0
            call.give()
        assert (memory.download(C.matrix, ones) == 5).all(), "each call that counts added to C"
    assert len(cast(Any, program.function).__globals__["calls"]) == calls


def test_the_host_has_its_own_conditions_and_the_limits_of_what_compares() -> None:
    judging: Any = SimpleNamespace(info=GPU, conditions=None, energy_j=lambda: 5.0)
    opened = host.HostBackend(host.device(), judging)
    assert (opened.info.kind, opened.info.limits) == ("cpu", GPU.limits)
    assert opened.conditions().sm_mhz is None
    assert opened.energy_j() is None


# -- the load of the CPU -------------------------------------------------------------------------


CPUS = 4


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> host._Others:
    """Readings of this process, all programs and all processors, in seconds per processor."""
    readings = [
        (1.0, 2.0, 8.0), (1.1, 2.2, 8.1), (2.0, 3.5, 18.0), (3.0, 7.5, 28.0), (8.0, 7.5, 38.0),
    ]  # fmt: skip
    given = chain(([CPUS * s for s in each] for each in readings), repeat(None))
    monkeypatch.setattr(host._Others, "_readings", staticmethod(lambda: next(given)))
    monkeypatch.setattr(os, "cpu_count", lambda: CPUS)
    others = host._Others()
    assert others.share() is None, "there is nothing to compare the first reading with"
    return others


def test_the_share_of_others_is_without_ones_own(others: host._Others) -> None:
    """Of the first ten seconds, all programs used 1.5, this one 1; of the next ten, 4 and 1."""
    assert others.share() is None, "a tenth of a second is too short to tell"
    assert others.share() == pytest.approx(0.05)
    assert others.share() == pytest.approx(0.3), "since the last reading, not since the start"
    assert others.share() == 0, "clocks of processes and of the system are not the same"


def test_the_load_of_this_machine_is_known_after_a_while() -> None:
    before, after = host.conditions(), host.conditions()
    assert after.load is None or after.load >= 0
    for moment in (before, after):
        assert moment.others_share is None or 0 <= moment.others_share <= 1


@pytest.mark.parametrize(
    ("listed", "bound"),
    [("0-1,3\n", {1, 3}), ("2", None), ("\n", None), ("all", None), (None, None)],
)
def test_a_process_is_bound_to_the_processors_next_to_its_gpu(
    listed: str | None, bound: set[int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those that it may use at all: 1, 3 and 5."""
    found: list[set[int]] = []
    monkeypatch.setattr(host, "_PCI", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3, 5}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, to: found.append(to), raising=False)
    if listed is not None:
        (tmp_path / "0000:1b:00.0").mkdir()
        (tmp_path / "0000:1b:00.0" / "local_cpulist").write_text(listed)
    host.bind_to(msgspec.structs.replace(GPU, properties={"PCI address": "0000:1B:00.0"}))
    host.bind_to(GPU)  # whose address is not known
    assert found == ([] if bound is None else [bound])
