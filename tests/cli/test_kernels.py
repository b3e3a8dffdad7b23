"""`matbench kernels`: every kernel, with its whole front matter."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from support.cli import Matbench
from support.kernels import KernelWriter

from matbench.kernelfile import catalogue
from matbench.model import Kernel


def test_list_names_every_kernel(matbench: Matbench) -> None:
    kernels = catalogue.builtin()
    for fmt in ("rich", "plain", "github"):
        text = matbench("kernels", "--format", fmt).stdout
        for kernel in kernels:
            assert kernel.name in text
            assert kernel.summary in text
    rows = json.loads(matbench("kernels", "--format", "json").stdout)
    assert {row["kernel"] for row in rows} == {kernel.name for kernel in kernels}
    [tiled] = [row for row in rows if row["kernel"] == "tiled"]
    assert tiled["sweeps"] == "TILE = 8, 16, 32"
    assert tiled["rung"] == 2
    [loop] = [row for row in rows if row["kernel"] == "host-loop"]
    assert (loop["group"], loop["rung"], loop["requires"]) == ("baseline", None, "host")


@pytest.mark.parametrize("kernel", catalogue.builtin(), ids=lambda kernel: kernel.name)
def test_show_has_front_matter_and_source(kernel: Kernel, matbench: Matbench) -> None:
    text = matbench("kernels", kernel.name).stdout
    assert kernel.summary in text
    assert "// /// matbench" not in text
    assert re.split("^(?://|#) ///\n", kernel.source, flags=re.MULTILINE)[-1].strip() in text
    assert f"{kernel.entry}({', '.join(kernel.args)})" in text
    for condition in kernel.launch.where:
        assert condition in text


def test_kernels_follow_what_they_change(matbench: Matbench, write_kernel: KernelWriter) -> None:
    rows = json.loads(matbench("kernels", "--format", "json").stdout)
    names = [row["kernel"] for row in rows]
    assert names.index("naive-2d") < names.index("tiled")
    assert names.index("double-buffered") + 1 == names.index("async-copied")
    folder = write_kernel("mine", front='previous = "tiled"').parent
    write_kernel("other", front='previous = "mine"')
    rows = json.loads(matbench("kernels", "--format", "json", folder).stdout)
    assert [row["kernel"] for row in rows] == ["mine", "other"]
    wrong = write_kernel("mine", front='previous = "tild"')
    for words in ((folder,), (wrong, "--diff")):
        done = matbench("kernels", *words, code=2)
        assert "no kernel 'tild' (previous); did you mean 'tiled'?" in done.stderr


def test_what_a_kernel_changes_is_a_diff(matbench: Matbench, write_kernel: KernelWriter) -> None:
    one, two = write_kernel("one"), write_kernel("two", front='previous = "one"')
    assert "previous); name its file" in matbench("kernels", two, "--diff", code=2).stderr
    text = matbench("kernels", two, "--diff", one).stdout
    assert text.startswith(f"--- {one}\n+++ {two}\n@@ ")
    assert '\n+// previous = "one"\n' in text
    done = subprocess.run(["patch", "-o", "-", one], input=text, capture_output=True, text=True)
    assert done.stdout == two.read_text(encoding="utf-8")
    text = matbench("kernels", "thread-1d", "--diff").stdout
    assert "\n+    const int row = element / N;\n" in text
    assert "-tiled.cu\n+++ " in matbench("kernels", two, "--diff", "tiled").stdout
