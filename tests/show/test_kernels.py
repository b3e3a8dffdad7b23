"""The list of kernels, and one kernel in detail."""

from __future__ import annotations

import json

import msgspec
from support.tables import line_of, printed

from matbench.model import Kernel, LaunchRules
from matbench.show import kernels

TILED = Kernel(
    name="tiled", summary="Tiles in shared memory.",
    launch=LaunchRules(block=("TILE", "TILE"), grid=(1,), where=("TILE <= 32",)), entry="tiled",
    sweep={"TILE": (8, 16)}, tune={"TILE": (4,)}, requires=("sm_80",),
    model={"global_loads": "2 * M"},
    source='/// [x]\n// ///\n\nextern "C" __global__ void tiled() {}\n', path="kernels/tiled.cu",
)  # fmt: skip
CUBLAS = Kernel(
    name="cublas", summary="cuBLAS.", launch=LaunchRules(block=(1,), grid=(1,)), group="baseline",
    library="cuBLAS", deterministic=False,
)  # fmt: skip


def test_each_kernel_is_a_line_or_an_object() -> None:
    for fmt in ("rich", "plain", "github"):
        row = line_of(kernels.text([TILED, CUBLAS], fmt), "tiled")
        assert "Tiles in shared memory." in row
        assert "TILE 8, 16" in row
        assert "sm_80" in row
    found = json.loads(kernels.text([TILED, CUBLAS], "json"))
    assert [one["group"] for one in found] == ["tutorial", "baseline"]
    assert list(found[0]) == [
        "kernel", "workload", "group", "rung", "previous", "summary", "requires", "sweeps"
    ]  # fmt: skip


def test_what_a_kernel_follows_has_a_column_if_any_does() -> None:
    follower = msgspec.structs.replace(TILED, name="mine", previous="tiled")
    for fmt in ("plain", "github"):
        assert "previous" not in kernels.text([TILED, CUBLAS], fmt)
        table = kernels.text([TILED, follower], fmt)
        assert "previous" in table
        assert line_of(table, "mine", "tiled")
    assert "after" not in printed(kernels.listing([TILED]), 80)
    assert line_of(printed(kernels.listing([TILED, follower]), 80), "after tiled · TILE 8, 16")
    page = printed([kernels.details(follower)], 100)
    assert line_of(page, "previous  ", "tiled (--diff shows what changes)")
    alone = printed([kernels.details(TILED)], 100)
    assert "previous" not in alone
    assert "diff" not in alone


def test_a_terminal_groups_them() -> None:
    page = printed(kernels.listing([TILED, CUBLAS]), 80)
    assert page.index("matmul · tutorial") < page.index("matmul · baseline")
    assert line_of(page, "  tiled", "Tiles in shared memory.")
    assert line_of(page, "TILE 8, 16 · needs sm_80")


def test_one_kernel_in_words() -> None:
    page = printed([kernels.details(TILED)], 100)
    for label, value in {
        "file": "kernels/tiled.cu",
        "default values": "TILE 8, 16",
        "tuning values": "TILE 4",
        "called as": "tiled(A, B, C, M, N, K)",
        "block (threads)": "TILE × TILE",
        "needs": "sm_80; TILE <= 32",
        "modelled global loads": "2 * M",
    }.items():
        assert line_of(page, label + "  ", value)
    assert kernels.source(TILED) == 'extern "C" __global__ void tiled() {}\n'
    assert "__global__" in printed([kernels.highlighted(kernels.source(TILED), "cuda")], 100)


def test_a_library_call_has_no_launch_and_no_file() -> None:
    page = printed([kernels.details(CUBLAS)], 100)
    assert "none: a call to cuBLAS" in page
    assert "no (declared)" not in page or "deterministic" in page
    assert "block" not in page
    assert kernels.source(CUBLAS) == ""
