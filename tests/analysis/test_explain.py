"""`matbench explain`, as it prints: the lecture's and the notes' numbers, occupancy, and words."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result
from conftest import KernelWriter, Matbench, kernel_text
from support.nvcc import find_nvcc

from matbench import backends
from matbench.analysis import explain
from matbench.kernelfile import catalogue, sweep
from matbench.measure import observer
from matbench.measure.counters import Counters
from matbench.measure.limits import Limits
from matbench.model import DeviceInfo, Outcome, Problem, Resources

KERNELS = catalogue.Catalogue(catalogue.builtin())
LIMITS = Limits(
    device="NVIDIA H200",
    driver="",
    copy_bytes_per_s=4e12,
    fma_flop_per_s=60e12,
    sm_mhz=1980,
    when="2026-11-21T00:00:00+00:00",
)
H200 = DeviceInfo(
    backend="cuda",
    index=0,
    name="NVIDIA H200",
    kind="gpu",
    driver="",
    toolkit="",
    limits=catalogue.DEVICE_LIMITS | {"multiprocessors": 132},
    compute_capability=(9, 0),
)


MIRROR = """\
// /// matbench
// name = "mirror"
// summary = "Each thread moves one word to the other end"
// workload = "reverse"
// args = ["A", "C", "N"]
// [launch]
// block = [64]
// grid = ["ceil_div(N, 64)"]
// ///

extern "C" __global__ void mirror(const int *A, int *C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[N - 1 - i] = A[i];
}
"""


@pytest.fixture
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any device."""

    def choose(backend: str, device: str | None) -> DeviceInfo:
        raise backends.NoDeviceError(
            "no device to run on; cuda: PyCUDA is missing; opencl: no device"
        )

    monkeypatch.setattr(backends, "choose", choose)


def lines_of(result: Result, start: str) -> list[list[str]]:
    """The words of all lines that start so."""
    return [line.split() for line in result.stdout.splitlines() if line.startswith(start)]


# -- what the sources say ------------------------------------------------------------------------


