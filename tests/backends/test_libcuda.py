"""The NVIDIA driver's own library, here one that answers as the driver does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support import drivers
from support.cli import ran

from matbench.backends.cuda import libcuda

ASK = """
from matbench.backends.cuda import libcuda
print(libcuda.version(), libcuda.trouble(), libcuda.gpu_is_present(), libcuda.path())
print(libcuda.uuid(0), libcuda.uuid(1), libcuda.uuid(2))
"""


def asked(folder: Path) -> list[str]:
    """What another process learns from the library in this folder."""
    return ran(sys.executable, "-c", ASK, LD_LIBRARY_PATH=str(folder)).splitlines()


def test_a_driver_says_what_it_is_without_pycuda(tmp_path: Path) -> None:
    library = drivers.driver(tmp_path, version=12080)
    assert asked(tmp_path) == [
        f"(12, 8) None True {library}",
        "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f None None",
    ]


@pytest.mark.parametrize(("status", "file", "is_present"), [
    (0, False, True),
    (100, True, False),  # no GPU, or hidden
    (34, True, False),  # a stub to link with
    (803, True, True),  # an updated driver before the reboot
    (999, False, False),  # a library without the kernel module
])  # fmt: skip
def test_whether_there_is_a_gpu(
    status: int, file: bool, is_present: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = drivers.loaded(tmp_path, status=status)
    monkeypatch.setattr(libcuda, "library", lambda: library)
    monkeypatch.setattr(libcuda, "_DEVICE_FILE", tmp_path if file else tmp_path / "none")
    assert libcuda.gpu_is_present() is is_present
    assert libcuda.trouble() == ("it is broken" if status else None)


def test_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libcuda, "library", lambda: None)
    monkeypatch.setattr(libcuda, "_DEVICE_FILE", tmp_path / "none")
    assert (libcuda.version(), libcuda.path(), libcuda.uuid(0)) == (None, None, None)
    assert not libcuda.gpu_is_present()
    monkeypatch.setattr(libcuda, "_DEVICE_FILE", tmp_path)  # a container without the library
    assert libcuda.gpu_is_present()
