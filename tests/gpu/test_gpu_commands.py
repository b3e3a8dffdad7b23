"""Commands on a real GPU: verdicts for programs, the doctor, foreign files, compiled kernels."""

from __future__ import annotations

import os
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from support import compiled as files
from support.cli import QUICK, Matbench, last_run, outside, ran
from support.kernels import KernelWriter, kernel_text, saved
from support.paths import FOREIGN
from support.signatures import generated

import matbench
from matbench import backends
from matbench.backends import host
from matbench.backends.cuda import libcuda
from matbench.bench.options import Deadlines, Options
from matbench.model import DeviceInfo
from matbench.records import reading
from matbench.records.environment import last_run_path
from matbench.records.outcome import Outcome
from matbench.worker.worker import WorkerPool

pytestmark = pytest.mark.gpu


def test_kernels_of_all_kinds_have_the_verdicts_that_they_should(benchmarked: Any) -> None:
    given = benchmarked(20)
    with matbench.Judge("256", backend="cuda", timeout=8) as judge:
        verdicts = list(judge.run_all(one.text for one in given))
    told = [
        (one.status, verdict.status, verdict.reason)
        for one, verdict in zip(given, verdicts, strict=True)
    ]
    assert [one for one in told if one[0] != one[1]] == []
    assert all(verdict.median_ns for verdict in verdicts if verdict.status == "measured")


def test_kernels_are_compiled_ahead_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    with matbench.Judge("256", backend="cuda") as judge:
        judge.compile_ahead(kernel_text("ahead"))
        [key] = [key for key in judge._pool.builders.futures if key[1][0] == "ahead"]
        assert judge.run(kernel_text("ahead")).status == "measured"
        assert judge._pool.builders.futures[key].done()
        assert judge.compare("naive-2d", "tiled").verdict in ("FASTER", "SLOWER", "SAME")


# -- doctor --------------------------------------------------------------------------------------


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
    uuids = {libcuda.uuid(index) for index in range(cuda.Device.count())}
    assert uuids == {*ran("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader").split()}


def test_choosing_the_gpu_loads_no_bindings() -> None:
    code = (
        "import sys; from matbench import backends; backends.devices('cuda'); print(*sys.modules)"
    )
    loaded = ran(sys.executable, "-c", code).split()
    assert "pycuda.driver" in loaded
    assert "cuda.bindings" not in loaded


# -- adopt ---------------------------------------------------------------------------------------


def test_a_template_in_a_header_is_for_its_includer(tmp_path: Path, matbench: Matbench) -> None:
    shutil.copy(FOREIGN / "sgemm-coalesced.cuh", tmp_path)
    path = saved(
        tmp_path / "runner.cu", '#include "sgemm-coalesced.cuh"\nint main() { return 0; }\n'
    )
    matbench("adopt", path, "--backend", "cuda")
    matbench("run", path, "--sizes", "64", "--backend", "cuda", *QUICK)
    assert [outcome.status for outcome in last_run()] == ["measured"]


def test_generated_signatures_are_adopted(tmp_path: Path, matbench: Matbench) -> None:
    for seed in range(2000, 2004):
        path = saved(tmp_path / f"kernel-{seed}.cu", generated(seed))
        matbench("adopt", path, "--backend", "cuda")


# -- one kernel as CUDA C, PTX and a cubin -------------------------------------------------------


FORMS = ("gemm.cu", "gemm.ptx", "gemm.cubin")


def arch() -> str:
    """The architecture of the GPU at hand."""
    major, minor = backends.choose("cuda", None).compute_capability or (0, 0)
    return f"sm_{major}{minor}"


def run(path: Path, matbench: Matbench, *more: str) -> list[Outcome]:
    matbench("run", path, "--backend", "cuda", "--sizes", "64,67x43x59", *QUICK, *more, code=None)
    return last_run()


@pytest.mark.parametrize("more", [(), ("--alpha", "1.5", "--beta", "0.25")])
def test_all_forms_are_measured(tmp_path: Path, matbench: Matbench, more: tuple[str, ...]) -> None:
    errors = []
    for name in FORMS:
        outcomes = run(files.make(tmp_path / name, arch=arch()), matbench, *more)
        assert [outcome.status for outcome in outcomes] == ["measured", "measured"]
        assert all(o.build and o.build.resources and o.build.resources.registers for o in outcomes)
        errors.append([o.accuracy.max_rel_err for o in outcomes if o.accuracy is not None])
    assert errors[0] == errors[1] == errors[2]


@pytest.mark.parametrize("name", FORMS)
def test_wrong_arithmetic_is_wrong(tmp_path: Path, matbench: Matbench, name: str) -> None:
    source = files.SOURCE.replace("alpha * sum", "alpha * sum * 1.0001f")
    outcomes = run(files.make(tmp_path / name, source, arch()), matbench)
    assert {outcome.status for outcome in outcomes} == {"wrong"}


@pytest.mark.parametrize("name", FORMS)
def test_other_parameters_are_refused(tmp_path: Path, matbench: Matbench, name: str) -> None:
    path = files.make(tmp_path / name, arch=arch())
    table = path.with_suffix(".toml")
    table.write_text(table.read_text().replace('"beta", ', ""))
    refused = matbench("run", path, "--backend", "cuda", code=2).stderr
    assert "args: 7 arguments, but gemm has 8 parameters" in refused


@pytest.mark.parametrize("name", FORMS)
def test_what_is_right_only_once_is_wrong(tmp_path: Path, matbench: Matbench, name: str) -> None:
    outcomes = run(files.make(tmp_path / name, files.COUNTING, arch()), matbench)
    assert {outcome.status for outcome in outcomes} == {"wrong"}


def test_they_are_compared_and_checked(tmp_path: Path, matbench: Matbench) -> None:
    first, second = (files.make(tmp_path / name, arch=arch()) for name in FORMS[1:])
    compared = matbench(
        "compare", first, second, "--backend", "cuda", "--sizes", "256", "--max-time", "1"
    ).stdout
    assert "gemm.cubin" in compared
    assert any(verdict in compared for verdict in ("SAME", "FASTER", "SLOWER", "UNDECIDED"))
    checked = matbench("check", second, "--quick", "--backend", "cuda").stdout
    assert "gemm.cubin" in checked
    graded = matbench("grade", first, "--backend", "cuda").stdout
    assert "gemm.ptx" in graded


# -- several GPUs ----------------------------------------------------------------------------------


SHORT = ("--set", "TILE=16", "--no-blocks", "--max-time", "0.1")


@pytest.fixture(scope="module")
def several(own_folders: None) -> list[DeviceInfo]:
    """The CUDA devices; without any these tests fail, because they were requested."""
    found = backends.devices("cuda")
    if len(found) < 2:
        pytest.skip("needs two CUDA devices")
    return found


def test_each_size_is_measured_on_one_gpu(matbench: Matbench, several: list[DeviceInfo]) -> None:
    sizes = [str(64 * (number + 1)) for number in range(3 * len(several))]
    words = ("run", "tiled", "naive-2d", "--sizes", ",".join(sizes), *SHORT)
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
    words = ("run", "naive-2d", "tiled", path, "--sizes", "64,65,66,67", *SHORT)
    matbench(*words, "--backend", "cuda", "--device", "all", code=1)
    for outcome in last_run():
        expected = "failed" if outcome.case.kernel == "dies" else "measured"
        assert outcome.status == expected, outcome.reason
