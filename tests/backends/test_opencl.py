"""The OpenCL backend on a real device: selection, memory, builds, arguments, clocks."""

from __future__ import annotations

import ctypes
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from support.kernels import kernel_text, saved, text_of
from support.paths import programs
from support.sources import ONE, launched

from matbench import backends, cache
from matbench.backends.opencl import OpenCLBackend, cl
from matbench.backends.protocol import STAMP_WORDS, Argument, Backend, Variant, Work
from matbench.bench.device_kernels import DeviceKernels
from matbench.bench.kernel_arguments import Memory
from matbench.bench.matrices import Extent, allocated
from matbench.cache import Cache
from matbench.errors import BuildError, CaseError, LackingError
from matbench.kernelfile import catalogue
from matbench.model import Kernel, Launch

#: Ways to include `amount.h`, the last of them by `nested.h`.
INCLUDED = [
    '#include "amount.h"', "#include <amount.h>", '#define H "amount.h"\n#include H',
    '/* first */ #include "amount.h"', '#\\\ninclude "amount.h"', "#include <nested.h>",
]  # fmt: skip


def kernel_of(tmp_path: Path, text: str) -> Kernel:
    return catalogue.load(saved(tmp_path / "mine.cu", text))


# -- devices -------------------------------------------------------------------------------------


LOOK = programs(__file__)["looks for devices"]