@pytest.fixture
def nvcc_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc where matbench looks for it, from the toolkit or from wheels."""
    found = find_nvcc()
    if found is None:
        pytest.skip("no nvcc, or no host compiler for it")
    monkeypatch.setenv("PATH", f"{found.parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("no_device", "nvcc_on_path")
def test_g80_at_16_holds_three_blocks_where_the_lecture_counts_eight(matbench: Matbench) -> None:
    """2 KB of tiles fit eight times into 16 KB, but 768 threads are three blocks of 256."""
    result = matbench("explain", "tiled", "--tile", "16", "--arch", "g80", "--format", "plain")
    assert (
        "G80 1.0, TILE = 16: 2,048 bytes of shared memory a block leave room for 8 blocks in "
        "16,384, 768 threads a multiprocessor hold 3 blocks of 256, and there can be 8 blocks. "
        "So 3 blocks resident, limited by threads: 24 of 24 warps." in result.stdout
    )
    # threads, shared memory, fit by threads, by shared memory, resident, occupancy, loads
    assert lines_of(result, "TILE=16") == [
        ["TILE=16", "256", "2,048", "3", "8", "3", "100%", "125,000,000", "threads"]
    ]
    assert "registers unknown: taken as not limiting" in result.stdout


def test_the_same_where_a_device_has_built_it(matbench: Matbench) -> None:
    result = matbench(
        "explain", "tiled", "--size", "64", "--tiles", "16", "--arch", "g80", "--format", "json"
    )
    _, found = json.loads(result.stdout)
    (width,) = found["widths"]
    assert width["shared_bytes"] == 2 * 16 * 16 * 4
    assert width["occupancy"]["by"] == {"threads": 3, "blocks": 8, "shared memory": 8}
    assert width["occupancy"]["blocks"] == 3
    assert width["occupancy"]["limiters"] == ["threads"]


@pytest.mark.usefixtures("no_device")
@pytest.mark.parametrize("arch", ["g80", "gt200"])
@pytest.mark.parametrize("name", ["tiled", "naive-2d"])
def test_a_tile_of_32_is_illegal_before_fermi(matbench: Matbench, arch: str, name: str) -> None:
    result = matbench("explain", name, "--tiles", "16,32", "--arch", arch, "--format", "plain")
    (row,) = lines_of(result, "TILE=32")
    assert " ".join(row).endswith("illegal: 32 × 32 = 1,024 threads a block > 512")


@pytest.mark.usefixtures("no_device")
def test_a_tile_of_32_is_legal_from_fermi_on(matbench: Matbench) -> None:
    result = matbench("explain", "naive-2d", "--tiles", "32", "--arch", "fermi", "--format", "json")
    (width,) = json.loads(result.stdout)[1]["widths"]
    assert width["reason"] is None
    assert width["occupancy"]["blocks"] == 1


@pytest.mark.usefixtures("no_device")
@pytest.mark.parametrize(
    ("name", "arguments", "loads"),
    [
        ("naive-2d", ["--tile", "16"], "2,000,000,000"),
        ("thread-1d", [], "2,000,000,000"),
        ("tiled", ["--tile", "8"], "250,000,000"),
        ("tiled", ["--tile", "16"], "125,000,000"),
        ("tiled", ["--tile", "32"], "62,500,000"),
        ("tiled-dynamic", ["--tile", "16"], "125,000,000"),
    ],
)
def test_tiles_divide_the_loads_by_their_width(
    matbench: Matbench, name: str, arguments: list[str], loads: str
) -> None:
    """The notes' 2·M·N·K loads of the direct kernel, and 2·M·N·K / T with tiles."""
    result = matbench(
        "explain", name, "--size", "1000", *arguments, "--arch", "kepler", "--format", "plain"
    )
    (row,) = lines_of(result, "modelled loads")
    assert row[2] == loads
    assert f"As modelled it moves {loads} elements" in result.stdout


@pytest.mark.usefixtures("no_device")
def test_the_least_traffic_stands_beside_the_modelled(matbench: Matbench) -> None:
    result = matbench(
        "explain", "naive-2d", "--size", "200x300x400", "--arch", "kepler", "--format", "json"
    )
    modelled = json.loads(result.stdout)[1]["modelled"]
    assert modelled["operations"] == 2 * 200 * 300 * 400
    assert modelled["least_bytes"] == 4 * (200 * 400 + 400 * 300 + 200 * 300)
    assert modelled["bytes"] == 4 * (2 * 200 * 300 * 400 + 200 * 300)
    assert modelled["intensity"] == pytest.approx(48e6 / modelled["bytes"])


@pytest.mark.usefixtures("no_device")
def test_a_claim_below_the_least_is_said_to_be_off(matbench: Matbench) -> None:
    """Tiles of 128 in a product of 64: the claim M·N·K / BN counts half a tile."""
    result = matbench(
        "explain", "thread-tile-2d", "--size", "64", "--arch", "kepler", "--format", "plain"
    )
    assert "at this size it does not hold" in result.stdout
    assert "times the least traffic" not in result.stdout


@pytest.mark.usefixtures("no_device")
def test_nothing_is_modelled_below_the_least(matbench: Matbench) -> None:
    result = matbench("explain", "tiled", "--size", "1", "--tile", "16", "--arch", "kepler")
    said = "Its model claims 4.5 B of traffic, but there are 12.0 B at least: at this size it does"
    assert said in result.stdout
    assert "modelled" not in result.stdout
    result = matbench(*("explain", "tiled", "--size", "1", "--arch", "kepler", "--format", "json"))
    found = json.loads(result.stdout)[1]
    assert found["modelled"]["bytes"] is None
    assert {width["modelled_loads"] for width in found["widths"]} == {None}


