"""What every backend does, on its first device: what it tells, memory, builds, arguments."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kernels import kernel_text, saved
from support.samples import check_trials
from support.sources import arrived, launched

from matbench import backends
from matbench.backends import Backend
from matbench.bench.device_kernels import DeviceKernels
from matbench.errors import BuildError, OutOfMemoryError
from matbench.kernelfile import catalogue, front_matter, signature
from matbench.model import Launch, Problem

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
    made = DeviceKernels(backend)
    yield made
    made.close()


def test_devices_say_all_that_the_tutorial_prints(backend: Backend) -> None:
    found = backends.devices(backend.info.backend)
    for number, device in enumerate(found):
        assert (device.backend, device.index) == (backend.info.backend, number)
        assert device.name
        assert device.driver
        assert device.toolkit
        assert device.limits.keys() == front_matter.DEVICE_LIMITS.keys()
        assert all(value > 0 for value in device.limits.values())
        assert device.properties.keys() >= TOLD
    kinds = [device.kind for device in found]
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
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
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
