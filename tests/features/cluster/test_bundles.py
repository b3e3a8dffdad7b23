"""A kernel travels with its headers, wherever they are, and is built without the originals."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.kernels import GOOD_BODY, KernelWriter

from matbench.bench.session import Session
from matbench.errors import UsageError
from matbench.features.cluster import bundles
from matbench.kernelfile import catalogue, includes, sweep
from matbench.model import CUBLAS, Kernel, Problem

BODY = '#include "one.h"\n#include <two.h>\n' + GOOD_BODY.replace("= sum;", "= ONE * TWO * sum;")


@pytest.fixture
def loaded(tmp_path: Path, write_kernel: KernelWriter) -> Kernel:
    """A kernel below `origin`, with a header next to it and others in a folder beside its own."""
    folder, headers = tmp_path / "origin" / "kernels", tmp_path / "origin" / "headers"
    folder.mkdir(parents=True)
    (headers / "deep").mkdir(parents=True)
    (folder / "one.h").write_text("#define ONE 1.0f\n")
    (headers / "two.h").write_text('#include "deep/three.h"\n#define TWO THREE\n')
    (headers / "deep" / "three.h").write_text("#define THREE 1.0f\n")
    path = write_kernel(body=BODY).replace(folder / "mine.cu")
    return catalogue.load(path, given={"include_dirs": [str(headers)]})


def measured(session: Session, kernel: Kernel) -> str:
    case = sweep.case(kernel, Problem(24, 24, 24), {"TILE": 8}, session.backend.info)
    return session.measure(case).status


def test_it_is_built_from_the_parcel(loaded: Kernel, session: Session, tmp_path: Path) -> None:
    assert [each.name for each in loaded.includes] == ["one.h", "two.h", "deep/three.h"]
    bundle = bundles.packed(loaded)
    assert set(bundle.files) == {
        "kernels/mine.cu", "kernels/one.h", "headers/two.h", "headers/deep/three.h"
    }  # fmt: skip
    paths = [bundle.kernel.file, *(each.path for each in bundle.kernel.includes)]
    assert set(paths) == set(bundle.files)
    assert bundle.kernel.include_dirs == ("../headers",)
    shutil.rmtree(tmp_path / "origin")
    there = bundles.unpacked(bundle, tmp_path / "there")
    assert there.sha256 == loaded.sha256
    assert includes.changed(there) is None
    assert measured(session, there) == "measured"
    # The control: a header that does not arrive.
    (tmp_path / "there" / bundle.sha256 / "kernels" / "one.h").unlink()
    assert includes.changed(there) == "one.h"


def test_files_are_known_by_their_contents(loaded: Kernel, tmp_path: Path) -> None:
    bundle = bundles.packed(loaded)
    there = bundles.unpacked(bundle, tmp_path / "there")
    written_ns = Path(there.file).stat().st_mtime_ns
    Path(there.includes[0].path).unlink()
    assert bundles.unpacked(bundle, tmp_path / "there") == there
    assert Path(there.file).stat().st_mtime_ns == written_ns  # others may be reading it
    assert includes.changed(there) is None
    assert bundles.packed(loaded).sha256 == bundle.sha256
    (tmp_path / "origin" / "headers" / "two.h").write_text("#define TWO 1.0f\n")
    assert bundles.packed(loaded).sha256 != bundle.sha256


@pytest.mark.parametrize(
    ("sha256", "name"),
    [
        ("a", "../x.h"),
        ("a", "k/../../../x.h"),
        ("a", "{}/x.h"),
        ("a", "link/x.h"),
        ("../..", "x.h"),
    ],
)
def test_a_parcel_stays_inside(sha256: str, name: str, loaded: Kernel, tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "a").mkdir(parents=True)
    (there / "a" / "link").symlink_to(tmp_path)
    files = {"mine.cu": b"", name.format(tmp_path): b""}
    with pytest.raises(UsageError, match="leads out of the folder"):
        bundles.unpacked(bundles.Bundle(loaded, sha256, files), there)
    assert not list(tmp_path.rglob("x.h"))


def test_a_baseline_takes_its_header_along(tmp_path: Path) -> None:
    [cublas] = [kernel for kernel in catalogue.builtin() if kernel.name == "cublas"]
    unpacked = bundles.unpacked(bundles.packed(cublas), tmp_path)
    assert [path.name for path in includes.folders(unpacked)[0].glob("*.cuh")] == ["cublas.cuh"]
    assert (unpacked.kind, includes.again(unpacked)) == (CUBLAS, unpacked.includes)
