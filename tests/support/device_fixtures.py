"""The first device of each backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from matbench import backends
from matbench.backends import Backend
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.model import DeviceInfo


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
