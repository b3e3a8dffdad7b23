"""Small kernels whose machine code has a known answer, compiled with the nvcc at hand."""

from __future__ import annotations

from typing import Any

import pytest
from support.machine_code import code_of, followed, needs_nvdisasm

from matbench.analysis.sass import effects, listing, tally, walk
from matbench.analysis.sass.prediction import demand

pytestmark = needs_nvdisasm

#: Each lane reads a word, `STRIDE` words from its neighbour's.
SHARED = """
extern "C" __global__ void k(float *p, int n)
{
    __shared__ float tile[32 * 33];
    for (int i = threadIdx.x; i < 32 * 33; i += 32)
        tile[i] = p[i];
    __syncthreads();
    p[threadIdx.x] = ((volatile float *)tile)[threadIdx.x * STRIDE];
}
"""
GLOBAL = """
extern "C" __global__ void k(float *p, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    ((volatile float *)p)[i] = ((volatile float *)p)[i * STRIDE];
}
"""
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
#: Waits until another block has written, or until what is there is no longer zero.
WAIT = """
extern "C" __global__ void k(float *p, int n)
{
    unsigned now;
    do
        asm volatile("LOAD %0, [%1];" : "=r"(now) : "l"(p) : "memory");
    while (now == 0);
    p[threadIdx.x] = 1.0f;
}
"""


def sources_of(text: str) -> list[str]:
    return list(effects.sources(listing._instruction(0, text, 0, {})))


@pytest.mark.parametrize(("stride", "cycles"), [(1, 1), (2, 2), (32, 32), (33, 1), (0, 1)])
def test_a_bank_conflict_of_known_degree(stride: int, cycles: int) -> None:
    found = followed(SHARED.replace("STRIDE", str(stride)), 0)
    loads = found.traffic["shared loads"]
    assert (loads.cycles, loads.least) == (cycles, 1)
    assert found.traffic["shared stores"].cycles == 33
    assert found.unknown == ()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize(("stride", "sectors", "lines"), [(1, 4, 1), (8, 32, 8), (64, 32, 32)])
def test_coalesced_and_strided_loads(arch: str, stride: int, sectors: int, lines: int) -> None:
    found = followed(GLOBAL.replace("STRIDE", str(stride)), 0, arch=arch, block=64, grid=5)
    loads, stores = found.traffic["global loads"], found.traffic["global stores"]
    assert (loads.sectors, loads.cycles, loads.requested_bytes) == (sectors, lines, 128)
    assert (stores.sectors, stores.cycles) == (4, 1)
    assert found.warps == 2


def test_half_of_a_warp_requests_half_of_the_bytes() -> None:
    source = GLOBAL.replace("const int i", "if (threadIdx.x >= 16) return;\n    const int i")
    found = followed(source.replace("STRIDE", "1"), 0)
    assert found.traffic["global loads"].requested_bytes == 64


@pytest.mark.parametrize(("first", "sectors"), [(0, 4), (4, 5), (8, 4)])
def test_where_a_load_begins_decides_its_sectors(first: int, sectors: int) -> None:
    """Also beside another load that has the same pattern, but begins elsewhere."""
    begins = GLOBAL.replace("[i * STRIDE]", f"[i] + ((volatile float *)p)[i + {first}]")
    assert followed(begins, 0).traffic["global loads"].sectors == 4 + sectors


def test_equal_addresses_of_fewer_lanes_are_fewer_bytes() -> None:
    half = "[i]; if (i < 16) ((volatile float *)p)[i] = ((volatile float *)p)[i]"
    found = followed(GLOBAL.replace("[i * STRIDE]", half), 0)
    assert found.traffic["global loads"].requested_bytes == 128 + 64


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 63, 64, 1000, 65_537])
@pytest.mark.parametrize("unroll", [1, 4])
def test_a_loop_is_counted_exactly_however_it_is_unrolled(n: int, unroll: int) -> None:
    found = followed(LOOP.replace("UNROLL", str(unroll)), n)
    assert found.is_complete, found.unknown
    assert found.classes.get("float32", 0) == n
    loads = found.traffic.get("global loads")
    assert (0 if loads is None else loads.requested_bytes) == 128 * n
    if n >= 64:
        assert found.loop is not None
        assert found.passes == n // unroll


