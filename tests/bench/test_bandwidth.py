"""A device's memory bandwidth: measured on the current device, and cached."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import msgspec
import pytest

from matbench.analysis.limits import Bandwidth
from matbench.backends.protocol import Backend
from matbench.bench import bandwidth
from matbench.bench.device_kernels import device_kernel
from matbench.cache import Cache
from matbench.model import DeviceInfo


@pytest.fixture
def small_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of 32 MB instead of half a GB."""
    monkeypatch.setattr(bandwidth, "_MOST_BYTES", 2**25)


@pytest.mark.usefixtures("small_copies")
def test_measured_once(backend: Backend, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    released = Mock(wraps=backend.release)
    monkeypatch.setattr(backend, "release", released)
    found = bandwidth.measured(backend, cache)
    assert released.call_count == 2
    # Any machine moves more than 100 MB/s and less than a petabyte per second.
    assert 1e8 < found.copy_bytes_per_s < 1e15
    assert found.read_bytes_per_s >= found.copy_bytes_per_s
    assert bandwidth.measured(backend, cache) == found


def test_that_of_another_device_driver_or_program_is_not_taken(
    device: DeviceInfo, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandwidth, "_bytes_per_s", lambda _: Bandwidth(1.0, 1.0))

    def kept(**change: str) -> int:
        """The number of devices whose bandwidth is known, once that of this one is."""
        info = msgspec.structs.replace(device, **change)
        bandwidth.measured(SimpleNamespace(info=info), cache)
        return len(list(cache.folder.iterdir()))

    changes = [{}, *({name: "another"} for name in ("backend", "name", "driver", "toolkit"))]
    assert [kept(**change) for change in changes * 2] == [1, 2, 3, 4, 5, *[5] * 5]
    program = device_kernel("bandwidth.cu", "copy_fours")
    other = msgspec.structs.replace(program, sha256="another")
    monkeypatch.setattr(bandwidth, "device_kernel", lambda *_: other)
    assert kept() == 6


@pytest.mark.usefixtures("small_copies")
def test_best_is_kept(backend: Backend, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device that does not tell the size of its cache."""
    silent = msgspec.structs.replace(backend.info, properties={})
    monkeypatch.setattr(backend, "info", silent)
    first = bandwidth.measured(backend, cache)
    again = bandwidth.measured(backend, cache, anew=True)
    assert again.copy_bytes_per_s >= first.copy_bytes_per_s
    assert again.read_bytes_per_s >= first.read_bytes_per_s
    assert bandwidth.measured(backend, cache) == again
