"""A device's limits: measured on the current device, and cached."""

from __future__ import annotations

from pathlib import Path

import pytest

from matbench.backends import Backend
from matbench.bench import bandwidth
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.features.explain import limits


@pytest.fixture
def own_session(backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session with an empty cache, whose copies are of 32 MB instead of half a GB."""
    monkeypatch.setattr(bandwidth, "_MOST_BYTES", 2**25)
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    return Session(backend, Cache(folder), Options(timed=False))


def test_limits_are_measured_once_and_kept(own_session: Session) -> None:
    found = limits.measured(own_session)
    assert found.device == own_session.backend.info.name
    assert 1e8 < found.fma_flop_per_s < 1e17
    known = bandwidth.measured(own_session.backend, own_session.cache)
    assert (found.copy_bytes_per_s, found.read_bytes_per_s) == known
    assert limits.measured(own_session) == found


def test_measuring_anew_keeps_the_better_figure(own_session: Session) -> None:
    first = limits.measured(own_session)
    again = limits.measured(own_session, anew=True)
    assert again.copy_bytes_per_s >= first.copy_bytes_per_s
    assert again.fma_flop_per_s >= first.fma_flop_per_s
    assert limits.measured(own_session) == again
