"""The wheel contains everything matbench needs, and runs from an empty folder."""

from __future__ import annotations

import hashlib
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from support.cli import ran
from support.paths import ROOT
from support.toml import table

from matbench import __version__
from matbench.kernelfile import catalogue


def build(project: Path, folder: Path, kind: str) -> Path:
    """The wheel or the source distribution of a project, built offline into `folder`."""
    ran(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder, cwd=project)
    [built] = folder.iterdir()
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files(folder: Path) -> dict[Path, str]:
    """The hash of every file below a folder."""
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps")
    ran(*pip, "--target", target, wheel, cwd=target)
    return target


def test_every_dependency_is_imported() -> None:
    project = table(ROOT / "pyproject.toml")["project"]
    needs = (re.split(r"[^\w-]", need)[0] for need in project["dependencies"])
    names = {name.replace("-", "_") for name in needs}
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "matbench").rglob("*.py")]
    imported = set(re.findall(r"^\s*(?:import|from) (\w+)", "\n".join(sources), re.MULTILINE))
    by_msgspec = {"tomli", "pyyaml"}  # by which it reads TOML and YAML
    assert {"click", "numpy"} < names <= imported | by_msgspec


def test_what_checks_install_has_exact_versions() -> None:
    """Releases of other projects cannot break them."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    exact = re.findall(r"^([a-z0-9-]+)==[\d.a-z]+(?:; python_version .*)?$", text, re.MULTILINE)
    project = table(ROOT / "pyproject.toml")["project"]
    extras = project["optional-dependencies"]
    kinds = ("cpu", "dev", "mutants", "site")
    needed = [*project["dependencies"], *(one for kind in kinds for one in extras[kind])]
    names = {re.split(r"[\[<>=; ]", one.lower())[0] for one in needed} - {"tomli"}
    assert names <= {*exact}


def test_wheel_holds_the_kernels_and_the_package_alone(wheel: Path) -> None:
    inside = contents(wheel)
    kernels = [path for path in (ROOT / "kernels").rglob("*.cu*") if path.is_file()]
    assert len(kernels) > 40
    for path in kernels:
        assert inside[f"matbench/{path.relative_to(ROOT).as_posix()}"] == path.read_bytes()
    for path in (ROOT / "matbench").rglob("*.py"):
        assert inside[path.relative_to(ROOT).as_posix()] == path.read_bytes()
    tops = {name.split("/")[0] for name in inside}
    assert tops == {"matbench", f"matbench_cuda-{__version__}.dist-info"}


@pytest.mark.long
def test_wheel_from_the_source_distribution_is_the_same(wheel: Path, tmp_path: Path) -> None:
    for name in ("sdist", "unpacked", "wheel"):
        (tmp_path / name).mkdir()
    with tarfile.open(build(ROOT, tmp_path / "sdist", "sdist")) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(tmp_path / "unpacked")
    [project] = (tmp_path / "unpacked").iterdir()
    assert contents(build(project, tmp_path / "wheel", "wheel")) == contents(wheel)


@pytest.mark.long
def test_installed_catalogue_reads_its_own_kernels(installed: Path, tmp_path: Path) -> None:
    code = (
        "from matbench.kernelfile import catalogue\n"
        "print(catalogue.kernels_folder())\n"
        "for kernel in catalogue.builtin(): print(kernel.name, kernel.sha256)"
    )
    folder, *kernels = ran(
        sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(installed)
    ).splitlines()
    assert Path(folder) == installed / "matbench" / "kernels"
    assert kernels == [f"{kernel.name} {kernel.sha256}" for kernel in catalogue.builtin()]


@pytest.mark.long
def test_installed_wheel_runs_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    before = files(installed)
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {
        "PYTHONPATH": str(installed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    matbench = (sys.executable, "-m", "matbench")
    listed = ran(*matbench, "kernels", cwd=empty, **environment)
    for kernel in catalogue.builtin():
        assert kernel.name in listed
    measured = ran(*matbench, "run", "tiled", "--sizes", "33", cwd=empty, **environment)
    assert "tiled" in measured
    assert files(installed) == before
    assert list(empty.iterdir()) == []
