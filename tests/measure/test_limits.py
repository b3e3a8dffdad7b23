"""A device's limits: measured on the current device, and cached."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from matbench.backends import Backend
from matbench.cache import Cache
from matbench.measure import limits
from matbench.measure.judge import device_kernel
from matbench.measure.options import Deadlines, Options
from matbench.measure.worker import WorkerPool
from matbench.model import Conditions, DeviceInfo


@pytest.fixture
def own_cache(tmp_path: Path) -> Cache:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    return Cache(folder)


@pytest.fixture
def small_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of 32 MB instead of half a GB."""
    monkeypatch.setattr(limits, "_MOST_BYTES", 2**25)


@pytest.mark.usefixtures("small_copies")
def test_limits_are_measured_once_and_kept(backend: Backend, own_cache: Cache) -> None:
    found = limits.measured(backend, own_cache)
    assert found.device == backend.info.name
    # Any machine moves more than 100 MB/s and less than a petabyte per second.
    assert 1e8 < found.copy_bytes_per_s < 1e15
    assert 1e8 < found.fma_flop_per_s < 1e17
    assert limits.measured(backend, own_cache) == found


def test_limits_of_another_device_driver_or_program_are_not_taken(
    device: DeviceInfo, own_cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_bytes_per_s", lambda _: (1.0, 1.0))
    monkeypatch.setattr(limits, "_fma_flop_per_s", lambda _: 1.0)

    def kept(**change: str) -> int:
        """The number of devices whose limits are known, once those of this one are."""
        info = msgspec.structs.replace(device, **change)
        limits.measured(SimpleNamespace(info=info, conditions=Conditions), own_cache)
        return len(list(own_cache.folder.iterdir()))

    changes = [{}, *({name: "another"} for name in ("backend", "name", "driver", "toolkit"))]
    assert [kept(**change) for change in changes * 2] == [1, 2, 3, 4, 5, *[5] * 5]
    program = device_kernel("limits.cu", "copy_fours")
    other = msgspec.structs.replace(program, sha256="another")
    monkeypatch.setattr(limits, "device_kernel", lambda *_: other)
    assert kept() == 6


@pytest.mark.usefixtures("small_copies")
def test_measuring_anew_keeps_the_better_figure(backend: Backend, own_cache: Cache) -> None:
    first = limits.measured(backend, own_cache)
    again = limits.measured(backend, own_cache, anew=True)
    assert again.copy_bytes_per_s >= first.copy_bytes_per_s
    assert again.fma_flop_per_s >= first.fma_flop_per_s
    assert limits.measured(backend, own_cache) == again


def test_a_worker_measures_them_in_its_own_process(device: DeviceInfo) -> None:
    with WorkerPool(Options(), Deadlines()) as pool:
        found = pool.worker(device).limits()
    assert found.device == device.name
    assert found.fma_flop_per_s > 0
