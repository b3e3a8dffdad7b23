"""`matbench doctor` on a machine that can measure its GPU, and the driver's own answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from support.cli import Matbench, outside

from matbench import backends
from matbench.backends.cuda import libcuda

pytestmark = pytest.mark.gpu


def test_nothing_keeps_the_gpu_from_being_measured(matbench: Matbench) -> None:
    text = matbench("doctor").stdout
    assert "problem" not in text
    for info in backends.devices("cuda"):
        assert info.label in text
    assert "GPU 0 clocks" in text


def test_a_gpu_that_is_hidden_is_no_problem_of_its_own() -> None:
    assert "no GPU is visible" in outside("doctor", CUDA_VISIBLE_DEVICES="").stdout


def test_the_driver_says_the_same_as_pycuda_and_nvidia_smi() -> None:
    import pycuda.driver as cuda

    cuda.init()
    version = cuda.get_driver_version()
    assert libcuda.version() == (version // 1000, version % 1000 // 10)
    assert (libcuda.gpu_is_present(), libcuda.trouble()) == (True, None)
    if shutil.which("nvidia-smi") is None or "CUDA_VISIBLE_DEVICES" in os.environ:
        pytest.skip("needs nvidia-smi, and no hidden GPU")
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    uuids = {libcuda.uuid(index) for index in range(cuda.Device.count())}
    assert uuids == set(done.stdout.split())


def test_choosing_the_gpu_loads_no_bindings() -> None:
    code = (
        "import sys; from matbench import backends; backends.devices('cuda'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "pycuda.driver" in loaded
    assert "cuda.bindings" not in loaded
