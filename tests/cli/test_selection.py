"""The cases that a command line selects: kernels, files, groups, sizes, constants, inputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import QUICK, Matbench, Plan, last_run
from support.golden import TableRegression
from support.kernels import KernelWriter, kernel_text, text_of

from matbench import workloads
from matbench.cli.selection import KernelFiles
from matbench.kernelfile import catalogue

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
    for kernel, baseline in (("dot-tree", "cublas-dot"), ("tiled", "cublas")):
        found = {o.case.kernel for o in planned(kernel, "--baseline", "cublas*")}
        assert found >= {kernel, baseline}
        assert ("cublas-tf32" in found) == (kernel == "tiled")


def test_smoke_means_every_kernel_at_awkward_sizes(planned: Plan) -> None:
    outcomes = planned("--smoke")
    assert {o.case.kernel for o in outcomes} == {kernel.name for kernel in catalogue.builtin()}
    sizes = {o.case.problem.size for o in outcomes if o.case.problem.workload == "matmul"}
    assert sizes == {"1", "17", "33", "65x31x129"}
    assert {o.case.problem.workload for o in outcomes} == set(workloads.WORKLOADS)
    assert {o.case.params["TILE"] for o in outcomes if o.case.kernel == "tiled"} == {8, 16, 32}


@pytest.mark.usefixtures("scripted_device")
def test_smoke_moves_sizes(own_state: None, matbench: Matbench, write_kernel: KernelWriter) -> None:
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
    assert names(mine) == ["mine"]
    assert names(mine, folder / "other.cu") == ["mine", "other"]
    (folder / "notes.txt").write_text("no kernel")
    assert names(folder) == ["mine", "other", "turned"]
    assert sorted(names(folder, mine)) == ["mine", "other", "turned"]
    assert names("tiled", mine) == ["tiled", "mine"]
    assert names("tiled", "tiled", "kahan") == ["tiled", "kahan"]
    assert names(mine) == ["mine"]


# -- sizes, inputs, constants --------------------------------------------------------------------


def test_sizes_seed_and_inputs(planned: Plan) -> None:
    inputs = ("--inputs", "normal, uniform,normal")
    found = planned("single-block", "--sizes", "3,2x3x4,3", "--seed", "7", *inputs)
    assert [(o.case.problem.size, o.case.problem.inputs) for o in found] == [
        ("3", "normal"), ("3", "uniform"), ("2x3x4", "normal"), ("2x3x4", "uniform"),
    ]  # fmt: skip
    assert {o.case.problem.seed for o in found} == {7}


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


# Kernel files and what is given for them


#: A template with `main` and host code, as in tutorials.
SOURCE = text_of("tutorial.cu")


def front(*pairs: str) -> tuple[str, ...]:
    """Options that give these keys of front matter."""
    return tuple(word for pair in pairs for word in ("--front-matter", pair))


LAUNCH = front("launch.block=[16, 16]", "launch.grid=['ceil_div(N, 16)', 'ceil_div(M, 16)']")
ALL = (*front("entry=product<16>", "args=['M', 'N', 'K', '1.0', 'A', 'B', '0.0', 'C']"), *LAUNCH)
RIGHT = "1 measured, 0 wrong, 0 failed, 0 skipped"


@pytest.mark.usefixtures("own_state", "scripted_device")
def test_a_file_runs_by_what_the_command_line_says(matbench: Matbench) -> None:
    name = "product.txt"
    Path(name).write_text(SOURCE)
    assert RIGHT in matbench("run", name, *ALL, "--sizes", "33x17x20", *QUICK).stdout
    shown = matbench("kernels", name, *ALL).stdout
    assert "product<16>(M, N, K, 1.0, A, B, 0.0, C)" in " ".join(shown.split())
    assert SOURCE in shown


@pytest.mark.usefixtures("own_state", "scripted_device")
def test_a_table_may_lie_beside_the_file(matbench: Matbench) -> None:
    Path("product.cuh").write_text(SOURCE)
    Path("product.toml").write_text(text_of("product.toml"))
    done = matbench("run", "product.cuh", "--sizes", "33", *QUICK)
    assert "2 measured, 0 wrong, 0 failed, 0 skipped" in done.stdout
    assert "SIDE=8" in done.stdout
    # The command line takes precedence, key by key.
    one = matbench(
        "run", "product.cuh", "--sizes", "33", "--front-matter", "sweep.SIDE=[4]", *QUICK
    )
    assert RIGHT in one.stdout


def test_a_list_may_be_given_without_brackets(table_regression: TableRegression) -> None:
    def value(given: str) -> str:
        return json.dumps(KernelFiles((given,), None).given)

    table_regression("keys.txt", value)


def refused(matbench: Matbench, *arguments: str) -> list[str]:
    """The output of a refused command: one line, and lines to paste."""
    done = matbench(*arguments, code=2)
    first, *paste = done.stderr.splitlines()
    assert first.startswith("matbench: ")
    assert all(line.startswith("    ") for line in paste)
    return [first, *(line[4:] for line in paste)]


@pytest.mark.usefixtures("own_state")
def test_all_that_is_missing_is_told_at_once(matbench: Matbench) -> None:
    Path("product.cuh").write_text(SOURCE)
    first, *paste = refused(matbench, "run", "product.cuh")
    told = "product.cuh: front matter is missing (entry, args, block, grid)"
    assert f"{told}. Run `matbench adopt product.cuh`, or write product.toml:" in first
    assert paste[1] == 'args = ["M", "N", "K", "1.0", "A", "B", "0.0", "C"]'
    Path("product.toml").write_text("\n".join(paste))
    done = matbench("run", "product.cuh", "--sizes", "20", *QUICK)
    assert RIGHT in done.stdout  # the lines can be pasted
    Path("product.toml").write_text('entry = "product<16>"\n[launch]\nblock = [16]\n')
    first, *paste = refused(matbench, "run", "product.cuh")
    assert "product.toml:2: `args` and `launch.grid` are missing" in first
    Path("product.toml").unlink()
    Path("fenced.cu").write_text(f"// /// matbench\n// ///\n{SOURCE}")
    _, *paste = refused(matbench, "run", "fenced.cu")
    assert all(line.startswith("// ") for line in paste)
    Path("fenced.cu").write_text("\n".join(["// /// matbench", *paste, "// ///", SOURCE]))
    assert RIGHT in matbench("run", "fenced.cu", "--sizes", "20", *QUICK).stdout


SCRATCH = text_of("scratch.cu")


@pytest.mark.usefixtures("own_state")
def test_a_workspace_is_missing_like_any_other_key(matbench: Matbench) -> None:
    Path("scratch.cu").write_text(SCRATCH)
    first, *paste = refused(matbench, "run", "scratch.cu")
    assert "front matter is missing (args, block, grid, workspace_bytes)" in first
    Path("scratch.toml").write_text("\n".join(paste))
    assert RIGHT in matbench("run", "scratch.cu", "--sizes", "20x9x5", *QUICK).stdout
    Path("scratch.toml").unlink()
    told = (*front("args=['A', 'B', 'C', 'workspace', 'M', 'N', 'K']"), *LAUNCH)
    first, *paste = refused(matbench, "run", "scratch.cu", *told)
    assert "front matter is missing (workspace_bytes)" in first
    assert paste == ["[launch]", 'workspace_bytes = "4 * M * N"']


@pytest.mark.usefixtures("own_state")
def test_what_only_cuda_can_run_is_skipped_with_one_line(matbench: Matbench) -> None:
    Path("mine.cuh").write_text(SOURCE.replace("float sum = 0;", 'asm("exit;"); float sum = 0;'))
    done = matbench("run", "mine.cuh", *ALL, "--sizes", "20", "--allow-skips")
    assert done.stdout.count("needs CUDA (inline PTX, line 10)") == 1


@pytest.mark.usefixtures("own_state")
def test_a_key_is_given_once(matbench: Matbench, tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text("__global__ void mine(float *A, float *B, float *C, int M, int N, int K) {}")
    launch = front("launch.block=[1]", "launch.grid=[1]")
    for given in ('name="a"', "launch.shared_bytes=4"):
        said = matbench("kernels", path, *launch, *front(given, given), code=2).output
        assert f"{given.split('=')[0]} is given twice" in said
        matbench("kernels", path, *launch, *front(given))
