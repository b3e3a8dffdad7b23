"""Small kernels whose machine code has a known answer, compiled with the nvcc at hand."""

from __future__ import annotations

import pytest
from support.machine_code import followed, needs_nvdisasm

pytestmark = needs_nvdisasm

LOOP = """
extern "C" __global__ void k(float *p, int n)
{
    float sum = 0.0f;
    #pragma unroll UNROLL
    for (int i = 0; i < n; ++i)
        sum = sum * p[i * 32 + threadIdx.x] + 1.0f;
    p[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("unroll", [1, 4])
def test_a_loop_is_counted_exactly_however_it_is_unrolled(unroll: int) -> None:
    for n in (0, 1, 3, 4, 5, 63, 64, 1003):
        found = followed(LOOP.replace("UNROLL", str(unroll)), n)
        assert found.is_complete, found.unknown
        assert found.classes.get("float32", 0) == n
        loads = found.traffic.get("global loads")
        assert (0 if loads is None else loads.requested_bytes) == 128 * n
        if n >= 64:
            assert found.loop is not None
            assert found.passes == n // unroll


#: A product of a warp by one instruction of tensor cores, in a loop.
TENSOR = """
extern "C" __global__ void k(float *p, int n)
{
    SUM d[4] = {};
    unsigned a = threadIdx.x;
    #pragma unroll 1
    for (int i = 0; i < n; ++i)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.TYPES {%0,%1,%2,%3}, "
                     "{%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
                     : "+REG"(d[0]), "+REG"(d[1]), "+REG"(d[2]), "+REG"(d[3]) : "r"(a));
    for (int i = 0; i < 4; ++i)
        p[threadIdx.x + i] = d[i];
}
"""


@pytest.mark.parametrize(
    ("types", "total", "arch", "rate"),
    [("f32.e4m3.e4m3.f32", "float", "sm_89", None), ("s32.s8.s8.s32", "int", "sm_89", 1024),
     pytest.param("s32.u8.s8.s32", "int", "sm_80", 2048, marks=pytest.mark.long),
     pytest.param("s32.s8.s8.s32", "int", "sm_90", 4096, marks=pytest.mark.long)],
)  # fmt: skip
def test_tensor_cores_of_8_bit_operands(
    types: str, total: str, arch: str, rate: int | None
) -> None:
    register = "f" if total == "float" else "r"
    source = TENSOR.replace("TYPES", types).replace("SUM", total).replace("REG", register)
    found = followed(source, 100, arch=arch)
    assert found.is_complete, found.unknown
    assert found.classes["tensor"] == 100
    if rate is None:
        [missing] = found.unknown
        assert (missing.what, missing.name) == ("rate", "QMMA.16832.F32.E4M3.E4M3")
    else:
        assert found.tensor_cycles == pytest.approx(100 * 16 * 8 * 32 / rate)


#: A ring whose stages decide branches: the last one stores.
STAGES = """
extern "C" __global__ void k(float *p, int n, int count)
{
    int stage = 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        p[stage * 32 + threadIdx.x] = (float)i;
        if (++stage == STAGES) {
            #pragma unroll 1
            for (int j = 0; j < count; ++j)
                ((volatile float *)p)[threadIdx.x] = 0.0f;
            stage = 0;
        }
    }
}
"""


@pytest.mark.parametrize("stages", [pytest.param(2, marks=pytest.mark.long), 3, 32])
def test_the_stages_of_a_ring_are_counted_exactly(stages: int) -> None:
    for n in (5, 1000):
        found = followed(STAGES.replace("STAGES", str(stages)), n, 5, block=128)
        assert found.is_complete, found.unknown
        assert found.traffic["global stores"].requested_bytes == 128 * (n + n // stages * 5)


def test_an_access_that_comes_late_is_seen() -> None:
    source = STAGES.replace("++stage == STAGES", "i % 128 == 127")
    found = followed(source, 1000, 5)
    assert found.is_complete
    assert found.unknown == ()


@pytest.mark.parametrize("step", ["x = x * 5 + 1", "x += i < 70 ? 1 : 3", "x += 3"])
def test_an_address_that_decides_no_branch_is_not_guessed(step: str) -> None:
    last = "p[threadIdx.x] = sum;"
    source = LOOP.replace("UNROLL", "1").replace("float sum", "unsigned x = 0; float sum")
    source = source.replace("        sum = ", f"        {step}, sum = ")
    found = followed(source.replace(last, f"{last} p[x & 1023] = sum;"), 1000)
    assert found.is_complete, found.unknown
    [missing] = found.unknown
    assert (missing.what, missing.name.split(".")[0]) == ("addresses", "STG")
