"""`double-int8` on a real GPU: right as it is, refused with a wrong constant or too few moduli."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.functions import measured
from support.kernels import saved
from support.optional import half, present, some
from support.paths import ROOT

from matbench.bench.options import CHECKS
from matbench.kernelfile import catalogue
from matbench.model import Kernel

GALLERY = ROOT / "kernels" / "gallery"
#: What is changed in which file, and a size at which it shows.
MISTAKES = {
    "a modulus too few": ("double-int8.cu", "MODULI = [15]", "MODULI = [14]", "1000x1000x2"),
    "a wrong weight": (
        "residues.cuh", "(unsigned)(others >> 8 * b & 255)",
        "(unsigned)((others >> 8 * b & 255) ^ (i == 2 && b == 9))", "64",
    ),
    "a wrong multiple of P": ("residues.cuh", "1u << (SHARE_BITS - 1)", "0", "64"),
    "no inverse": ("residues.cuh", "bytes_times(factor, m)", "bytes_times(1, m)", "64"),
    "beyond P": ("residues.cuh", "(0.5 - 1.0 / (1 << 14))", "8", "64"),
    "a scale too far": ("double-int8.cu", "ilogb(largest / squares) >> 1",
                        "(ilogb(largest / squares) >> 1) + 1", "300"),
    "the last modulus is left out": ("double-int8.cu", "rows = MODULI * M",
                                     "rows = (MODULI - 1) * M", "600"),
    "a chunk of squares is left out": ("double-int8.cu", "chunk * CHUNK < K",
                                       "chunk < 1", "40x40x20000"),
    "the held half is that of the next tile": ("ring.cuh", "if (!is_first && (k ==",
                                               "if (k > 0 && !is_first && (k ==", "1000"),
}  # fmt: skip


def copy_of(folder: Path) -> Path:
    """The kernel file beside its headers, under a name of its own."""
    for path in GALLERY.glob("*.cuh"):
        shutil.copy(path, folder)
    text = (GALLERY / "double-int8.cu").read_text(encoding="utf-8")
    return saved(folder / "double-int8.cu", text.replace('name = "double-int8"', 'name = "mine"'))


@pytest.mark.gpu
@pytest.mark.parametrize("inputs", some(["uniform", "signed", "normal"], "signed"))
@pytest.mark.parametrize("size", ["1", "3x5x1", "300x300x2", "257x259x129", "130x513x1000"])
def test_it_is_right_at_awkward_shapes(size: str, inputs: str) -> None:
    kernel = catalogue.load(GALLERY / "double-int8.cu")
    # Tests that run at the same time may take memory with each call.
    checks = CHECKS - {"growth"}
    outcome = measured(kernel, size, backend="cuda", checks=checks, factors={"inputs": inputs})
    assert (outcome.status, outcome.reason) == ("measured", None)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_a_mistake_changes_is_in_the_file(mistake: str) -> None:
    """Also where no GPU is: the code may have moved to another file."""
    name, old, _, _ = MISTAKES[mistake]
    assert (GALLERY / name).read_text(encoding="utf-8").count(old) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("mistake", half(MISTAKES))
def test_a_mistake_is_refused(mistake: str, tmp_path: Path) -> None:
    name, old, new, size = MISTAKES[mistake]
    file = copy_of(tmp_path)
    text = (tmp_path / name).read_text(encoding="utf-8")
    (tmp_path / name).write_text(text.replace(old, new), encoding="utf-8")
    kernel: Kernel = catalogue.load(file)
    outcome = measured(kernel, size, backend="cuda", checks=CHECKS - {"growth"})
    assert outcome.status == "wrong", present(outcome.reason)
