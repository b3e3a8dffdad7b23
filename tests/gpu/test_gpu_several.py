"""Several CUDA devices at the same time; on a machine with one GPU these tests are skipped."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest
from support.cli import Matbench, last_run
from support.kernels import KernelWriter

from matbench import backends
from matbench.backends import host
from matbench.bench.options import Deadlines, Options
from matbench.model import DeviceInfo
from matbench.records import reading
from matbench.records.environment import last_run_path
from matbench.worker.worker import WorkerPool

pytestmark = pytest.mark.gpu

QUICK = ("--set", "TILE=16", "--no-blocks", "--max-time", "0.1")


@pytest.fixture(scope="module")
def several(own_folders: None) -> list[DeviceInfo]:
    """The CUDA devices; without any these tests fail, because they were requested."""
    found = backends.devices("cuda")
    if len(found) < 2:
        pytest.skip("needs two CUDA devices")
    return found


def test_each_size_is_measured_on_one_gpu(matbench: Matbench, several: list[DeviceInfo]) -> None:
    sizes = [str(64 * (number + 1)) for number in range(3 * len(several))]
    words = ("run", "tiled", "naive-2d", "--sizes", ",".join(sizes), *QUICK)
    matbench(*words, "--backend", "cuda", "--device", "all")
    [environment], outcomes = reading.read(last_run_path())
    addresses = {info.properties["PCI address"] for info in environment.devices}
    assert len(addresses) == len(several)
    found: dict[str, set[str]] = defaultdict(set)
    for outcome in outcomes:
        assert outcome.status == "measured", outcome.reason
        found[outcome.case.problem.size].add(outcome.case.device_id)
    assert list(map(len, found.values())) == [1] * len(sizes)
    assert set.union(*found.values()) == {info.properties["UUID"] for info in several}


def test_a_worker_runs_on_the_processors_next_to_its_gpu(several: list[DeviceInfo]) -> None:
    known = os.sched_getaffinity(0)
    with WorkerPool(Options(), Deadlines()) as pool:
        for info in several:
            address = str(info.properties["PCI address"]).lower()
            listed = Path("/sys/bus/pci/devices", address, "local_cpulist")
            if not listed.exists():
                pytest.skip("this system does not say which processors are next to a GPU")
            allowed = pool.worker(info).process.call(os.sched_getaffinity, 0)
            near = host.near(listed.read_text()) & known
            assert allowed == (near or known)


def test_a_kernel_that_loses_its_gpu_costs_its_case_only(
    matbench: Matbench, several: list[DeviceInfo], write_kernel: KernelWriter
) -> None:
    path = write_kernel("dies", body="{ *(volatile int *)0 = 1; }")
    words = ("run", "naive-2d", "tiled", path, "--sizes", "64,65,66,67", *QUICK)
    matbench(*words, "--backend", "cuda", "--device", "all", code=1)
    for outcome in last_run():
        expected = "failed" if outcome.case.kernel == "dies" else "measured"
        assert outcome.status == expected, outcome.reason