def test_warps_of_different_roles_are_counted_each() -> None:
    """Eight of twelve warps multiply."""
    source = LOOP.replace("i < n", "i < (threadIdx.x < 128 ? 0 : n)").replace("UNROLL", "1")
    found = followed(source, 300, block=384)
    assert found.is_complete, found.unknown
    assert found.classes["float32"] == pytest.approx(300 * 8 / 12)


def test_a_fully_unrolled_loop_is_no_loop() -> None:
    found = followed(LOOP.replace("i < n", "i < 8").replace("UNROLL", "8"), 0)
    assert found.loop is None
    assert found.classes["float32"] == 8


def test_a_branch_taken_every_fourth_pass_is_counted() -> None:
    """Such a loop must not be taken for one whose passes are all alike."""
    body = "sum = sum * p[i * 32 + threadIdx.x] + 1.0f;"
    inner = "for (int j = 0; j < n / 16; ++j) sum += ((volatile float *)p)[j];"
    source = LOOP.replace(body, f"{{ {body} if (i % 4 == 3) {inner} }}").replace("UNROLL", "1")
    for n in (64, 129):
        found = followed(source, n)
        assert found.is_complete
        loads = 128 * (n + n // 4 * (n // 16))
        assert found.traffic["global loads"].requested_bytes == pytest.approx(loads)


#: Loops in loops, of a length that the last pass of the outer one may cut short.
NESTED = """
extern "C" __global__ void k(float *p, int n)
{
    float sum = 0.0f;
    for (int i = 0; i < n; i += 64) {
        const int end = min(n, i + 64);
        for (int j = 0; j < n; ++j)
            for (int k = i; k < end; ++k)
                sum = sum * p[k * 32 + threadIdx.x] + (float)j;
    }
    p[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("n", [64, 130])
def test_loops_in_loops_are_counted_exactly_and_soon(n: int) -> None:
    found = followed(NESTED, n)
    assert found.is_complete, found.unknown
    assert found.traffic["global loads"].requested_bytes == pytest.approx(128 * n * n)


def test_all_warps_together_are_followed_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of many warps takes no longer than one."""
    took: list[int] = []

    def noted(*args: Any, **options: Any) -> walk.Walk:
        found = walk.walk(*args, **options)
        if "full_visits" in options:  # only one of warps that are alike is followed again, in full
            took.append(found.carried_out)
        return found

    monkeypatch.setattr(tally, "walk", noted)
    monkeypatch.setattr(tally, "_MOST_INSTRUCTIONS", 30_000)
    found = followed(NESTED, 640, block=512)
    assert not found.is_complete
    assert any("too many iterations" in why for why in found.unknown)
    assert len(took) < 16
    assert sum(took) < 2 * 30_000


#: A ring of four buffers, each filled by a bulk copy that is waited for.
RING = """
#include <cstdint>
extern "C" __global__ void __launch_bounds__(384, 1) k(float *p, int n)
{
    __shared__ alignas(128) float ring[4][128];
    __shared__ uint64_t ready[4];
    const unsigned first = (unsigned)__cvta_generic_to_shared(ready);
    asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
    unsigned stage = 0, parity = 0;
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) {
        asm volatile("{\\n.reg .pred done;\\nagain:\\n"
                     "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\\n"
                     "@!done bra again;\\n}" :: "r"(first + 8 * stage), "r"(parity) : "memory");
        sum += ((volatile float *)ring[stage])[threadIdx.x];
        stage = stage == 3 ? 0 : stage + 1;
        parity ^= stage == 0;
    }
    p[threadIdx.x] = sum;
}
""".replace("again", "again%=")


@pytest.mark.parametrize("n", [3, 64, 100_001])
def test_waiting_takes_one_pass_and_a_ring_decides_no_branch(n: int) -> None:
    stems = [each.opcode for each in code_of(RING, "sm_90a").function.instructions]
    assert any(stem.startswith("USETMAXREG.TRY_ALLOC") for stem in stems)
    found = followed(RING, n, arch="sm_90a", block=128)
    assert found.is_complete, found.unknown
    assert found.traffic["shared loads"].requested_bytes == 128 * n


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


@pytest.mark.parametrize("stages", [2, 3, 12])
@pytest.mark.parametrize("n", [5, 1000, 100_003])
def test_the_stages_of_a_ring_are_counted_exactly_and_soon(stages: int, n: int) -> None:
    found = followed(STAGES.replace("STAGES", str(stages)), n, 5, block=128)
    assert found.is_complete, found.unknown
    assert found.traffic["global stores"].requested_bytes == 128 * (n + n // stages * 5)


def test_an_access_that_comes_too_late_to_be_seen_is_said() -> None:
    source = STAGES.replace("++stage == STAGES", "i % 128 == 127")
    found = followed(source, 1000, 5)
    assert found.is_complete
    assert sum("the addresses of STG" in why for why in found.unknown) == 1
    assert followed(source, 127, 5).unknown == ()


#: Loops of a ring in a loop: each goes on with the stage at which the last one stopped.
RINGS = """
extern "C" __global__ void k(float *p, int n, int parts, int count)
{
    int stage = 0;
    for (int part = 0; part < parts; ++part) {
        #pragma unroll 1
        for (int i = 0; i < n + part % 2; ++i) {
            p[stage * 32 + threadIdx.x] = (float)i;
            if (++stage == 3) {
                #pragma unroll 1
                for (int j = 0; j < count; ++j)
                    ((volatile float *)p)[threadIdx.x] = 0.0f;
                stage = 0;
            }
        }
        ((volatile float *)p)[threadIdx.x] = 1.0f;
    }
}
"""


@pytest.mark.parametrize(("n", "parts"), [(1000, 7), (16, 40), (333, 25)])
def test_a_ring_goes_on_from_part_to_part(n: int, parts: int) -> None:
    found = followed(RINGS, n, parts, 5)
    assert found.is_complete, found.unknown
    passes = n * parts + parts // 2
    assert found.traffic["global stores"].requested_bytes == pytest.approx(
        128 * (passes + passes // 3 * 5 + parts)
    )


#: One lane works while the others wait for it.
ONE_LANE = """
extern "C" __global__ void k(float *p, int n)
{
    if (threadIdx.x == 0)
        #pragma unroll 1
        for (int i = 0; i < n; ++i)
            ((volatile float *)p)[i % 4] = 1.0f;
    __syncwarp();
    p[threadIdx.x] = 1.0f;
}
"""


def test_one_lane_works_while_others_wait() -> None:
    found = followed(ONE_LANE, 100_000)
    assert found.is_complete, found.unknown
    assert found.traffic["global stores"].requested_bytes == 4 * 100_000 + 128


#: The last block to arrive does what is left.
LAST = """
__device__ unsigned arrived, others[4];
extern "C" __global__ void k(float *p, int n)
{
    __shared__ bool is_last;
    p[blockIdx.x * 32 + threadIdx.x] = 1.0f;
    if (threadIdx.x == 0)
        is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
    if (threadIdx.x == 0 && atomicInc(&others[1], gridDim.x - 1) == gridDim.x - 1)
        for (int i = 0; i < n; ++i)
            ((volatile float *)p)[i] = 2.0f;
}
"""


def test_a_block_is_not_the_last_to_arrive_and_variables_have_addresses() -> None:
    found = followed(LAST, 50, grid=5)
    assert found.is_complete, found.unknown
    assert found.unknown == ()
    stores = found.traffic["global stores"].requested_bytes
    assert stores == 128 + 2 * 4  # its own, and two counters
    added = LAST.replace("atomicInc(&others[1], gridDim.x - 1)", "atomicAdd(&others[1], 1)")
    assert not followed(added, 50, grid=5).is_complete


@pytest.mark.parametrize("step", ["x = x * 5 + 1", "x += i < 70 ? 1 : 3"])
def test_an_address_that_does_not_grow_evenly_is_not_guessed(step: str) -> None:
    last = "p[threadIdx.x] = sum;"
    source = LOOP.replace("UNROLL", "1").replace("float sum", "unsigned x = 0; float sum")
    source = source.replace("        sum = ", f"        {step}, sum = ")
    found = followed(source.replace(last, f"{last} p[x & 1023] = sum;"), 1000)
    assert found.is_complete, found.unknown
    assert sum("the addresses of STG" in why for why in found.unknown) == 1
    even = source.replace(step, "x += 3").replace(last, f"{last} p[x & 1023] = sum;")
    assert followed(even, 1000).unknown == ()


#: Lanes that part, and exchange what they found when they have met again.
PARTING = """
extern "C" __global__ void k(float *p, int n)
{
    float sum = 0.0f;
    if (threadIdx.x % 2)
        for (int i = 0; i < n + (int)threadIdx.x; ++i)
            sum = sum * ((volatile float *)p)[i] + 1.0f;
    sum += __shfl_xor_sync(0xffffffff, sum, 1);
    p[threadIdx.x] = sum;
}
"""


def test_where_lanes_meet_again_is_no_branch() -> None:
    blocks = code_of(PARTING).graph.values()
    meeting = [block for block in blocks if block.instructions[-1].stem == "BSSY"]
    assert meeting
    assert all(block.next == (block.instructions[-1].address + 16,) for block in meeting)


def test_predicates_in_a_register_are_those_of_the_mask() -> None:
    [one] = sources_of("P2R R6, PR, RZ, 0x20")
    assert one == "P5"
    assert list(sources_of("P2R R6, PR, RZ, 0x7f")) == [f"P{i}" for i in range(7)]


def test_what_depends_on_loaded_values_is_said() -> None:
    found = followed(GLOBAL.replace("i * STRIDE", "(int)p[i]"), 0)
    assert any("addresses of LDG" in why for why in found.unknown)
    until = LOOP.replace("i < n", "p[i] > 0.0f").replace("UNROLL", "1")
    found = followed(until, 0)
    assert not found.is_complete
    assert any("depends on loaded values" in why for why in found.unknown)


def test_a_loop_without_end_is_said() -> None:
    found = followed(LOOP.replace("i < n", "n != i * 0 + 7").replace("UNROLL", "1"), 3)
    assert not found.is_complete


def test_spills_are_accesses_to_local_memory() -> None:
    source = """
extern "C" __global__ void __launch_bounds__(1024, 2) k(float *p, int n)
{
    float sum[96];
    #pragma unroll
    for (int j = 0; j < 96; ++j)
        sum[j] = ((volatile float *)p)[j * 32 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int j = 0; j < 96; ++j)
        ((volatile float *)p)[j * 32 + threadIdx.x] = sum[95 - j];
}
"""
    found = followed(source, 0)
    assert found.classes.get("local memory", 0) > 0
    assert (
        "local memory" not in followed(source.replace("__launch_bounds__(1024, 2)", ""), 0).classes
    )


def test_the_most_demanded_resource_binds() -> None:
    conflicts = followed(SHARED.replace("STRIDE", "32"), 0)
    assert next(iter(demand(conflicts, (9, 0)))) == "shared memory"
    assert demand(conflicts, (7, 0)) == {}
    scattered = followed(GLOBAL.replace("STRIDE", "64"), 0)
    assert next(iter(demand(scattered, (9, 0)))) == "L1 cache"


@pytest.mark.parametrize("load", ["ld.acquire.gpu.global.u32", "ld.volatile.global.u32"])
@pytest.mark.parametrize("looks_first", [False, True])
def test_a_wait_for_another_block_ends_at_once(load: str, looks_first: bool) -> None:
    wait = WAIT.replace("LOAD", load)
    if looks_first:  # the loop is entered only if there is something to wait for
        look = 'unsigned now; asm volatile("LOAD %0, [%1];" : "=r"(now) : "l"(p) : "memory");'
        wait = wait.replace("unsigned now;", look.replace("LOAD", load) + " if (now == 0)")
    found = followed(wait, 0)
    assert found.traffic["global stores"].cycles >= 1
    assert found.unknown == ()
    scan = wait.replace(load, "ld.global.u32").replace('"l"(p)', '"l"(p + n++)')
    plain = followed(scan, 0)
    assert any("depends on loaded values" in reason for reason in plain.unknown)