@pytest.mark.usefixtures("no_device")
def test_each_block_stores_its_part_where_the_host_finishes(matbench: Matbench) -> None:
    result = matbench("explain", "dot-tree", "--size", "33792", "--arch", "kepler")
    [row] = lines_of(result, "modelled stores")
    assert " ".join(row) == "modelled stores 32 elements: a partial result per block"
    result = matbench("explain", "dot-tree", "--size", "300", "--arch", "kepler")
    assert lines_of(result, "modelled stores")[0][2] == "2"


def test_whole_numbers_are_not_held_against_floating_point(matbench: Matbench) -> None:
    result = matbench("explain", "cubes-blocks", "--size", "100000", "--arch", "this")
    assert "Gop/s" in result.stdout or "Mop/s" in result.stdout
    assert "flop" not in result.stdout.lower()
    assert "multiply-adds" not in result.stdout
    assert "with whole numbers, whose own limit is not measured here" in result.stdout
    assert "┤" not in result.stdout


def test_the_largest_default_size_that_is_legal_is_explained(matbench: Matbench) -> None:
    """64 and 1048576 are the sizes; the first kernel takes 64 at most, the other both."""
    legal = matbench("explain", "reverse-static", "--arch", "g80,this").stdout
    assert legal.startswith("reverse-static at 64 on ")
    assert "illegal" not in legal
    assert matbench("explain", "reverse-direct", "--arch", "g80").stdout.startswith(
        "reverse-direct THREADS=256 at 1048576 on "
    )


@pytest.mark.usefixtures("no_device")
def test_a_limit_of_the_kernel_comes_before_those_of_devices(matbench: Matbench) -> None:
    found = matbench("explain", "reverse-static", "--size", "5000", "--arch", "g80").stdout
    assert "illegal: needs N <= 64 (N = 5000)" in found
    assert "threads a block >" not in found


# -- on a device ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed(matbench: Matbench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Result]:
    picture = tmp_path_factory.mktemp("plot") / "roof.svg"
    result = matbench(
        "explain", "tiled", "--size", "65", "--tiles", "4,16", "--plot", picture, "--arch",
        "gt200,this",
    )  # fmt: skip
    assert picture.read_text().startswith("<?xml")
    assert "measured rate" in picture.read_text()
    yield result


def test_a_case_is_measured_and_stands_under_its_roof(printed: Result, device: DeviceInfo) -> None:
    for text in ("●", "◇", "─", "measured time", "measured copy", "measured multiply-adds"):
        assert text in printed.stdout
    assert f"this: {device.label}" in printed.stdout
    words = printed.stdout.strip().splitlines()
    assert any("that multiply-adds alone reach here" in line for line in words)


def test_modelled_and_measured_never_share_a_name(printed: Result) -> None:
    names = [line.split("  ")[0].strip() for line in printed.stdout.splitlines()]
    facts = names[names.index("of the case") + 2 :]
    facts = facts[: facts.index("")]
    assert "modelled traffic" in facts
    assert "measured time" in facts
    assert len(facts) == len(set(facts))
    assert not {name.removeprefix("modelled ") for name in facts} & {
        name.removeprefix("measured ") for name in facts if name.startswith("measured ")
    }


def test_every_width_has_its_time_here(printed: Result) -> None:
    after = printed.stdout.split("this: ")[1]
    rows = [line.split() for line in after.splitlines() if line.startswith("TILE=")]
    assert [row[0] for row in rows] == ["TILE=4", "TILE=16"]
    assert all({"ns", "µs", "ms", "s"} & set(row) for row in rows)


