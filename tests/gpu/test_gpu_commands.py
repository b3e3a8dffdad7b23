"""Commands on a real GPU: verdicts for programs, the doctor, foreign files, compiled kernels."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import compiled as files
from support import record_files
from support.cli import QUICK, Matbench, last_run, outside, ran
from support.functions import measured
from support.kernels import KernelWriter, changed, kernel_text, saved
from support.optional import present
from support.paths import FOREIGN, FUNCTIONS, ROOT, blocks
from support.products import FILES
from support.signatures import generated
from support.toml import table

import matbench
import matbench as api
from matbench import backends, workloads
from matbench.analysis.limits import of_clock
from matbench.backends.cuda import compilation, libcuda
from matbench.backends.protocol import Backend
from matbench.bench.options import Deadlines, Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import MatbenchError
from matbench.features.explain import architectures, counters, limits
from matbench.features.explain.occupancy import occupancy
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.model import DeviceInfo, Kernel, Launch, Problem, Resources
from matbench.records.environment import last_run_path
from matbench.records.outcome import Outcome
from matbench.worker.worker import WorkerPool

pytestmark = pytest.mark.gpu


@pytest.mark.alone  # with a deadline that the one that hangs is to miss, and no other
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
        [key] = [key for key in judge.pool.builders.futures if key[1][0] == "ahead"]
        assert judge.run(kernel_text("ahead")).status == "measured"
        assert judge.pool.builders.futures[key].done()
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
@pytest.mark.parametrize(
    "source",
    [files.COUNTING, files.SOURCE.replace("alpha * sum", "alpha * sum * 1.0001f")],
    ids=["right only once", "wrong arithmetic"],
)
def test_what_is_wrong_is_so(tmp_path: Path, matbench: Matbench, name: str, source: str) -> None:
    outcomes = run(files.make(tmp_path / name, source, arch()), matbench)
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
    [environment], outcomes = record_files.read(last_run_path())
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
            near = backends.near(listed.read_text()) & known
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


# -- explain -------------------------------------------------------------------------------------


KERNELS = {kernel.name: kernel for kernel in FILES if not kernel.on_host}
THREADS = (1, 32, 64, 96, 128, 160, 256, 384, 512, 768, 1000, 1024)
SHARED_BYTES = (0, 1, 1024, 8000, 16384, 49152, 49153, 65536, 100_000, 113 * 1024, 227 * 1024)


@pytest.fixture(scope="module")
def architecture(info: DeviceInfo) -> architectures.Architecture:
    found = architectures.of_capability(info.compute_capability)
    assert found is not None, f"{info.compute_capability} is not in the table"
    return found


def test_the_limits_are_known(info: DeviceInfo, architecture: architectures.Architecture) -> None:
    expected = architectures.limits(architecture)
    assert {name: info.limits[name] for name in expected} == expected


def counted(given: Resources, launch: Launch, architecture: architectures.Architecture) -> int:
    """The resident blocks by the table of architectures."""
    shared_bytes = (given.static_shared_bytes or 0) + launch.shared_bytes
    threads = launch.threads_per_block
    found = occupancy(architecture, threads, registers=given.registers, shared_bytes=shared_bytes)
    return found.blocks


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_the_driver_counts_as_many_resident_blocks(
    kernel: Kernel, cuda: Backend, architecture: architectures.Architecture
) -> None:
    (problem,) = parse_problems("300", workloads.workload_of(kernel))
    case = sweep.case(kernel, problem, next(sweep.parameter_sets(kernel, {})), cuda.info)
    if case.skip is not None or case.launch is None:
        pytest.skip(str(case.skip))
    program = cuda.build(kernel, case.params)
    by_table = counted(program.resources, case.launch, architecture)
    assert program.resident_blocks(case.launch) == by_table, f"{case.label}: {program.resources}"


@pytest.mark.parametrize("name", ["tiled-dynamic", "thread-tile-2d"])
def test_the_driver_agrees_for_any_block(
    name: str, cuda: Backend, architecture: architectures.Architecture
) -> None:
    """Also for blocks that the kernel is not launched with: only their size counts."""
    kernel = KERNELS[name]
    params = next(iter(sweep.parameter_sets(kernel, {})))
    program = cuda.build(kernel, params)
    given = program.resources
    apart = {}
    for threads in THREADS:
        for shared_bytes in SHARED_BYTES:
            launch = Launch(grid=(1, 1, 1), block=(threads, 1, 1), shared_bytes=shared_bytes)
            driver, by_table = program.resident_blocks(launch), counted(given, launch, architecture)
            if driver is None and by_table == 0:
                continue  # the driver rejects such a block
            if driver != by_table and threads <= (given.max_threads_per_block or 0):
                apart[threads, shared_bytes] = driver, by_table
    assert apart == {}


def test_nvcc_alone_gives_what_the_driver_says(cuda: Backend, info: DeviceInfo) -> None:
    kernel, params = KERNELS["tiled"], {"TILE": 16}
    capability = present(info.compute_capability)
    compiled = compilation.compiled_by_nvcc(capability, kernel, params, Cache()).resources
    built = cuda.build(kernel, params).resources
    assert (compiled.registers, compiled.static_shared_bytes) == (
        built.registers,
        built.static_shared_bytes,
    )


@pytest.mark.alone
def test_limits_lie_below_what_the_clock_allows(cuda: Backend) -> None:
    found = limits.measured(Session(cuda, Cache(), Options()), anew=True)
    allowed = present(of_clock(cuda.info, found.sm_mhz))
    assert 0.6 <= found.fma_flop_per_s / allowed <= 1.02, found
    assert found.copy_bytes_per_s > 1e11, found
    assert 1 <= found.read_bytes_per_s / found.copy_bytes_per_s <= 1.3, found  # not from a cache


@pytest.mark.alone
def test_a_kernel_is_explained(matbench: Matbench, info: DeviceInfo) -> None:
    asked = "tiled", "--sizes", "1000", "--set", "TILE=4,16,32"
    result = matbench("explain", *asked, "--format", "json")
    _, found = json.loads(result.stdout)
    here = {fit["params"]["TILE"]: fit for fit in found["fits"] if fit["here"]}
    assert [*here] == [4, 16, 32]
    assert all(fit["registers"] > 0 for fit in here.values())
    chosen = here[found["case"]["params"]["TILE"]]
    assert chosen["driver_blocks"] == chosen["occupancy"]["blocks"]
    assert found["clock_flop_per_s"] > found["operations_per_s"]
    assert found["outcome"]["build"]["resources"]["registers"] > 0


@pytest.mark.alone
@pytest.mark.skipif(shutil.which("ncu") is None, reason="no ncu on PATH")
def test_counters_count_at_least_the_inputs(info: DeviceInfo) -> None:
    case = sweep.case(KERNELS["tiled"], Problem(1000, 1000, 1000), {"TILE": 16}, info)
    try:
        found = counters.count(info, case, 300)
    except MatbenchError as error:
        if "NVGPUCTRPERM" in str(error):
            pytest.skip(str(error))
        raise
    assert present(found.dram_read_bytes) >= 0.9 * 2 * 1000 * 1000 * 4
    assert present(found.shared_bytes) > 0
    assert 0.1 < present(found.achieved_occupancy) <= 1


# -- functions -----------------------------------------------------------------------------------


FILE = FUNCTIONS / "on_gpu.py"


@pytest.fixture(scope="module")
def judge() -> Iterator[api.Judge]:
    with api.Judge("1000", backend="cuda", timeout=60) as judge:
        yield judge


@pytest.mark.parametrize("cheat", ["lazy", "recorded"])
def test_work_that_is_put_off_or_denied_is_timed(cheat: str, judge: api.Judge) -> None:
    denied, honest = (judge.run(f"{FILE}::{name}") for name in (f"cheat_{cheat}", "honest"))
    assert denied.status == "wrong" or present(denied.median_ns) > 0.8 * present(honest.median_ns)


def test_honesty_between_two_that_patch_it_is_as_alone(matbench: Matbench) -> None:
    names = ("cheat_events", "honest", "cheat_tf32")
    together = [f"{FILE}::{name}" for name in names]
    matbench("run", *together, "--sizes", "1000", "--backend", "cuda", code=1)
    by_name = {outcome.case.kernel: outcome for outcome in last_run()}
    matbench("run", f"{FILE}::honest", "--sizes", "1000", "--backend", "cuda")
    [alone] = last_run()
    assert by_name["honest"].status == alone.status == "measured"
    assert by_name["honest"].accuracy == alone.accuracy
    assert by_name["cheat_events"].status == by_name["cheat_tf32"].status == "wrong"


DECLARED = Path(__file__).with_name("declared.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("function", ["bfloat16", "transposed", "batched", "by_columns"])
def test_a_function_gets_its_declaration(function: str, judge: api.Judge, tmp_path: Path) -> None:
    file = saved(tmp_path / "declared.py", DECLARED)
    verdict = judge.run(f"{file}::{function}", sizes="96x80x64")
    assert (verdict.status, verdict.reason) == ("measured", None)


def test_the_example_of_the_documentation(judge: api.Judge, tmp_path: Path) -> None:
    """At one size, which no block divides: Triton compiles anew for each block, and once more for
    sizes that are multiples of 16."""
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    example, *_ = blocks(page, "python")
    file = saved(tmp_path / "product.py", example)
    verdict = judge.run(f"{file}::multiply")
    assert (verdict.status, verdict.reason) == ("measured", None)
    assert {case.case.params["BLOCK"] for case in verdict.cases} == {32, 64}
    saved(file, changed(example, (', input_precision="ieee"', ""), ("[32, 64]", "[32]")))
    default = judge.run(f"{file}::multiply")
    assert "as exact as TF32 inputs" in present(default.reason)


@pytest.mark.alone
def test_a_library_call_is_as_fast_as_the_baseline(judge: api.Judge, tmp_path: Path) -> None:
    file = saved(tmp_path / "declared.py", DECLARED)
    compared = judge.compare("cublas-bf16", f"{file}::bfloat16", sizes="4096")
    [record] = compared.records
    # Where the device's clock swings, the interval is wide.
    low, high = present(present(record.comparison).interval)
    assert low <= 1.02, record
    assert high >= 0.98, record


# -- on the host, which launch kernels or call a library -----------------------------------------


HONEST = table(Path(__file__).with_name("honest.toml"))


def load(entry: str, **given: Any) -> Kernel:
    file = FUNCTIONS / ("host_library.cu" if entry == "library" else "host_on_gpu.cu")
    return catalogue.load(file, given={"entry": f"host {entry}", "sweep": {"END": [1]}} | given)


@pytest.mark.parametrize("entry", HONEST)
def test_an_honest_function_is_measured(entry: str) -> None:
    outcome = measured(load(entry, **HONEST[entry]), "1000", backend="cuda")
    assert (outcome.status, outcome.reason) == ("measured", None)
    assert present(outcome.host_ns) > 1e3


@pytest.mark.parametrize("entry", HONEST)
def test_one_that_leaves_out_a_term_is_wrong(entry: str) -> None:
    sweep = {**HONEST[entry].get("sweep", {}), "END": [2]}
    kernel = load(entry, **HONEST[entry] | {"sweep": sweep})
    assert measured(kernel, "1000x1000x256", backend="cuda").status == "wrong"


def test_alpha_is_read_on_the_host() -> None:
    kernel = load("launchers::scaled<float, ROWS>", **HONEST["launchers::scaled<float, ROWS>"])
    outcome = measured(kernel, "500x300x400", backend="cuda", factors={"alpha": 2.5})
    assert (outcome.status, outcome.reason) == ("measured", None)


@pytest.mark.alone
def test_a_library_call_of_a_host_is_as_fast_as_the_baseline(tmp_path: Path) -> None:
    file = saved(tmp_path / "library.cu", (FUNCTIONS / "host_library.cu").read_text())
    saved(file.with_suffix(".toml"), 'entry = "host library"\nlink = ["cublas"]\nsweep.END = [1]\n')
    with api.Judge("4096", backend="cuda", timeout=120) as judge:
        compared = judge.compare("cublas", file)
    [ratio] = compared.ratios
    assert ratio == pytest.approx(1, abs=0.02)


SUBMISSIONS = sorted(
    path
    for path in (ROOT / "tests" / "kernels" / "submissions").glob("*/*")
    if path.name != "gemm.json" and path.suffix in (".py", ".cu", ".json")
)


@pytest.mark.parametrize("file", SUBMISSIONS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_submissions_have_the_verdicts_that_they_should(matbench: Matbench, file: Path) -> None:
    """In the forms of other evaluators, at sizes whose sides differ. Those that are wrong pass the
    checks of their own evaluators, but for one that takes M, N and K as BLAS does."""
    is_right = file.parent.name == "right"
    sizes = "256x512x256" if file.suffix == ".json" else "256x384x512"
    matbench("run", file, "--backend", "cuda", "--sizes", sizes, *QUICK, code=int(not is_right))
    [outcome] = last_run()
    assert outcome.status == ("measured" if is_right else "wrong"), outcome.reason
    assert not (is_right and outcome.reason)
