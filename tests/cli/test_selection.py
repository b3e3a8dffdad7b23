"""The cases that a command line selects: kernels, files, groups, sizes, constants, inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import Matbench, Plan, last_run
from support.kernels import KernelWriter, kernel_text

from matbench import workloads
from matbench.kernelfile import catalogue
from matbench.model import DeviceInfo

TUTORIAL = {
    "thread-1d", "block-1d", "shared-row", "single-block", "naive-2d", "tiled", "tiled-dynamic",
    "kahan",
}  # fmt: skip


def test_a_bare_run_takes_the_tutorial(planned: Plan) -> None:
    outcomes = planned()
    assert {o.case.kernel for o in outcomes} >= TUTORIAL
    assert {o.case.group for o in outcomes} == {"tutorial"}
    assert {o.case.problem.size for o in outcomes} == {"256", "1000"}
    tiles = {o.case.params["TILE"] for o in outcomes if o.case.kernel == "tiled"}
    assert tiles == {8, 16, 32}
    assert {(o.case.problem.seed, o.case.problem.inputs) for o in outcomes} == {(0, "uniform")}


def test_groups(planned: Plan) -> None:
    kernels = [kernel for kernel in catalogue.builtin() if kernel.workload == "matmul"]
    every = {kernel.name: kernel.group for kernel in kernels}
    rungs = {kernel.name for kernel in kernels if kernel.rung}
    assert {"thread-1d", "tiled", "pipelined"} < rungs
    for group in ("tutorial", "ladder", "gallery", "baseline"):
        names = {name for name, of in every.items() if of == group}
        names |= rungs if group == "ladder" else set()
        assert {o.case.kernel for o in planned("--group", group, "--sizes", "8")} == names
    assert {o.case.kernel for o in planned("--group", "all", "--sizes", "8")} == set(every)
    assert {o.case.kernel for o in planned("numpy", "--group", "ladder", "--sizes", "8")} == {
        "numpy", *rungs
    }  # fmt: skip


def test_baselines_are_of_what_is_computed(planned: Plan) -> None:
    found = {o.case.kernel for o in planned("dot-tree", "tiled", "--baseline", "cublas*")}
    assert found >= {"dot-tree", "tiled", "cublas", "cublas-dot"}


def test_smoke_means_every_kernel_at_awkward_sizes(planned: Plan) -> None:
    outcomes = planned("--smoke")
    assert {o.case.kernel for o in outcomes} == {kernel.name for kernel in catalogue.builtin()}
    sizes = {o.case.problem.size for o in outcomes if o.case.problem.workload == "matmul"}
    assert sizes == {"1", "17", "33", "65x31x129"}
    assert {o.case.problem.workload for o in outcomes} == set(workloads.WORKLOADS)
    assert {o.case.params["TILE"] for o in outcomes if o.case.kernel == "tiled"} == {8, 16, 32}


def test_smoke_moves_to_the_nearest_sizes_that_a_kernel_allows(
    own_state: None, matbench: Matbench, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    """Also of one that takes only multiples of its tile; the others keep the awkward ones."""
    launch = """block = ["TILE", "TILE"]
grid = ["N // TILE", "M // TILE"]
where = ["M % TILE + N % TILE + K % TILE == 0"]"""
    path = write_kernel("tiles", launch=launch)
    matbench("run", "--smoke", path, "tiled", "--set", "TILE=16,48")
    found = {(o.case.kernel, o.case.params["TILE"], o.case.problem.size) for o in last_run()}
    sizes = {16: ("16", "32", "48", "80x32x144"), 48: ("48", "96x48x144")}
    assert found == {
        *(("tiled", tile, size) for tile in sizes for size in ("1", "17", "33", "65x31x129")),
        *(("tiles", tile, size) for tile, moved in sizes.items() for size in moved),
    }
    assert {o.status for o in last_run() if o.case.params["TILE"] == 16} == {"measured"}
    matbench("run", "--sizes", "17", path, "--set", "TILE=16", code=1)  # as it was asked for
    assert [o.status for o in last_run()] == ["skipped"]


# -- files ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with kernels of two workloads."""
    folder = tmp_path / "more"
    folder.mkdir()
    for name in ("mine", "other"):
        (folder / f"{name}.cu").write_text(kernel_text(name), encoding="utf-8")
    source = next(k for k in catalogue.builtin() if k.name == "reverse-direct").source
    turned = source.replace("reverse-direct", "turned").replace("reverse_direct", "turned")
    (folder / "turned.cu").write_text(turned, encoding="utf-8")
    return folder


def test_names_and_files(planned: Plan, folder: Path) -> None:
    def names(*arguments: str | Path) -> list[str]:
        return list(dict.fromkeys(o.case.kernel for o in planned("--sizes", "8", *arguments)))

    mine = folder / "mine.cu"
    assert names("--kernel", mine) == ["mine"]
    assert names("--kernel", mine, "--kernel", folder / "other.cu") == ["mine", "other"]
    assert sorted(names("--kernels-dir", folder)) == ["mine", "other", "turned"]
    assert names("--workload", "matmul", "--kernels-dir", folder) == ["mine", "other"]
    assert sorted(names("--kernels-dir", folder, "--kernel", mine)) == ["mine", "other", "turned"]
    assert names("tiled", "--kernel", mine) == ["tiled", "mine"]
    assert names("tiled", "tiled", "kahan") == ["tiled", "kahan"]
    assert names(mine) == ["mine"]


def test_names_choose_from_a_folder(planned: Plan, folder: Path) -> None:
    def names(*arguments: str) -> list[str]:
        found = planned(*arguments, "--kernels-dir", folder, "--sizes", "8")
        return list(dict.fromkeys(o.case.kernel for o in found))

    assert names("other") == ["other"]
    assert names("other", "tiled") == ["other", "tiled"]
    assert names("other", "--kernel", str(folder / "mine.cu")) == ["other", "mine"]


# -- sizes, inputs, constants --------------------------------------------------------------------


def test_sizes_seed_and_inputs(planned: Plan) -> None:
    found = planned("single-block", "--sizes", "3,2x3x4,3", "--seed", "7", "--inputs", "normal")
    assert [(o.case.problem.M, o.case.problem.N, o.case.problem.K) for o in found] == [
        (3, 3, 3),
        (2, 3, 4),
    ]
    assert {(o.case.problem.seed, o.case.problem.inputs) for o in found} == {(7, "normal")}


def test_several_kinds_of_inputs(planned: Plan) -> None:
    found = planned("single-block", "--sizes", "3,4", "--inputs", "normal, uniform,normal")
    assert [(o.case.problem.N, o.case.problem.inputs) for o in found] == [
        (3, "normal"), (3, "uniform"), (4, "normal"), (4, "uniform"),
    ]  # fmt: skip


def test_set_takes_the_place_of_a_kernels_own_values(planned: Plan) -> None:
    outcomes = planned("tiled", "thread-1d", "single-block", "--set", "TILE=4,8", "--sizes", "8")
    assert [(o.case.kernel, o.case.params) for o in outcomes] == [
        ("tiled", {"TILE": 4}), ("tiled", {"TILE": 8}), ("thread-1d", {"THREADS": 256}),
        ("single-block", {}),
    ]  # fmt: skip
    outcomes = planned(
        "thread-1d", "tiled", "--set", "THREADS=64,128", "--set", "TILE=4", "--sizes", "8"
    )
    assert [o.case.params for o in outcomes] == [{"THREADS": 64}, {"THREADS": 128}, {"TILE": 4}]
