"""What tests share: folders of their own, one open device, and the command line in-process."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from click.testing import CliRunner, Result

from matbench import backends
from matbench.cache import Cache
from matbench.cli import main
from matbench.measure.options import Options
from matbench.measure.session import Session
from matbench.model import DeviceInfo

# Where tests run in the background Ctrl-C is ignored, and so it would be in what they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: What makes rich or click believe in a terminal that is not there, or hides one that is.
TERMINAL_VARIABLES = (
    "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cache for all tests, so that nothing is built twice; never the user's."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("CACHE", "STATE"):
            folder = tmp_path_factory.mktemp(kind.lower())
            folder.chmod(0o700)
            patch.setenv(f"MATBENCH_{kind}_DIR", str(folder))
        for name in TERMINAL_VARIABLES:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def device(own_folders: None) -> DeviceInfo:
    """The OpenCL CPU device; on a machine without one, what `auto` takes."""
    try:
        return backends.host_device()
    except backends.UnavailableError:
        return backends.choose("auto", None)


@pytest.fixture(scope="session")
def backend(device: DeviceInfo) -> Iterator[backends.Backend]:
    """The device, opened once for all tests."""
    opened = backends.open_backend(device, Cache())
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def session(backend: backends.Backend) -> Session:
    """Checks every case in this process, and times none; good kernels only."""
    return Session(backend, Cache(), Options(timed=False))


class Matbench(Protocol):
    """Runs the command line in this process; without `code` any exit code will do."""

    def __call__(self, *arguments: str | Path, code: int | None = 0) -> Result: ...


@pytest.fixture(scope="session")
def matbench() -> Matbench:
    def invoke(*arguments: str | Path, code: int | None = 0) -> Result:
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(main, words, prog_name="matbench", catch_exceptions=False)
        if code is not None:
            assert result.exit_code == code, f"{words}: {result.exit_code}\n{result.output}"
        return result

    return invoke


KernelWriter = Callable[..., Path]

GOOD_BODY = """
extern "C" __global__ void ENTRY(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = sum;
}
"""

#: Computes for many seconds and then ends, so that a deadline or Ctrl-C comes first.
SPIN_BODY = """
extern "C" __global__ void ENTRY(const float *A, const float *B, float *C, int M, int N, int K)
{
#ifdef __CUDACC__
    const long long end = clock64() + 16000000000;
    while (clock64() < end) { }
#else
    volatile long turn = 0;
    while (turn < 20000000000)
        turn = turn + 1;
#endif
    C[0] = 1;
}
"""


def kernel_text(name: str = "mine", *, front: str = "", launch: str = "", body: str = "") -> str:
    """A kernel file; `front` and `launch` are lines of TOML for the top and for `[launch]`."""
    toml = f'name = "{name}"\nsummary = "For a test"\n{front}\n[sweep]\nTILE = [8]\n[launch]\n'
    toml += launch or 'block = ["TILE", "TILE"]\ngrid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]'
    lines = "\n".join(f"// {line}".rstrip() for line in toml.splitlines())
    entry = name.replace("-", "_")
    return f"// /// matbench\n{lines}\n// ///\n" + (body or GOOD_BODY).replace("ENTRY", entry)


@pytest.fixture
def write_kernel(tmp_path: Path) -> KernelWriter:
    """Writes `kernel_text(name, ...)` to `NAME.cu` in a folder of this test."""

    def write(name: str = "mine", **parts: str) -> Path:
        path = tmp_path / f"{name}.cu"
        path.write_text(kernel_text(name, **parts), encoding="utf-8")
        return path

    return write