def test_records_hold_all_of_it(matbench: Matbench, device: DeviceInfo) -> None:
    result = matbench("explain", "kahan", "--size", "33", "--tile", "8", "--format", "json")
    about, found = json.loads(result.stdout)
    assert about["type"] == "environment"
    assert found["type"] == "explanation"
    assert found["params"] == {"TILE": 8}
    assert msgspec.convert(found["problem"], Problem) == Problem(33, 33, 33)
    assert found["measured_ns"] > 0
    assert found["measured_operations_per_s"] == pytest.approx(
        2 * 33**3 / found["measured_ns"] * 1e9
    )
    assert found["limits"]["device"] == device.name
    here = [width for width in found["widths"] if width["here"]]
    assert {width["params"]["TILE"] for width in here} == {4, 8, 12, 16, 20, 24, 32}
    assert explain.Explanation.__struct_config__.tag == "explanation"
    assert msgspec.convert(found, explain.Explanation).kernel == "kahan"


def test_a_kernel_that_this_device_cannot_run_is_explained_elsewhere(
    matbench: Matbench, device: DeviceInfo
) -> None:
    if device.backend == "cuda":
        pytest.skip("this device can")
    result = matbench("explain", "warp-tiled", "--size", "33", "--format", "plain")
    assert "What bounds it is not known: skipped, needs CUDA" in result.stdout
    assert "Kepler 3.0" in result.stdout
    assert "needs sm_80" in result.stdout


def test_csv_has_a_line_for_each_width(matbench: Matbench) -> None:
    result = matbench(
        "explain", "tiled", "--size", "33", "--tiles", "8,32", "--arch", "g80", "--format", "csv"
    )
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["params"], row["resident_blocks"]) for row in rows] == [
        ("TILE=8", "8"),
        ("TILE=32", ""),
    ]


def test_a_kernel_without_tiles_is_explained_over_what_it_sweeps(matbench: Matbench) -> None:
    result = matbench(
        "explain", "block-1d", "--size", "33", "--set", "THREADS=64,1024", "--arch", "g80",
        "--format", "plain",
    )  # fmt: skip
    assert [row[0] for row in lines_of(result, "THREADS=")] == ["THREADS=64", "THREADS=1024"]
    assert "illegal: 1,024 threads a block > 512" in result.stdout


def test_a_wrong_kernel_has_no_time_and_is_no_success(
    matbench: Matbench, write_kernel: KernelWriter
) -> None:
    body = """
    extern "C" __global__ void ENTRY(const float *A, const float *B, float *C, int M, int N, int K)
    {
        C[0] = A[0] * B[0];
    }
    """
    path = write_kernel("faulty", body=body)
    result = matbench("explain", path, "--size", "33", "--tiles", "8", code=1)
    assert "wrong: " in result.stdout
    assert "What bounds it is not known: wrong, " in result.stdout


def test_a_claim_of_no_traffic_is_refused(matbench: Matbench, tmp_path: Path) -> None:
    path = tmp_path / "idle.cu"
    text = kernel_text("idle").replace(
        "\n// ///\n", '\n// [model]\n// global_loads = "0 - M * N"\n// ///\n', 1
    )
    path.write_text(text, encoding="utf-8")
    result = matbench("explain", path, "--size", "33", code=2)
    assert "[model] claims 0 bytes of traffic" in result.stderr
    assert len(result.stderr.splitlines()) == 1


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tiled", "--arch", "keppler"], "did you mean 'kepler'?"),
        (["tiled", "--size", "10,20"], "one size at a time"),
        (["tiled", "--tile", "8,16"], "one value; --tiles takes several"),
        (["thread-1d", "--tile", "8"], "thread-1d has no TILE"),
        (["numpy"], "is a library's product"),
        (["host-loop"], "runs on the host alone"),
        (["tiled", "--plot", "roof.pdf"], "ends in .svg, .png"),
        (["tild"], "did you mean 'tiled'?"),
    ],
)
def test_bad_input_is_one_line(matbench: Matbench, arguments: list[str], message: str) -> None:
    result = matbench("explain", *arguments, code=2)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.usefixtures("no_device")
def test_without_a_device_this_alone_explains_nothing(matbench: Matbench) -> None:
    result = matbench("explain", "tiled", "--arch", "this", code=2)
    assert "no device to run on" in result.stderr


