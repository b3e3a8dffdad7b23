"""`matbench list` and `matbench show`: every kernel, with its whole front matter."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest
from support.cli import Matbench
from support.kernels import KernelWriter

from matbench.kernelfile import catalogue
from matbench.model import Kernel


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
    kernel: Kernel, matbench: Matbench
) -> None:
    text = matbench("show", kernel.name).stdout
    assert kernel.summary in text
    assert "// /// matbench" not in text
    if kernel.source:
        assert kernel.source.split("// ///\n", 1)[1].strip() in text
        assert f"{kernel.entry}({', '.join(kernel.args)})" in text
        for condition in kernel.launch.where:
            assert condition in text


def test_kernels_are_listed_behind_what_they_change(
    matbench: Matbench, write_kernel: KernelWriter
) -> None:
    mine = write_kernel("mine", front='previous = "tiled"')
    rows = json.loads(matbench("list", "--format", "json", "--kernel", mine).stdout)
    names = [row["kernel"] for row in rows]
    assert names.index("naive-2d") < names.index("tiled") < names.index("mine")
    assert names.index("double-buffered") + 1 == names.index("async-copied")
    text = matbench("show", "mine", "--kernel", mine).stdout
    assert "git diff --no-index" in text
    assert "tiled.cu" in text
    assert "mine.cu" in text
    assert "git diff" not in matbench("show", "single-block").stdout
    for command in (["list"], ["show", "mine"]):
        wrong = write_kernel("mine", front='previous = "tild"')
        done = matbench(*command, "--kernel", wrong, code=2)
        assert "no kernel 'tild' (previous); did you mean 'tiled'?" in done.stderr


def test_the_diff_command_runs(matbench: Matbench, write_kernel: KernelWriter) -> None:
    write_kernel("one")
    text = matbench("show", write_kernel("two", front='previous = "one"')).stdout
    [line] = [line for line in text.splitlines() if "git diff" in line]
    command = shlex.split(line.strip().removeprefix("diff").strip())
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert '+// previous = "one"' in done.stdout
