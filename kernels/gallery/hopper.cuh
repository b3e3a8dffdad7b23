// What kernels for Hopper (sm_90a) share: barriers in shared memory, clusters of blocks, the copy
// engine (TMA), and products that a warpgroup of four warps starts together (wgmma). Addresses in
// shared memory are numbers of 32 bits.
#pragma once

#include <cuda.h>
#include <cstdint>

// -- Barriers in shared memory -------------------------------------------------------------------

// An mbarrier counts arrivals, and bytes that the copy engine delivers. Its phase ends when `count`
// arrivals and all announced bytes have come; then the next phase begins.
static __device__ __forceinline__ void init_barrier(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Arrives, and announces the bytes that must arrive too.
static __device__ __forceinline__ void arrive_and_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

// Arrives at the same barrier in another block of the cluster.
static __device__ __forceinline__ void arrive_in(unsigned block, unsigned barrier)
{
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}" :: "r"(barrier), "r"(block) : "memory");
}

// Once all lanes of a warp are here, it arrives at the same barrier in both blocks of the cluster.
static __device__ __forceinline__ void arrive_in_both(unsigned barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 < 2)
        arrive_in(threadIdx.x % 32, barrier);
}

// Waits until the phase with this parity (0 or 1) has ended. Parities alternate, and the first phase
// has parity 0: at a new barrier a wait for parity 1 returns at once.
static __device__ __forceinline__ void wait(unsigned barrier, unsigned phase)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" :: "r"(barrier), "r"(phase) : "memory");
}

// Makes new barriers visible to the whole cluster.
static __device__ __forceinline__ void publish_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Waits for all threads of the cluster. The arrival is relaxed: it orders no earlier stores.
static __device__ __forceinline__ void synchronize_cluster()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::: "memory");
}

// -- The copy engine -----------------------------------------------------------------------------

// Fetches a tensor map itself, before the first box needs it.
static __device__ __forceinline__ void prefetch_map(const CUtensorMap &map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(&map) : "memory");
}

// Starts to fetch a box of the matrix to this block's shared memory; elements outside the matrix arrive as
// zeros.
static __device__ __forceinline__ void fetch(unsigned to, const CUtensorMap &map, int column,
                                             int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

// Starts to fetch it to several blocks of the cluster, one per bit of `blocks`, to the same place; each
// block's barrier counts its bytes.
static __device__ __forceinline__ void fetch_for(unsigned blocks, unsigned to,
                                                 const CUtensorMap &map, int column, int row,
                                                 unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"((short)blocks)
                 : "memory");
}

// The same with a cache policy: see evict_first_policy.
static __device__ __forceinline__ void fetch(unsigned to, const CUtensorMap &map, int column,
                                             int row, unsigned barrier, uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "l"(policy)
                 : "memory");
}

static __device__ __forceinline__ void fetch_for(unsigned blocks, unsigned to,
                                                 const CUtensorMap &map, int column, int row,
                                                 unsigned barrier, uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"((short)blocks),
                    "l"(policy) : "memory");
}

// The policy for what is read only once: the L2 cache evicts it first.
static __device__ __forceinline__ uint64_t evict_first_policy()
{
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// Starts to fetch bytes that lie one after the other in memory.
static __device__ __forceinline__ void fetch(unsigned to, const char *from, unsigned bytes,
                                             unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

static __device__ __forceinline__ void fetch_for(unsigned blocks, unsigned to, const char *from,
                                                 unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier), "h"((short)blocks) : "memory");
}

// Starts to write a box to the matrix; what lies outside is not written.
static __device__ __forceinline__ void store_box(const CUtensorMap &map, unsigned from, int column,
                                               int row)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;"
                 :: "l"(&map), "r"(column), "r"(row), "r"(from) : "memory");
}

// Waits until at most LATER boxes of this thread have still to be read from shared memory.
template <int LATER>
static __device__ __forceinline__ void wait_until_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(LATER) : "memory");
}

// Makes ordinary stores to shared memory visible to the copy engine and the tensor cores.
static __device__ __forceinline__ void publish_stores()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Makes ordinary stores to any memory visible to the copy engine. Every thread calls it after its
// stores, then the threads synchronize, and the thread that starts the copies calls it again.
static __device__ __forceinline__ void publish_all_stores()
{
    asm volatile("fence.proxy.async;" ::: "memory");
}

// -- All blocks of the grid ----------------------------------------------------------------------

// A barrier for the grid; one thread of each block calls it, and all blocks must run at the same
// time. What that thread has written or seen before is visible to the other blocks afterwards. The
// last arrival flips the counter's top bit, whatever it was, so the counter need not be reset.
// Traps instead of waiting for ever.
static __device__ __forceinline__ void synchronize_grid(unsigned &arrived)
{
    __threadfence();
    const unsigned before = atomicAdd(&arrived, blockIdx.x ? 1 : 0x80000000u - (gridDim.x - 1));
    unsigned now = before;
    for (int tries = 0; (before ^ now) < 0x80000000u; ++tries) {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(&arrived) : "memory");
        if (tries > 1 << 22)
            __trap();
    }
}

// -- Products of a warpgroup ---------------------------------------------------------------------

// The descriptor of an operand in shared memory for wgmma, with 128-byte swizzle: in rows of 128
// bytes the index of each 16 bytes is XORed with the row's index modulo 8, so that eight rows lie in
// different banks. Eight rows are 1,024 bytes. Only if columns run fastest does `apart` matter: the
// next 64 columns are that many bytes further on. The upper bits of a shared address, which name the
// block in the cluster, do not belong in a descriptor and are cut off.
static __device__ __forceinline__ uint64_t descriptor_of(unsigned address, unsigned apart = 16)
{
    return (uint64_t)(address % (1 << 18) >> 4) | (uint64_t)(apart >> 4) << 16
        | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

// Makes registers visible to the products that follow.
static __device__ __forceinline__ void begin_products()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// The products since the last call form a group.
static __device__ __forceinline__ void end_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Tells the compiler that the number changes here.
static __device__ __forceinline__ void change(float &x) { asm volatile("" : "+f"(x) :: "memory"); }
static __device__ __forceinline__ void change(int &x) { asm volatile("" : "+r"(x) :: "memory"); }
static __device__ __forceinline__ void change(unsigned &x) { change((int &)x); }

// Waits until at most LATER groups of products are in flight. Sums change until then.
template <int LATER, typename Number, int COUNT>
static __device__ __forceinline__ void wait_for_products(Number (&sum)[COUNT])
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LATER) : "memory");
    #pragma unroll
    for (int i = 0; i < COUNT; ++i)
        change(sum[i]);
}

// The operands of an assembler statement with 32, 64 or 128 sums: "+f" for float, "+r" for int.
#define FOUR_SUMS(kind, i) kind(sum[i]), kind(sum[i + 1]), kind(sum[i + 2]), kind(sum[i + 3])
#define SIXTEEN_SUMS(kind, i) \
    FOUR_SUMS(kind, i), FOUR_SUMS(kind, i + 4), FOUR_SUMS(kind, i + 8), FOUR_SUMS(kind, i + 12)
#define SUMS_32(kind, i) SIXTEEN_SUMS(kind, i), SIXTEEN_SUMS(kind, i + 16)
#define SUMS_64(kind, i) SUMS_32(kind, i), SUMS_32(kind, i + 32)
#define SUMS_128(kind, i) SUMS_64(kind, i), SUMS_64(kind, i + 64)
#define NAMES_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_64 \
    NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_128 \
    NAMES_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, " \
    "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, " \
    "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
