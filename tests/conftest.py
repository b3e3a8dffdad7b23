"""Shared fixtures: separate folders, one open device, and the command line in-process."""

from __future__ import annotations

import functools
import gc
import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, settings
from support import warm
from support.cli import Matbench
from support.kernels import KernelWriter, kernel_text, saved

from matbench import backends, cache
from matbench.backends.protocol import Backend, UnavailableError
from matbench.bench.device_kernels import DeviceKernels
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.cli import main
from matbench.model import DeviceInfo
from matbench.worker.worker import WorkerPool

pytest_plugins = ["support.fixtures"]

# On a shared machine a test may take any time. `make test-long` tries many more examples.
SETTINGS: dict[str, Any] = {
    "deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture],
}  # fmt: skip
settings.register_profile("matbench", max_examples=10, **SETTINGS)
settings.register_profile("long", max_examples=500, **SETTINGS)
settings.load_profile("matbench")

# In the background Ctrl-C is ignored, and under nohup SIGHUP; child processes would inherit that.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

# On a CPU, each process of tests has its share of the cores: the threads of OpenCL, which spin
# while they wait, do not hold up the other processes, and times are less disturbed.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
if _worker and hasattr(os, "sched_setaffinity") and not Path("/dev/nvidiactl").exists():
    _cores = sorted(os.sched_getaffinity(0))
    if _own := _cores[int(_worker) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        os.sched_setaffinity(0, _own)

# While tests are collected, before they have folders of their own, no cache can be used.
os.environ["MATBENCH_CACHE_DIR"] = os.devnull

#: Variables that make rich or click assume a terminal, or hide one.
TERMINAL_VARIABLES = (
    "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def own_folders(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[None]:
    """One cache for all tests and processes, so that little is built twice, and for all runs if
    pytest keeps anything from one to the next; never the user's."""
    own = tmp_path_factory.getbasetemp()
    run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    if pytestconfig.pluginmanager.has_plugin("cacheprovider"):
        run = pytestconfig.cache.mkdir("matbench")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GITHUB_STEP_SUMMARY", raising=False)  # that of the tests' own workflow
        for kind, place in (("CACHE", run), ("STATE", own)):
            folder = place / f"matbench-{kind.lower()}"
            folder.mkdir(mode=0o700, exist_ok=True)
            patch.setenv(f"MATBENCH_{kind}_DIR", str(folder))
        for name in TERMINAL_VARIABLES:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def device(own_folders: None) -> DeviceInfo:
    """The OpenCL CPU device; on a machine without one, what `auto` takes."""
    try:
        return backends.host_device()
    except UnavailableError:
        return backends.choose("auto", None)


@pytest.fixture(scope="session")
def backend(device: DeviceInfo) -> Iterator[Backend]:
    """The device, opened once for all tests."""
    with closing(backends.open_backend(device, Cache())) as opened:
        yield opened


@pytest.fixture(scope="session")
def kernels(backend: Backend) -> Iterator[DeviceKernels]:
    with closing(DeviceKernels(backend)) as made:
        yield made


@pytest.fixture(autouse=True)
def stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process stores entries of the cache, also after a test that loaded a function in it."""
    monkeypatch.setattr(cache, "_is_sealed", False)


@pytest.fixture(scope="session")
def session(backend: Backend) -> Session:
    """Checks cases in this process, without timing; for good kernels only."""
    return Session(backend, Cache(), Options(timed=False))


#: Shorter sampling than by default, which most small cases on a CPU would use to the full.
SHORT = {"run": {"max_time": 0.02}, "compare": {"max_time": 1.0}}


@contextmanager
def few_rounds() -> Iterator[None]:
    """`run` has two rounds instead of seven."""
    made = WorkerPool.__init__

    def make(pool: WorkerPool, options: Options, *more: Any, **named: Any) -> None:
        rounds = 2 if options.rounds is None else options.rounds
        made(pool, msgspec.structs.replace(options, rounds=rounds), *more, **named)

    with mock.patch.object(WorkerPool, "__init__", make):
        yield


@pytest.fixture(scope="session")
def matbench() -> Iterator[Matbench]:
    """The command line in this process."""

    def invoke(*arguments: str | Path, code: int | None = 0) -> Result:
        words = [str(argument) for argument in arguments]
        with warm.workers(), few_rounds():
            result = CliRunner().invoke(
                main, words, prog_name="matbench", catch_exceptions=False, default_map=SHORT
            )
        if code is not None:
            assert result.exit_code == code, f"{words}: {result.exit_code}\n{result.output}"
        return result

    yield invoke
    warm.WarmProcess.end()


@pytest.fixture(autouse=True)
def collect_here(request: pytest.FixtureRequest) -> Iterator[None]:
    """What is on a GPU is freed by the thread that owns it, not wherever a collection starts."""
    if request.node.get_closest_marker("gpu") is None:
        yield
        return
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture
def write_kernel(tmp_path: Path) -> KernelWriter:
    """Writes `kernel_text(name, ...)` to `NAME.cu` in a folder of this test."""

    def write(name: str = "mine", **parts: str) -> Path:
        return saved(tmp_path / f"{name}.cu", kernel_text(name, **parts))

    return write


#: `make quick` runs the rest: what needs no device, and how one case is measured. It leaves out
#: simulations and pictures as well, which take half the time of what is left.
SLOW = re.compile(
    r"backends|cli|golden/test_golden|gpu|kernels|worker|bench/(?!test_(loop|session)\.)"
    r"|analysis/test_statistics"
    r"|features/(?!explain/sass|\w+/test_(\w*view|explanation|machine_code|speed_and_error|summation_tree))"
    r"|test_(benchmarks|ci|hostile|packaging|pictures|readme)"
)


def pytest_collection_finish() -> None:
    gc.freeze()  # `collect_here` need not look through what was imported


@functools.cache
def is_slow(path: Path) -> bool:
    return SLOW.match(path.relative_to(Path(__file__).parent).as_posix()) is not None


@functools.cache
def is_for_gpus(path: Path) -> bool:
    """Whether any of its tests may be."""
    return path.suffix != ".py" or bool(re.search("gpu|cuda|anywhere", path.read_text("utf-8")))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    only_gpus = config.option.markexpr.startswith("gpu") and collection_path.is_file()
    return True if only_gpus and not is_for_gpus(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_slow(item.path):
            item.add_marker("slow")
        assert is_for_gpus(item.path) or item.get_closest_marker("gpu") is None, "says no gpu"