@pytest.mark.usefixtures("no_device")
def test_without_a_device_nothing_is_said_of_what_bounds_it(matbench: Matbench) -> None:
    result = matbench("explain", "naive-2d", "--tile", "16", "--format", "plain")
    assert "nothing is measured: no device" in result.stderr
    assert "What bounds it is not known: no device is at hand." in result.stdout
    assert "measured time" not in result.stdout
    assert "┤" not in result.stdout


def test_counters_without_ncu_are_one_line(
    matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer.shutil, "which", lambda *_, **__: None)
    result = matbench("explain", "tiled", "--counters", code=2)
    assert "--counters needs ncu" in result.stderr
    assert len(result.stderr.splitlines()) == 1


# -- in words ------------------------------------------------------------------------------------


def outcome(case: Any, median_ns: float, registers: int = 32) -> Outcome:
    return Outcome(
        kernel=case.kernel.name,
        sha256="",
        group="tutorial",
        params=case.params,
        problem=case.problem,
        backend="cuda",
        device=H200.name,
        device_kind="gpu",
        launch=case.launch,
        status="measured",
        median_ns=median_ns,
        timing_mode="cold",
        resources=Resources(registers=registers, static_shared_bytes=8192, spilled_bytes=0),
    )


def words_of(
    n: int, median_ns: float, *, name: str = "tiled", counted: Counters | None = None
) -> str:
    """What is said of a kernel with T = 32 at n, on an H200 that took so long."""
    case = sweep.case(KERNELS.get(name), Problem(n, n, n), {"TILE": 32}, H200)
    done = outcome(case, median_ns)
    builds = explain.Builds(case.kernel, [done], None)  # type: ignore[arg-type]
    here = explain.width_here(case, H200, done, 2, builds)
    return "\n".join(explain.explained(case, H200, done, LIMITS, [here], counted).words)


def test_near_the_rate_of_multiply_adds_arithmetic_bounds_it() -> None:
    words = words_of(4096, 2 * 4096**3 / 50e12 * 1e9)
    assert "50.0 TFLOP/s of the 60.0 TFLOP/s that multiply-adds alone reach here (83%)" in words
    assert "Arithmetic bounds it." in words
    assert "Memory bounds it" not in words


def test_faster_than_the_limit_is_said_not_to_be_held_by_it() -> None:
    words = words_of(4096, 2 * 4096**3 / 300e12 * 1e9)
    assert "that limit is not its own" in words
    assert "bounds it" not in words


def test_when_the_least_traffic_takes_the_bandwidth_memory_bounds_it() -> None:
    words = words_of(64, 3 * 64 * 64 * 4 / 3.6e12 * 1e9)
    assert "the least traffic would take 90% of a copy's bandwidth" in words
    assert "Memory bounds it: no kernel moves less." in words


def test_a_cache_that_holds_everything_is_no_memory() -> None:
    case = sweep.case(KERNELS.get("tiled"), Problem(64, 64, 64), {"TILE": 32}, H200)
    done = msgspec.structs.replace(outcome(case, 13.7), timing_mode="hot")
    with_cache = msgspec.structs.replace(
        H200, properties={"last-level cache (bytes)": 50 * 1024 * 1024}
    )
    words = "\n".join(explain.explained(case, with_cache, done, LIMITS, []).words)
    assert "the last-level cache holds all of it" in words
    assert "bounds it" not in words


def test_tensor_cores_are_not_held_against_multiply_adds(write_kernel: KernelWriter) -> None:
    kernel = catalogue.load(write_kernel("fragments"))
    source = kernel.source + '\n// asm volatile("mma.sync.aligned.m16n8k8")\n'
    kernel = msgspec.structs.replace(kernel, source=source)
    case = sweep.case(kernel, Problem(4096, 4096, 4096), {"TILE": 8}, H200)
    words = "\n".join(
        explain.explained(case, H200, outcome(case, 2 * 4096**3 / 50e12 * 1e9), LIMITS, []).words
    )
    assert "Tensor cores compute it, whose own limit is not measured here" in words
    assert "bounds it" not in words


