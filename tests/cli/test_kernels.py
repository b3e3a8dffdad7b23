"""`matbench list` and `matbench show`: every kernel, with its whole front matter."""

from __future__ import annotations

import json

import pytest
from support.cli import Matbench
from support.kernels import KernelWriter

from matbench.kernelfile import catalogue


def test_list_names_every_kernel(matbench: Matbench, write_kernel: KernelWriter) -> None:
    kernels = catalogue.builtin()
    for fmt in ("rich", "plain", "github"):
        text = matbench("list", "--format", fmt, "--kernel", write_kernel("mine")).stdout
        for kernel in kernels:
            assert kernel.name in text
            assert kernel.summary in text
        assert "For a test" in text
    rows = json.loads(matbench("list", "--format", "json").stdout)
    assert {row["kernel"] for row in rows} == {kernel.name for kernel in kernels}
    [tiled] = [row for row in rows if row["kernel"] == "tiled"]
    assert tiled["sweeps"] == "TILE 8, 16, 32"
    [loop] = [row for row in rows if row["kernel"] == "host-loop"]
    assert (loop["group"], loop["requires"]) == ("baseline", "host")


@pytest.mark.parametrize("kernel", catalogue.builtin(), ids=lambda kernel: kernel.name)
def test_show_tells_front_matter_in_words_and_the_source(
    kernel: catalogue.Kernel, matbench: Matbench
) -> None:
    text = matbench("show", kernel.name).stdout
    assert kernel.summary in text
    assert "// /// matbench" not in text
    if kernel.source:
        assert kernel.source.split("// ///\n", 1)[1].strip() in text
        assert f"{kernel.entry}({', '.join(kernel.args)})" in text
        for condition in kernel.launch.where:
            assert condition in text


def test_show_takes_a_file(matbench: Matbench, write_kernel: KernelWriter) -> None:
    text = matbench("show", "mine", "--kernel", write_kernel("mine")).stdout
    assert "For a test" in text
    assert "blockIdx.y * TILE" in text
