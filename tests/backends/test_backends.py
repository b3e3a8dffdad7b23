"""Device selection and its errors, tested without a GPU by stand-ins; the host as a device."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import msgspec
import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import drivers
from support.cli import ran
from support.devices import GPU, device
from support.golden import TableRegression
from support.kernels import kernel_text, saved
from support.samples import check_trials
from support.sources import arrived, launched

from matbench import backends
from matbench.backends import host
from matbench.backends.cuda import compilation, libcuda
from matbench.backends.cuda import device as cuda_device
from matbench.backends.protocol import Array, Backend, UnavailableError, Work
from matbench.bench.device_kernels import DeviceKernels
from matbench.bench.kernel_arguments import Memory
from matbench.errors import BuildError, OutOfMemoryError, UsageError
from matbench.kernelfile import catalogue, front_matter, signature
from matbench.model import DeviceInfo, Launch, Problem


def test_which_device_is_chosen(
    monkeypatch: pytest.MonkeyPatch, table_regression: TableRegression
) -> None:
    """Of devices in their order; a backend without any is not installed."""

    def chosen(source: str) -> str:
        *there, question = source.splitlines()
        found: dict[str, list[DeviceInfo]] = defaultdict(list)
        for line in there:
            name, kind, model = line.split(" ", 2)
            made = device(backend=name, kind=kind, name=model, index=len(found[name]))
            found[name].append(made)

        def devices(name: str) -> list[DeviceInfo]:
            if name not in found:
                raise UnavailableError(f"{name} is missing; install it")
            return found[name]

        monkeypatch.setattr(backends, "devices", devices)
        how, *asked = question.split(" ", 2)
        given: list[Any] = [*asked, None, None]
        backend, which, *_ = given
        try:
            taken = {
                "one": lambda: [backends.choose(backend, which)],
                "all": lambda: backends.choose_all(backend, which),
                "host": lambda: [backends.host_device()],
            }[how]()
        except (UsageError, UnavailableError) as error:
            return str(error)
        return ", ".join(f"{info.place} {info.name}" for info in taken)

    table_regression("choices.txt", chosen)


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


def test_a_toolkit_suits_the_driver_and_the_device(
    monkeypatch: pytest.MonkeyPatch, table_regression: TableRegression
) -> None:
    def said(source: str) -> str:
        driver, toolkit, *architectures = re.findall(r"\b(?:\d[\d.]*|unknown)", source)
        use(monkeypatch, driver=int(driver), toolkit=toolkit, architectures={*architectures})
        try:
            return backends.choose("cuda", None).name
        except UsageError as error:
            return str(error)

    table_regression("toolkits.txt", said)


def test_a_gpu_that_has_failed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, driver=13000, toolkit="13.0.88", architectures={"90"})
    failing = mock.Mock(side_effect=RuntimeError("cuDeviceGetAttribute failed: unknown error"))
    monkeypatch.setattr(cuda_device.driver(), "Error", RuntimeError, raising=False)
    monkeypatch.setattr(cuda_device, "describe", failing)
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
    opened = host.HostBackend(host.devices()[0], backend)
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
    opened = host.HostBackend(host.devices()[0], judging)
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
    own, busy, every = zip(*([CPUS * s for s in each] for each in readings), strict=True)
    times = ({"user": b, "idle": s - b} for b, s in zip(busy, every, strict=True))
    told = (SimpleNamespace(_asdict=one.copy) for one in times)
    monkeypatch.setattr(psutil, "cpu_times", partial(next, told))
    monkeypatch.setattr(time, "process_time", partial(next, iter(own)))
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
    monkeypatch.setattr(backends, "_PCI", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3, 5}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, to: found.append(to), raising=False)
    if listed is not None:
        (tmp_path / "0000:1b:00.0").mkdir()
        (tmp_path / "0000:1b:00.0" / "local_cpulist").write_text(listed)
    backends.bind_to(msgspec.structs.replace(GPU, properties={"PCI address": "0000:1B:00.0"}))
    backends.bind_to(GPU)  # whose address is not known
    assert found == ([] if bound is None else [bound])


# -- NVIDIA's driver -------------------------------------------------------------------------------


ASK = """
from matbench.backends.cuda import libcuda
print(libcuda.version(), libcuda.trouble(), libcuda.gpu_is_present(), libcuda.path())
print(libcuda.uuid(0), libcuda.uuid(1), libcuda.uuid(2))
"""


def asked(folder: Path) -> list[str]:
    """What another process learns from the library in this folder."""
    return ran(sys.executable, "-c", ASK, LD_LIBRARY_PATH=str(folder)).splitlines()


def test_a_driver_says_what_it_is_without_pycuda(tmp_path: Path) -> None:
    library = drivers.driver(tmp_path, version=12080)
    assert asked(tmp_path) == [
        f"(12, 8) None True {library}",
        "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f None None",
    ]


@pytest.mark.parametrize(("status", "file", "is_present"), [
    (0, False, True),
    (100, True, False),  # no GPU, or hidden
    (34, True, False),  # a stub to link with
    (803, True, True),  # an updated driver before the reboot
    (999, False, False),  # a library without the kernel module
])  # fmt: skip
def test_whether_there_is_a_gpu(
    status: int, file: bool, is_present: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = drivers.loaded(tmp_path, status=status)
    monkeypatch.setattr(libcuda, "loaded", lambda: library)
    monkeypatch.setattr(libcuda, "_DEVICE_FILE", tmp_path if file else tmp_path / "none")
    assert libcuda.gpu_is_present() is is_present
    assert libcuda.trouble() == ("it is broken" if status else None)


def test_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libcuda, "loaded", lambda: None)
    monkeypatch.setattr(libcuda, "_DEVICE_FILE", tmp_path / "none")
    assert (libcuda.version(), libcuda.path(), libcuda.uuid(0)) == (None, None, None)
    assert not libcuda.gpu_is_present()
    monkeypatch.setattr(libcuda, "_DEVICE_FILE", tmp_path)  # a container without the library
    assert libcuda.gpu_is_present()


# -- what every backend can do ---------------------------------------------------------------------


#: What the tutorial prints of a device.
TOLD = {
    "global memory (bytes)", "shared memory per block (bytes)", "registers per block", "warp size",
    "memory pitch (bytes)", "largest block (threads)", "largest block (x, y, z)",
    "largest grid (x, y, z)", "constant memory (bytes)", "compute capability", "clock rate (MHz)",
    "texture alignment (bytes)", "copy and compute overlap", "multiprocessors",
}  # fmt: skip


@pytest.fixture(scope="module", params=["opencl", pytest.param("cuda", marks=pytest.mark.gpu)])
def backend(request: pytest.FixtureRequest) -> Backend:
    opened: Backend = request.getfixturevalue(request.param)
    return opened


@pytest.fixture(scope="module")
def kernels(backend: Backend) -> Iterator[DeviceKernels]:
    with closing(DeviceKernels(backend)) as made:
        yield made


def test_devices_say_all_that_the_tutorial_prints(backend: Backend) -> None:
    found = backends.devices(backend.info.backend)
    for number, info in enumerate(found):
        assert (info.backend, info.index) == (backend.info.backend, number)
        assert info.name
        assert info.driver
        assert info.toolkit
        assert info.limits.keys() == front_matter.DEVICE_LIMITS.keys()
        assert all(value > 0 for value in info.limits.values())
        assert info.properties.keys() >= TOLD
    kinds = [info.kind for info in found]
    assert kinds == sorted(kinds, reverse=True)  # GPUs first


@pytest.mark.parametrize("words", [1, 3, 1000, 1_000_003])
def test_what_was_written_is_read(words: int, backend: Backend) -> None:
    values = np.random.default_rng(0).integers(0, 2**32, words, dtype=np.uint32)
    first, second = backend.allocate(4 * words), backend.allocate(4 * words)
    backend.write(first, values)
    backend.copy(second, first)
    found = np.zeros_like(values)
    backend.read(second, found)
    assert np.array_equal(found, values)
    backend.release(first)
    backend.release(second)


def test_a_view_shares_its_memory(backend: Backend) -> None:
    whole = backend.allocate(3 * 4096)
    backend.write(whole, np.zeros(3 * 1024, np.uint32))
    middle = whole.view(4096, 4000)
    assert middle.nbytes == 4000
    backend.write(middle, np.full(1000, 7, np.uint32))
    found = np.empty(3 * 1024, np.uint32)
    backend.read(whole, found)
    assert (found[1024:2024] == 7).all()
    assert not found[:1024].any()
    assert not found[2024:].any()
    backend.release(whole)


def test_too_much_memory_says_how_much_and_leaves_the_rest(backend: Backend) -> None:
    told = backend.info.properties
    largest = told.get("largest allocation (bytes)") or 2 * int(told["global memory (bytes)"] or 0)
    asked = int(largest) + 1
    with pytest.raises(OutOfMemoryError) as refused:
        backend.allocate(asked)
    assert not refused.value.fatal
    assert f"{asked:,} bytes requested" in refused.value.reason
    allowed = f"this device allows {asked - 1:,}"
    assert (allowed in refused.value.reason) == (backend.info.backend == "opencl")
    backend.release(backend.allocate(4))


def test_a_kernel_that_does_not_compile_shows_its_own_line(
    backend: Backend, tmp_path: Path, temporary: Path
) -> None:
    text = kernel_text().replace("sum += ", "summ += ")
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "summ +=" in one)
    kernel = catalogue.load(saved(tmp_path / "mine.cu", text))
    for variant in backend.variants:
        with pytest.raises(BuildError) as refused:
            backend.build(kernel, {"TILE": 8}, variant)
        assert not refused.value.fatal
        message, source, caret, *_ = refused.value.reason.splitlines()
        assert re.search(rf"mine\.cu[:(]{line}(:\d+|\))?: error: .*['\"]summ['\"]", message)
        assert source.endswith("summ += A[(size_t)row * K + k] * B[(size_t)k * N + column];")
        assert caret.index("^") == source.index("summ")
    with pytest.raises(BuildError, match="TILE"):
        backend.build(catalogue.load(saved(tmp_path / "mine.cu", kernel_text())), {})
    assert not list(temporary.iterdir())


def test_every_type_arrives_as_it_was_passed(backend: Backend, tmp_path: Path) -> None:
    """Those that only CUDA has with its headers."""
    kinds, head = list(signature.SCALARS), "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"
    if backend.info.backend == "opencl":
        kinds, head = [kind for kind in kinds if not kind.startswith("__")], ""
    assert arrived(backend, tmp_path, kinds, head) == dict.fromkeys(kinds, 1.0)


def test_parameters_reach_the_kernel(backend: Backend, tmp_path: Path) -> None:
    body = "{ C[threadIdx.x] = TILE * 1000 + blockDim.x * 10 + threadIdx.x; }"
    kernel = catalogue.load(saved(tmp_path / "mine.cu", kernel_text(body=body)))
    program = backend.build(kernel, {"TILE": 77})
    found = launched(backend, program, 4, 1, 1, 1, launch=Launch((1, 1, 1), (4, 1, 1)))
    assert found == [77040, 77041, 77042, 77043]


@given(data=st.data())
def test_a_device_judges_as_the_host_does(kernels: DeviceKernels, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(1, 1, 1), (7, 5, 3), (33, 17, 40), (300, 130, 40)]))
    problem = Problem(*shape, inputs=data.draw(st.sampled_from(["uniform", "signed"])))

    def spoil(C: Any) -> None:
        for _ in range(data.draw(st.integers(0, 3))):
            place = data.draw(st.integers(0, C.size - 1))
            values = [np.nan, np.inf, -np.inf, 0.0, 1e30, 0.5, -0.0]
            C.flat[place] = data.draw(st.sampled_from(values))

    check_trials(kernels, problem, spoil)
