"""A new kernel file loads under its new name, and only that changes in its code."""

from __future__ import annotations

import re

import pytest

from matbench.features.new import scaffold
from matbench.kernelfile import catalogue, front_matter
from matbench.kernelfile.host_file import HostReader
from matbench.kernelfile.syntax import without_comments
from matbench.model import FrontMatter, Kernel

WITH_SOURCE = [kernel for kernel in catalogue.builtin() if kernel.library != "baseline"]
TILED = next(kernel for kernel in WITH_SOURCE if kernel.name == "tiled")


def made(name: str, origin: Kernel = TILED) -> Kernel:
    text = scaffold.source(name, origin, f"{name}.cu")
    return front_matter.parse(text.encode(), f"{name}.cu", reader=HostReader)


@pytest.mark.parametrize("origin", WITH_SOURCE, ids=lambda kernel: kernel.name)
def test_a_copy_differs_in_its_name_alone(origin: Kernel) -> None:
    mine = made("mine", origin)
    assert (mine.name, mine.group, mine.previous) == ("mine", "tutorial", origin.name)
    for key in set(FrontMatter.__struct_fields__) - {"name", "summary", "group", "previous"}:
        assert getattr(mine, key) == getattr(origin, key), key
    assert without_comments(mine.source).split() == without_comments(origin.source).split()
    assert mine.parameters == origin.parameters


@pytest.mark.parametrize("origin", WITH_SOURCE, ids=lambda kernel: kernel.name)
def test_a_copy_explains_itself_but_does_not_claim_what_its_origin_measured(origin: Kernel) -> None:
    text = scaffold.source("mine", origin, "mine.cu")
    assert max(map(len, set(text.splitlines()) - set(origin.source.splitlines()))) <= 100
    assert not re.search("^// (Adds|Predicted|Limit|Measured): ", text, re.MULTILINE)
    assert "cuBLAS (H200)" not in text
    remarks = origin.source.split("// ///\n\n", 1)[1].split("\n\n")[0]
    if remarks.startswith("// Adds: "):
        remarks = remarks.split("\n//\n", 1)[1]
    assert f"\n\n{remarks}\n" in text
