"""A kernel that changes the clock of its process harms neither its neighbour nor the table."""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import toml
from support.kernels import GOOD_BODY, KernelWriter
from support.optional import present, some
from support.paths import KERNELS
from support.products import case_of, right

from matbench.backends.protocol import Backend
from matbench.bench.options import Deadlines, Options
from matbench.bench.session import Session
from matbench.errors import BuildError, CaseError
from matbench.kernelfile import catalogue
from matbench.model import Case, DeviceInfo
from matbench.records.outcome import Outcome
from matbench.worker.worker import Worker, WorkerPool

IS_POSSIBLE = sys.platform == "linux" and platform.machine() == "x86_64"
_PROT_ALL = 7


def _vdso() -> tuple[int, bytes]:
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("[vdso]"):
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            return start, ctypes.string_at(start, end - start)
    raise OSError("no vDSO")


def _offset(image: bytes, wanted: bytes) -> int:
    """Where an ELF image has a function, by its dynamic symbols."""
    sections, size, count = (
        struct.unpack_from("<Q", image, 40)[0],
        *struct.unpack_from("<HH", image, 58),
    )
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, sections + size * i) for i in range(count)]
    symbols = next(header for header in headers if header[1] == 11)
    names = headers[symbols[6]][4]
    for at in range(symbols[4], symbols[4] + symbols[5], 24):
        name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", image, at)
        if image[names + name :].startswith(wanted + b"\0"):
            return int(value)
    raise OSError("no such function")


def slow_down() -> None:
    """From now on, each look at a clock is 1 µs after the one before, whatever time passes."""
    start, image = _vdso()
    place = start + _offset(image, b"__vdso_clock_gettime")
    seconds, ns = divmod(time.perf_counter_ns(), 10**9)
    counter = mmap.mmap(-1, mmap.PAGESIZE)
    counter[:8] = struct.pack("<q", ns)
    held = ctypes.addressof(ctypes.c_char.from_buffer(counter))
    _kept.append(counter)
    code = b"\x48\xb8" + struct.pack("<Q", held)  # mov rax, held
    code += b"\xb9\xe8\x03\x00\x00"  # mov ecx, 1000
    code += b"\xf0\x48\x0f\xc1\x08"  # lock xadd [rax], rcx
    code += b"\x48\xb8" + struct.pack("<Q", seconds)  # mov rax, seconds
    code += b"\x48\x89\x06\x48\x89\x4e\x08\x31\xc0\xc3"  # [rsi] = rax; [rsi + 8] = rcx; return 0
    body = mmap.mmap(-1, mmap.PAGESIZE, prot=_PROT_ALL)
    body[: len(code)] = code
    _kept.append(body)
    code = b"\x48\xb8" + struct.pack("<Q", ctypes.addressof(ctypes.c_char.from_buffer(body)))
    code += b"\xff\xe0"  # jmp rax
    page = place & -mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(page), 2 * mmap.PAGESIZE, _PROT_ALL):
        raise OSError(ctypes.get_errno(), "mprotect")
    ctypes.memmove(place, code, len(code))


_kept: list[mmap.mmap] = []


pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="needs Linux on x86-64")
OPTIONS = Options(uncertainty=1e9, max_time_s=0.05, minimum_samples=3, blocks=False)


def measured_meanwhile(session: Session, case: Case, task: str) -> Outcome:
    """What a kernel does that changes the clock while it is measured."""
    if task == "all clocks":
        slow_down()
    else:  # the runtime's alone
        session.backend.clock_agrees = lambda: False  # type: ignore[method-assign]
    return session.measure(case)


@pytest.fixture
def worker(device: DeviceInfo) -> Iterator[Worker]:
    with WorkerPool(OPTIONS, Deadlines()) as pool:
        yield pool.worker(device)


def test_a_kernel_that_could_change_it_is_refused_and_the_next_is_measured(
    worker: Worker, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    cheat = KERNELS / "cheats" / "cheat-pasted-assembly.cu"
    refused = worker.measure(case_of(cheat, 128, device))
    assert (refused.status, refused.median_ns) == ("failed", None)
    assert "inline assembly needs CUDA" in present(refused.reason)
    assert worker.measure(case_of(write_kernel(), 128, device, TILE=16)).status == "measured"


#: Ways to write assembly: before the kernel, and in it.
WAYS = toml.table(Path(__file__).with_name("assembly.toml"))


@pytest.mark.parametrize("way", WAYS)
def test_assembly_is_refused_anyhow(way: str, backend: Backend, write_kernel: KernelWriter) -> None:
    head, statement = WAYS[way]
    body = head + GOOD_BODY.replace("float sum", f"{statement} float sum", 1)
    with pytest.raises(BuildError, match="inline assembly needs CUDA"):
        backend.build(catalogue.load(write_kernel(body=body)), {"TILE": 8})


@pytest.mark.parametrize("what", some(["all clocks", "events"], "all clocks"))
def test_a_changed_clock_fails_its_case_and_not_the_next(
    what: str, worker: Worker, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    case = case_of(write_kernel(), 128, device, TILE=16)
    before = right(worker, case)
    with pytest.raises(CaseError, match="clock of its process is no longer the system's"):
        worker.run(measured_meanwhile, case, what)
    after = right(worker, case)
    honest, next_ = (present(outcome.median_ns) for outcome in (before, after))
    assert honest / 10 < next_ < honest * 10


def test_what_the_clock_says_otherwise(
    worker: Worker, device: DeviceInfo, write_kernel: KernelWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: without a look at the clock, the next kernel takes a few microseconds."""
    monkeypatch.setattr(Worker, "_require_clock", lambda _: None)
    case = case_of(write_kernel(), 128, device, TILE=16)
    assert worker.unfit(case) is None
    before = worker.measure(case)
    worker.run(measured_meanwhile, case, "all clocks")
    after = worker.measure(case)
    assert after.status in ("measured", "wrong")
    assert after.status == "wrong" or (present(after.median_ns) < present(before.median_ns) / 10)
