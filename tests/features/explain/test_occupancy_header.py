"""Occupancy compared with NVIDIA's `cuda_occupancy.h`, which comes with nvcc."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from support.nvcc import find_nvcc

from matbench.analysis.architectures import ARCHITECTURES, WARP, Architecture
from matbench.features.explain.occupancy import occupancy

#: Reads a device and a kernel per line, and prints the resident blocks per multiprocessor.
ASKS_THE_HEADER = r"""
#include <climits>
#include <cstdio>
#include <cstring>
#include "cuda_occupancy.h"

int main()
{
    cudaOccDeviceProp device;
    int threads, registers, fixed, sized;
    unsigned long block_bytes, bytes, opted_in, reserved;
    while (scanf("%d %d %d %d %d %d %d %lu %lu %lu %lu %d %d %d %d",
                 &device.computeMajor, &device.computeMinor, &device.maxThreadsPerBlock,
                 &device.maxThreadsPerMultiprocessor, &device.regsPerBlock,
                 &device.regsPerMultiprocessor, &device.warpSize, &block_bytes, &bytes, &opted_in,
                 &reserved, &threads, &registers, &fixed, &sized) == 15) {
        device.numSms = 1;
        device.sharedMemPerBlock = block_bytes;
        device.sharedMemPerMultiprocessor = bytes;
        device.sharedMemPerBlockOptin = opted_in;
        device.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = INT_MAX;
        kernel.numRegs = registers;
        kernel.sharedSizeBytes = fixed;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = sized;
        kernel.numBlockBarriers = 1;
        kernel.virtualResourceCount = 0;
        cudaOccDeviceState state;
        cudaOccResult result;
        cudaOccError status = cudaOccMaxActiveBlocksPerMultiprocessor(
            &result, &device, &kernel, &state, threads, sized);
        printf("%d\n", status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1);
    }
    return 0;
}
"""
#: Architectures in the header of CUDA 13; it no longer has 1.x and 2.x.
KNOWN = [a for a in ARCHITECTURES if a.compute_capability >= (3, 0)]
CASES = 1000


@pytest.fixture(scope="module")
def header(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, or no host compiler for it")
    folder = tmp_path_factory.mktemp("occupancy")
    source, program = folder / "asks.cpp", folder / "asks"
    source.write_text(ASKS_THE_HEADER, encoding="utf-8")
    done = subprocess.run(
        [nvcc, "-cudart", "none", "-o", program, source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("a", KNOWN, ids=lambda a: a.name)
def test_as_many_blocks_as_the_header_says(a: Architecture, header: Path) -> None:
    draw = random.Random(a.name)
    kernels = [
        (
            draw.choice([draw.randint(1, 1024), 32 * draw.randint(1, 32)]),
            draw.randint(1, a.registers_per_thread),
            draw.choice([0, draw.randint(0, 16384)]),
            draw.choice([0, draw.randint(0, a.largest_shared_bytes + 2048)]),
        )
        for _ in range(CASES)
    ]
    device = (
        *a.compute_capability, a.threads_per_block, a.threads, a.registers_per_block, a.registers,
        WARP, a.shared_bytes_per_block, a.shared_bytes, a.largest_shared_bytes,
        a.reserved_shared_bytes,
    )  # fmt: skip
    lines = [" ".join(map(str, (*device, *kernel))) for kernel in kernels]
    said = subprocess.run(
        [header], input="\n".join(lines), capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(said) == CASES
    apart = {}
    for kernel, blocks in zip(kernels, map(int, said), strict=True):
        threads, registers, fixed, sized = kernel
        mine = occupancy(a, threads, registers=registers, shared_bytes=fixed + sized).blocks
        if mine != blocks:
            apart[kernel] = mine, blocks
    assert apart == {}
