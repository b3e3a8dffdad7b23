"""What `matbench doctor --install` installs, and the messages if it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from support import drivers
from support.cli import Matbench

from matbench.backends.cuda import compilation, libcuda
from matbench.errors import MatbenchError
from matbench.features.doctor import installing

#: Runs PyCUDA's build in small: it needs curand.h, and libraries by the names that linkers use.
CODE = """
#include <curand.h>
int cuInit(unsigned);
int both(void) { return cuInit(0) + curandGetVersion(); }
"""


real_pip, really_imports = installing._pip, installing._imports


@pytest.fixture(autouse=True)
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test installs anything here, even if a check fails to stop it."""
    monkeypatch.setattr(installing, "_pip", lambda: ["false"])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site-packages with a toolkit from wheels, and a driver."""
    site = tmp_path / "site"
    root = site / "nvidia" / "cu13"
    drivers.nvcc(root / "bin" / "nvcc")
    (root / "include").mkdir()
    (root / "include" / "curand.h").write_text("int curandGetVersion(void);\n")
    drivers.shared_library(
        root / "lib" / "libcurand.so.10", "int curandGetVersion(void) { return 42; }"
    )
    monkeypatch.setattr(compilation, "_wheels", lambda: [site / "nvidia"])
    monkeypatch.setattr(compilation, "find", lambda: root / "bin" / "nvcc")
    driver, library = drivers.driver(tmp_path / "driver"), drivers.loaded(tmp_path)
    monkeypatch.setattr(libcuda, "library", lambda: library)
    monkeypatch.setattr(libcuda, "path", lambda: driver)
    for name in ("CPATH", "LIBRARY_PATH", "LDFLAGS"):
        monkeypatch.delenv(name, raising=False)
    return site


def test_wheels_are_found(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPATH", "/another")
    nvcc = site / "nvidia" / "cu13" / "bin" / "nvcc"
    with installing.build_environment(nvcc) as variables:
        assert variables["CUDA_ROOT"] == str(nvcc.parents[1])
        assert variables["PATH"].split(os.pathsep)[0] == str(nvcc.parent)
        assert variables["PATH"].endswith(os.environ["PATH"])
        assert variables["CPATH"] == f"{nvcc.parents[1] / 'include'}:/another"
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        extension = site / "pycuda" / "_driver.so"
        drivers.shared_library(extension, CODE, "-lcuda", "-lcurand", variables["LDFLAGS"])
    assert not Path(variables["LIBRARY_PATH"]).exists()
    # Elsewhere, as if the environment had been moved, and with only the driver to be found.
    moved = site.rename(tmp_path / "moved")
    load = f"import ctypes; print(ctypes.CDLL({str(moved / 'pycuda/_driver.so')!r}).both())"
    done = subprocess.run(
        [sys.executable, "-c", load],
        env={"LD_LIBRARY_PATH": str(tmp_path / "driver")}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "42\n", done.stderr


def test_a_toolkit_is_found_by_its_root_even_if_nvcc_is_a_script(tmp_path: Path) -> None:
    drivers.nvcc(tmp_path / "cuda" / "bin" / "nvcc")
    script = drivers.program(tmp_path / "bin/nvcc", f'exec {tmp_path}/cuda/bin/nvcc "$@"')
    with installing.build_environment(script) as variables:
        assert variables["CUDA_ROOT"] == str(tmp_path / "cuda")
        assert variables["PATH"].startswith(f"{tmp_path}/cuda/bin{os.pathsep}")
        assert variables.keys() == {"CUDA_ROOT", "PATH"}


@pytest.fixture
def pip(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Installs with a pip that writes down its arguments, and may fail with a message."""
    written = tmp_path / "written"
    monkeypatch.setattr(installing, "build_tools_missing", lambda: None)
    monkeypatch.setattr(installing, "_imports", lambda module: True)

    def install(fails: str | None = None) -> list[str]:
        script = f'echo "$* root=${{CUDA_ROOT##*/}}" >> {written}'
        if fails is not None:
            script += f"\ncat <<'END'\n{fails}\nEND\nexit 1"
        fake = drivers.program(tmp_path / "pip", script)
        monkeypatch.setattr(installing, "_pip", lambda: [str(fake)])
        said = list(installing.install())
        assert all(said)
        return written.read_text().splitlines()

    return install


