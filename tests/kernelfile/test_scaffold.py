"""A new kernel file loads under its new name, and only that changes in its code."""

from __future__ import annotations

import re

import pytest

from matbench.errors import UsageError
from matbench.kernelfile import catalogue, front_matter, scaffold
from matbench.kernelfile.syntax import without_comments
from matbench.model import FrontMatter, Kernel

WITH_SOURCE = [kernel for kernel in catalogue.builtin() if kernel.source]
TILED = next(kernel for kernel in WITH_SOURCE if kernel.name == "tiled")


def made(name: str, origin: Kernel = TILED) -> Kernel:
    return front_matter.parse(scaffold.source(name, origin, f"{name}.cu").encode(), f"{name}.cu")


@pytest.mark.parametrize("origin", WITH_SOURCE, ids=lambda kernel: kernel.name)
def test_a_copy_differs_in_its_name_alone(origin: Kernel) -> None:
    mine = made("mine", origin)
    assert (mine.name, mine.entry, mine.group) == ("mine", "mine", "tutorial")
    assert mine.previous == origin.name
    changed = {"name", "summary", "group", "previous", "entry"}
    for key in set(FrontMatter.__struct_fields__) - changed:
        assert getattr(mine, key) == getattr(origin, key), key
    was = without_comments(origin.source).replace(f"{origin.entry}(", "mine(")
    assert without_comments(mine.source).split() == was.split()
    assert mine.parameters == origin.parameters


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("a.b-c", "a_b_c"),
        ("double", "kernel_double"),  # a word of C
        ("dot", "kernel_dot"),  # a function of OpenCL C
        ("3d", "kernel_3d"),
        ("row", "kernel_row"),  # a variable of the kernel's own
    ],
)
def test_the_function_gets_a_name_that_is_free(name: str, entry: str) -> None:
    assert made(name).entry == entry


def test_what_cannot_be_copied() -> None:
    with pytest.raises(UsageError, match="name 'Mine': use lower-case letters"):
        scaffold.source("Mine", TILED, "mine.cu")
    numpy = catalogue.Catalogue(catalogue.builtin()).get("numpy")
    with pytest.raises(UsageError, match="numpy is a library routine; it has no source"):
        scaffold.source("mine", numpy, "mine.cu")


def test_a_copy_does_not_claim_what_its_origin_measured() -> None:
    rungs = [origin for origin in WITH_SOURCE if "// Measured: " in origin.source]
    assert len(rungs) > 20
    for origin in rungs:
        text = scaffold.source("mine", origin, "mine.cu")
        assert not re.search("^// (Adds|Predicted|Limit|Measured): ", text, re.MULTILINE)
        assert "cuBLAS (H200)" not in text
        first = origin.source.split("// ///\n", 1)[1].split("\n//\n", 1)[1].splitlines()[0]
        assert f"\n\n{first}\n" in text
