"""The first device of each backend, and sessions on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from matbench import backends
from matbench.backends import Backend, Work
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.model import DeviceInfo

#: As little sampling as possible.
QUICK = Options(uncertainty=1e9, max_time_s=0.01, minimum_samples=3, blocks=False)
#: The fixture `watch`.
Watch = Callable[..., None]


@pytest.fixture(scope="module")
def opencl(own_folders: None) -> Iterator[Backend]:
    """Only machines with CUDA may have no device of OpenCL."""
    try:
        info = backends.devices("opencl")[0]
    except backends.UnavailableError as error:
        backends.devices("cuda")
        pytest.skip(str(error))
    opened = backends.open_backend(info, Cache())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def info(own_folders: None) -> DeviceInfo:
    """The first CUDA device; without one tests that need it fail, because they were requested."""
    return backends.devices("cuda")[0]


@pytest.fixture(scope="module")
def cuda(info: DeviceInfo) -> Iterator[Backend]:
    opened = backends.open_backend(info, Cache())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def checks(cuda: Backend) -> Session:
    """Checks good kernels in this process, without timing."""
    return Session(cuda, Cache(), Options(timed=False))


@pytest.fixture(params=["session", pytest.param("checks", marks=pytest.mark.gpu)])
def anywhere(request: pytest.FixtureRequest) -> Session:
    """Checks good kernels on a CPU, and on a GPU."""
    found: Session = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def timed(backend: Backend) -> Session:
    """A session with timing, on the device that is already open."""
    return Session(backend, Cache(), QUICK)


@pytest.fixture
def watch(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Calls `before` with all that is timed from now on, and `after` with the time that it took,
    too, for the time that is told."""

    def look(
        before: Callable[[Work], Any] = lambda _: None,
        after: Callable[[Work, float], float] = lambda _, taken_ns: taken_ns,
    ) -> None:
        take = backend.timed_ns

        def timed_ns(work: Work) -> float:
            before(work)
            return after(work, take(work))

        monkeypatch.setattr(backend, "timed_ns", timed_ns)

    return look