def test_without_a_toolkit_the_drivers_wheels_are_first(pip: Callable[..., list[str]]) -> None:
    assert pip() == [
        "nvidia-cuda-nvdisasm "
        "cuda-toolkit[cccl,crt,cudart,curand,nvcc,nvvm,profiler]==13.0.* root=",
        "--no-cache-dir matbench-cuda[cuda] root=cu13",
    ]


def test_a_toolkit_needs_no_wheels_and_no_driver(
    pip: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc = drivers.nvcc(tmp_path / "cuda-12" / "bin" / "nvcc")
    monkeypatch.setattr(compilation, "find", lambda: nvcc)
    monkeypatch.setattr(libcuda, "library", lambda: None)
    assert pip() == ["--no-cache-dir matbench-cuda[cuda] root=cuda-12"]


def test_a_pycuda_that_cannot_be_imported_is_built_again(
    pip: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken" / "pycuda").mkdir(parents=True)
    (tmp_path / "broken" / "pycuda" / "__init__.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path / "broken")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    monkeypatch.setattr(installing, "_imports", really_imports)
    assert "--no-cache-dir --force-reinstall --no-deps pycuda root=cu13" in pip()


@pytest.fixture
def refused(matbench: Matbench) -> Callable[..., str]:
    """The one line of a `matbench doctor --install` that fails, after the steps that it says."""

    def refusal(code: int) -> str:
        result = matbench("doctor", "--install", code=code)
        assert result.stdout == ""
        return result.stderr.splitlines()[-1]

    return refusal


def test_a_failed_installation_is_one_line_below_what_pip_says(
    pip: Callable[..., list[str]], refused: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MatbenchError, match="pip could not install"):
        pip(fails="cannot find -lcurand")
    said = refused(1)
    assert said.startswith("matbench: pip could not install cuda-toolkit[")
    assert said.endswith("; its messages are above")
    assert capfd.readouterr().out.count("cannot find -lcurand") == 2


@pytest.mark.usefixtures("site")
def test_what_pip_cannot_install_is_said_with_the_command(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    assert refused(2) == (
        "matbench: PyCUDA cannot be built: no C++ compiler; sudo apt-get install g++"
    )
    drivers.program(tmp_path / "tools" / "dnf")
    assert refused(2).endswith("no C++ compiler; sudo dnf install gcc-c++")
    drivers.program(tmp_path / "tools" / "g++")
    headers = sysconfig.get_path
    monkeypatch.setattr(sysconfig, "get_path", lambda name: f"/nowhere/{name}")
    assert "no /nowhere/include/Python.h; sudo dnf install python3-devel" in refused(2)
    monkeypatch.setattr(sysconfig, "get_path", headers)
    monkeypatch.setattr(libcuda, "version", lambda: (12, 4))
    monkeypatch.setattr(installing, "build_tools_missing", lambda: None)
    assert refused(2) == (
        "matbench: the driver supports CUDA 12.4, whose nvcc does not come as wheels; install the "
        "CUDA toolkit 12.4 and put its bin folder on PATH, or update the driver to 580 or newer"
    )
    monkeypatch.setattr(libcuda, "version", lambda: None)
    assert refused(2).startswith("matbench: no NVIDIA driver; install it first")


def test_environments_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Exception, match="has no pip; run its -m ensurepip, or install uv"):
        real_pip()
    uv = drivers.program(tmp_path / "uv")
    assert real_pip()[:3] == [str(uv), "pip", "install"]
    assert real_pip()[-2:] == ["--python", sys.executable]


def test_a_folders_settings_are_not_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv would take its index from a `uv.toml` there."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "uv.toml").write_text("index-url = 'https://example.invalid'")
    monkeypatch.chdir(here)
    code = f"import os; open({str(tmp_path / 'seen')!r}, 'w').write(str(os.listdir()))"
    installing._run([sys.executable, "-c", code])
    assert (tmp_path / "seen").read_text() == "[]"