@pytest.mark.usefixtures("no_device")
def test_a_dot_product_is_explained_by_its_own_measure(matbench: Matbench) -> None:
    result = matbench(
        "explain", "dot-tree", "--size", "2^20", "--arch", "kepler", "--format", "json"
    )
    modelled = json.loads(result.stdout)[1]["modelled"]
    assert modelled["operations"] == 2 * 2**20
    assert modelled["loads"] == 2 * 2**20
    assert modelled["least_bytes"] == 4 * (2 * 2**20 + 1)


def test_what_computes_nothing_has_no_roofline(matbench: Matbench, tmp_path: Path) -> None:
    path = tmp_path / "mirror.cu"
    path.write_text(MIRROR, encoding="utf-8")
    picture = tmp_path / "roof.svg"
    result = matbench("explain", path, "--size", "4099", "--arch", "this", "--plot", picture)
    assert "It computes nothing; the least traffic would take" in result.stdout
    assert "┤" not in result.stdout
    assert "not drawn: no floating-point rate was measured" in result.stderr
    assert not picture.exists()


def test_in_between_it_says_what_caches_answer_and_no_more() -> None:
    words = words_of(4096, 23e6, name="naive-2d")
    assert "would need 6.0 times a copy's bandwidth, so caches answer at least 83% of it" in words
    assert "is not seen from here" in words
    assert "bounds it" not in words


def test_far_from_every_limit_it_says_so() -> None:
    words = words_of(4096, 16e6)
    assert "Neither limit is reached; what holds it back is not seen from here." in words
    assert "100% of the warps that a multiprocessor can hold are resident." in words
    assert "bounds it" not in words


def test_counters_settle_whether_memory_bounds_it() -> None:
    counted = Counters(dram_read_bytes=50e9, dram_written_bytes=6e9, achieved_occupancy=0.97)
    words = words_of(4096, 16e6, counted=counted)
    assert "its measured DRAM traffic is 88% of a copy's bandwidth" in words
    assert "Memory bounds it." in words


def test_a_launch_with_few_blocks_leaves_multiprocessors_idle() -> None:
    words = words_of(256, 20e3)
    assert "The launch has 64 blocks for 132 multiprocessors: 68 of them have nothing" in words


def test_the_driver_stands_beside_the_table_where_they_differ() -> None:
    case = sweep.case(KERNELS.get("tiled"), Problem(64, 64, 64), {"TILE": 32}, H200)
    done = outcome(case, 1e6)
    builds = explain.Builds(case.kernel, [done], None)  # type: ignore[arg-type]
    for driver, shown in ((2, "2"), (1, "2 (driver: 1)")):
        here = explain.width_here(case, H200, done, driver, builds)
        found = explain.explained(case, H200, done, LIMITS, [here])
        (row,) = explain.as_report(found, []).sections[1].rows
        assert shown in row.cells


def test_counted_traffic_stands_beside_the_model() -> None:
    case = sweep.case(KERNELS.get("tiled"), Problem(64, 64, 64), {"TILE": 32}, H200)
    done = outcome(case, 1e6)
    counted = Counters(
        dram_read_bytes=98304.0, dram_written_bytes=0.0, shared_bytes=4096.0, bank_conflicts=7.0,
        achieved_occupancy=0.5,
    )  # fmt: skip
    found = explain.explained(case, H200, done, LIMITS, [], counted)
    facts = {name: (figure, remark) for name, figure, remark in explain.facts(found)}
    assert facts["measured DRAM traffic"] == ("98.3 kB", "2.00 of the least, 1.20 of the modelled")
    assert facts["measured bank conflicts"][0] == "7"
    assert facts["measured occupancy"][0] == "50%"
    assert facts["measured shared memory"][0] == "4.10 kB"