def looked(*arguments: str, **variables: str) -> str:
    """The output of a separate process about OpenCL devices."""
    known = {name: text for name, text in os.environ.items() if name != "OCL_ICD_VENDORS"}
    done = subprocess.run(
        [sys.executable, "-c", LOOK, *arguments],
        capture_output=True, text=True, env={**known, **variables}, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def intel() -> None:
    if not Path(sys.prefix, "lib", "libintelocl.so").exists():
        pytest.skip("needs Intel's OpenCL runtime from wheels")
    if Path("/etc/OpenCL/vendors").exists():
        pytest.skip("needs a machine without other runtimes")


@pytest.mark.usefixtures("intel")
def test_why_a_runtime_does_not_start_is_said(tmp_path: Path) -> None:
    for library in ("libsvml", "libintelocl"):
        assert re.fullmatch(
            rf"Intel's OpenCL runtime cannot be loaded \({library}\.so: cannot allocate memory\)",
            looked(library),
        )
    gone = str(tmp_path / "gone")
    assert looked(OCL_ICD_VENDORS=gone) == (
        f"no OpenCL runtime in OCL_ICD_VENDORS = {gone} starts; unset OCL_ICD_VENDORS"
    )


@pytest.mark.usefixtures("intel")
def test_no_other_process_depends_on_where_runtimes_were_listed() -> None:
    assert looked() == "1 found; None"


# -- builds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["__device__ half x;", "__device__ __half x;"])
def test_what_only_cuda_has_is_explained(line: str, opencl: Backend, tmp_path: Path) -> None:
    kernel = kernel_of(tmp_path, kernel_text(body=f"{line}\n{kernel_text()}"))
    with pytest.raises(BuildError) as refused:
        opencl.build(kernel, {"TILE": 8})
    assert re.fullmatch(rf"needs CUDA \(`{line.split()[1]}`, line \d+\)", refused.value.reason)


def test_what_cudas_compiler_knows_is_no_mistake(opencl: Backend, tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text("__device__ int inner() { return __clz(1); }")

    def refused(call: str) -> tuple[type, str]:
        text = kernel_text().replace("float sum", f"{call}; float sum")
        text = text.replace('extern "C"', '#include "mine.h"\nextern "C"')
        with pytest.raises(BuildError) as error:
            opencl.build(kernel_of(tmp_path, text), {"TILE": 8})
        return error.type, error.value.reason

    for call in (
        "__trap()", "clock64()", "(void)warpSize", "__popc(1)", "__frsqrt_rn(2.0f)", "__ldcg(A)",
        "__syncthreads_or(1)", "atomicCAS(C, 1, 2)", "__expf(1.0f)", "make_float3(1, 2, 3)",
    ):  # fmt: skip
        what = call.removeprefix("(void)").partition("(")[0]
        assert refused(call) == (LackingError, f"needs CUDA (`{what}`, line 19)")
    assert refused("inner()") == (LackingError, "needs CUDA (`__clz`, line 1 of mine.h)")
    for mistake in ("__syncthread", "clockwise", "make_it"):
        kind, reason = refused(f"{mistake}()")
        assert kind is BuildError
        assert f"undeclared identifier '{mistake}'" in reason


def test_functions_of_c_with_float(opencl: Backend, tmp_path: Path) -> None:
    """Each as CUDA has it, also where a kernel has other uses for the names of built-ins."""
    sums = (
        "int clock = 1, warpSize = 2; C[0] = clock + warpSize + rsqrtf(4) + cbrtf(8) + powf(2, 3)"
    )
    text = kernel_text(body=f"{{ {sums}; }}")
    [found] = launched(opencl, opencl.build(kernel_of(tmp_path, text), {"TILE": 8}), 1, 1, 1, 1)
    assert found == pytest.approx(13.5)


def amount_of(opencl: Backend, folder: Path, lines: str) -> float:
    """The kernel's output when these lines define AMOUNT."""
    text = kernel_text(body="{ C[0] = AMOUNT; }")
    kernel = kernel_of(folder, text.replace("// ///\n", f"// ///\n{lines}\n"))
    [found] = launched(opencl, opencl.build(kernel, {"TILE": 8}), 1, 1, 1, 1)
    return found


@pytest.mark.parametrize("lines", INCLUDED)
def test_headers_are_those_beside_the_kernel_as_they_are_now(
    lines: str, opencl: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of the working folder is taken."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "nested.h").write_text('#include "amount.h"\n')
    for name in ("amount.h", "nested.h"):
        (tmp_path / name).write_text("#define AMOUNT 1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BuildError, match=r"AMOUNT|amount"):
        amount_of(opencl, folder, lines)
    for amount in (3, 4):
        (folder / "amount.h").write_text(f"#define AMOUNT {amount}\n")
        assert amount_of(opencl, folder, lines) == amount
    assert Path.cwd() == tmp_path


def test_nothing_is_kept_of_a_kernel_with_headers(opencl: Backend, tmp_path: Path) -> None:
    """They may change between the reading of the kernel and its build, and change back."""
    (tmp_path / "amount.h").write_text("#define AMOUNT 1\n")
    cache = Cache(tmp_path / "cache")
    assert amount_of(backends.open_backend(opencl.info, cache), tmp_path, INCLUDED[0]) == 1
    assert list(cache.folder.glob("*")) == []


def test_a_source_that_cannot_be_translated_does_not_build(opencl: Backend, tmp_path: Path) -> None:
    lost = msgspec.structs.replace(kernel_of(tmp_path, kernel_text()), entry="nothing")
    with pytest.raises(BuildError, match="no entry `__global__ void nothing"):
        opencl.build(lost, {"TILE": 8})


def test_only_modern_devices_are_asked(opencl: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    for version in ("1.2", "3.0"):
        monkeypatch.setattr(cl.Device, "opencl_c_version", f"OpenCL C {version} any")
        opened = OpenCLBackend(opencl.info, Cache())
        asked.append(opened.language)
        opened.close()
    assert asked == [[], ["-cl-std=CL3.0"]]


def test_its_name_tells_runtime_settings(opencl: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CL_CONFIG_USE_VECTORIZER", "False")
    changed = backends.devices("opencl")[0]
    assert changed.toolkit == f"{opencl.info.toolkit}, CL_CONFIG_USE_VECTORIZER=False"


#: Changes of a build that the cache has no code for; of all but the device it has no text either.
CHANGES: list[dict[str, Any]] = [
    {"text": kernel_text().replace("sum +=", "sum = sum +")},
    {"file": "renamed.cu"},  # messages name it
    {"tile": 9},
    {"variant": "clocked"},
    *({name: "another"} for name in ("name", "driver", "toolkit")),
]


def test_a_second_process_need_not_compile_unless_something_changed(
    opencl: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")

    def made(
        text: str = kernel_text(), file: str = "mine.cu", tile: int = 8,
        variant: Variant = "plain", width: int = 32, **device: str,
    ) -> int:  # fmt: skip
        """The number of entries that a build in a new process adds to the cache."""
        (tmp_path / file).write_text(text)
        before = len(list(cache.folder.glob("*")))
        opened = backends.open_backend(msgspec.structs.replace(opencl.info, **device), cache)
        kernel = catalogue.load(tmp_path / file)
        opened.build(kernel, {"TILE": tile}, variant, block_width=width)
        return len(list(cache.folder.iterdir())) - before

    assert (made(), made()) == (2, 0)
    for change in CHANGES:
        of_device = change.keys() <= {"name", "driver", "toolkit"}
        assert made(**change) == (1 if of_device else 2), change
    assert made(width=8) == opencl.takes_vector_hint
    monkeypatch.setattr(
        f"{OpenCLBackend.__module__}.revision", lambda: "another"
    )  # of what translates
    assert made() == 1


def test_a_changed_prelude_is_another_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tmp_path / "kernelfile" / "device_code" / "opencl.h"
    header.parent.mkdir(parents=True)
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "cache.py"))
    found = []
    for text in ("one", "another"):
        header.write_text(text)
        found.append(cache.revision.__wrapped__())
    assert len({*found}) == 2


CPLUSPLUS = text_of("cplusplus.cu")


@pytest.mark.parametrize("variant", ["plain", "clocked"])
def test_a_kernel_in_cplusplus(
    variant: Variant, opencl: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = kernel_text(front='entry = "ns::mine<TILE>"', body=CPLUSPLUS)
    kernel = kernel_of(tmp_path, text)
    monkeypatch.setattr("matbench.backends.opencl._CPLUSPLUS", ("-cl-std=none",))
    with pytest.raises(BuildError, match=r"mine\.cu:\d+:1: error: unknown type name 'namespace'"):
        opencl.build(kernel, {"TILE": 5}, variant)  # a runtime that only knows C
    monkeypatch.undo()
    program = opencl.build(kernel, {"TILE": 5}, variant)
    stamps = opencl.allocate(8 * STAMP_WORDS)
    more = [stamps] if variant == "clocked" else []
    assert launched(opencl, program, 1, 1, 7, 1, *more) == [5 * 3 * 2 * 7]
    opencl.release(stamps)


def test_shared_memory_is_as_large_as_the_launch_says(opencl: Backend, tmp_path: Path) -> None:
    program = opencl.build(kernel_of(tmp_path, kernel_text(body=text_of("words.cu"))), {"TILE": 1})
    count = opencl.info.limits["max_shared_bytes_per_block"] // 4
    launch = Launch((1, 1, 1), (1, 1, 1), 4 * count)
    found = launched(opencl, program, 1, 1, count, 1, launch=launch)
    assert found == [np.float32(count * (count - 1) // 2)]


# -- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("agreed_first", [True, False])
def test_a_clock_that_agreed_at_first_must_still_agree(
    agreed_first: bool, opencl: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = OpenCLBackend(opencl.info, Cache())
    with monkeypatch.context() as patched:
        if not agreed_first:
            patched.setattr(time, "perf_counter_ns", lambda: 0)
        assert opened.clock_agrees()
    assert opened.clock_agrees()
    monkeypatch.setattr(time, "perf_counter_ns", lambda: 0)
    assert opened.clock_agrees() is not agreed_first


def test_launches_take_time(opencl: Backend, tmp_path: Path) -> None:
    body = "{ volatile float sum = 0; for (int i = 0; i < N; ++i) sum += i; C[0] = sum; }"
    program = opencl.build(kernel_of(tmp_path, kernel_text(body=body)), {"TILE": 1})
    C = opencl.allocate(4)

    def arguments(turns: int) -> list[Argument]:
        return [C, C, C, 1, turns, 1]

    def best(turns: int) -> float:
        work = Work([program.call(ONE, arguments(turns))], is_cold=True)
        return min(opencl.timed_ns(work) for _ in range(5))

    short = long = hot = math.inf
    for _ in range(20):  # until other programs let it
        short, long = min(short, best(100_000)), min(long, best(1_000_000))
        call = program.call(ONE, arguments(1_000_000))
        hot = min(hot, opencl.timed_ns(Work([call, call], ready=call.run)))
        if 2 < long / short < 50 and 0.2 < hot / long < 5:
            break
    assert 0 < short < long
    assert 2 < long / short < 50
    assert 0.2 < hot / long < 5
    with pytest.raises(CaseError, match="--method graph needs CUDA"):
        opencl.timed_ns(Work([program.call(ONE, arguments(1))], is_graph=True))
    assert 0.001 < opencl.ticks_per_ns(np.zeros((1, 5), np.uint64)) < 10
    opencl.release(C)


# -- the judge on the device ---------------------------------------------------------------------


@pytest.fixture
def memory(backend: Backend) -> Iterator[Memory]:
    with Memory(backend) as made:
        yield made


@pytest.mark.parametrize("word_bytes", [2, 4])
@pytest.mark.parametrize(
    ("offset", "told"),
    [
        (-1, "1 before its start"),
        (-64, "64 before"),
        (0, None),
        (34, None),
        (35, "1 after its end"),
        (99, "65 after its end"),
    ],
)
def test_a_guard_tells_where_it_was_written(
    offset: int, told: str | None, word_bytes: int, kernels: DeviceKernels, memory: Memory
) -> None:
    """35 numbers of 2 bytes end in the middle of a word of 4."""
    [C] = allocated(memory, kernels, [Extent("C", 5, 7, 7, word_bytes, 0x7FC3)], 1)
    assert C.arena.damage() is None
    kernels.fill(C.arena.buffer, C.start // word_bytes + offset, 1, 1, word_bytes)
    broken = C.arena.damage()
    if told is None:
        assert broken is None
    else:
        assert broken is not None
        assert broken.startswith("wrote outside C: 1 element")
        assert told in broken
        assert C.arena.damage() is None  # it was restored


def test_memory_is_mapped_until_it_is_unmapped(opencl: Backend) -> None:
    assert isinstance(opencl, OpenCLBackend)
    buffer = opencl.allocate(64)
    count = cl.mem_info.MAP_COUNT
    place = opencl.mapped(buffer)
    assert buffer.handle.get_info(count) == 1
    ctypes.memset(place.value, 3, 64)
    opencl.unmap(place)
    opencl.synchronize()
    assert buffer.handle.get_info(count) == 0
    read = np.zeros(64, np.uint8)
    opencl.read(buffer, read)
    assert (read == 3).all()
