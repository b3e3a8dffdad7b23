// Products of a few rows with a large matrix, as when a language model writes one token after the
// other: C = A·B, where A has at most ROWS rows. B is read once and each number of it is used for few
// products, so that the time is that of reading B.
//
// Sums are those of Cᵀ = Bᵀ·Aᵀ: an instruction multiplies 64 columns of B by ROWS rows of A, of which
// there may be 8, where A as its left operand would be padded to 64 rows. SPLIT blocks of a cluster
// share the terms of BN columns; each adds up the partial sums of a part of these columns, from the
// shared memory of all, always in the same order. If SPLIT suits the size, all blocks run at the same
// time, and request B as early as can be.
//
// The kernel defines BK (terms of a step: 128 bytes), BY_COLUMNS (whether columns run fastest in B, or K
// does), and the products of a step, of which there are four: TYPES and LAYOUTS in the name of the
// instruction, and B_APART, from the part of B of one to that of the next, in bytes. ROWS is 8, 16 or 64;
// SPLIT 1, 2, 4 or 8; BN 64, 128 or 256.
#pragma once

#include "hopper.cuh"

#ifndef ROWS
#define ROWS 16
#endif
#ifndef SPLIT
#define SPLIT 2
#endif
#ifndef BN
#define BN 64
#endif
#ifndef STAGES
#define STAGES 6
#endif

#define WARPGROUPS (BN / 64)  // those that multiply; one more warp fetches
#define B_BYTES (BN * 128)
#define STAGE_BYTES (B_BYTES + ROWS * 128)
#define PITCH (BN + 4)  // of partial sums: rows of C lie in different banks
#define THREADS (BN * 2 + 32)
static_assert(ROWS * PITCH * 4 <= STAGES * STAGE_BYTES, "partial sums are where stages were");

// -- Stages --------------------------------------------------------------------------------------

struct Steps { int first, end; };

// The steps of this block.
static __device__ __forceinline__ Steps steps_of(int K)
{
    const int all = (K + BK - 1) / BK, rank = blockIdx.x % SPLIT;
    return {all * rank / SPLIT, all * (rank + 1) / SPLIT};
}

// One thread fetches all: the columns of B, which are not needed again, and the rows of A.
static __device__ __forceinline__ void fetch_stages(const CUtensorMap &A_map, const CUtensorMap &B_map,
                                                    unsigned ring, unsigned barriers, int K)
{
    const Steps steps = steps_of(K);
    const int column = blockIdx.x / SPLIT * BN;
    const uint64_t policy = evict_first_policy();
    #pragma unroll 1
    for (int step = steps.first, slot = 0, phase = 1; step < steps.end; ++step) {
        const unsigned stage = ring + slot * STAGE_BYTES, full = barriers + 16 * slot;
        wait(full + 8, phase);
        arrive_and_expect(full, STAGE_BYTES);
        #pragma unroll
        for (int box = 0; box < WARPGROUPS; ++box) {
            const int n = column + box * 64, k = step * BK;
            fetch(stage + box * 8192, B_map, BY_COLUMNS ? n : k, BY_COLUMNS ? k : n, full, policy);
        }
        fetch(stage + B_BYTES, A_map, step * BK, 0, full);
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }
}

// -- Products ------------------------------------------------------------------------------------

// The operands of an assembler statement: ROWS / 2 sums, two descriptors, and whether the sums start
// from zero.
#if ROWS == 8
#define PRODUCTS "wgmma.mma_async.sync.aligned.m64n8" TYPES " {%0, %1, %2, %3}, %4, %5"
#define SUMS(kind) FOUR_SUMS(kind, 0)
#define FRESH "%6"
#elif ROWS == 16
#define PRODUCTS "wgmma.mma_async.sync.aligned.m64n16" TYPES \
    " {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9"
#define SUMS(kind) FOUR_SUMS(kind, 0), FOUR_SUMS(kind, 4)
#define FRESH "%10"
#else
#define PRODUCTS "wgmma.mma_async.sync.aligned.m64n64" TYPES " {" NAMES_32 "}, %32, %33"
#define SUMS(kind) SUMS_32(kind, 0)
#define FRESH "%34"
#endif

// sum = (fresh ? 0 : sum) + b·a: 64 columns of B by ROWS rows of A, both in shared memory; K runs fastest
// in a.
static __device__ __forceinline__ void multiply(float (&sum)[ROWS / 2], uint64_t b, uint64_t a, bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 PRODUCTS ", add, 1, 1" LAYOUTS ";\n"
                 "}" : SUMS("+f") : "l"(b), "l"(a), "r"((unsigned)fresh));
}

// Starts the products of a step.
static __device__ __forceinline__ void multiply_stage(float (&sum)[ROWS / 2], unsigned b, unsigned a,
                                                      bool fresh)
{
    #pragma unroll
    for (int i = 0; i < 4; ++i)
        multiply(sum, descriptor_of(b + i * B_APART), descriptor_of(a + i * 32), fresh && i == 0);
}

// A warpgroup's partial sums go to shared memory, row by row of C.
static __device__ __forceinline__ void multiply_stages(unsigned ring, unsigned barriers, float *partial,
                                                       int K)
{
    asm volatile("bar.sync 1, %0;" :: "n"(THREADS) : "memory");  // barriers are set up
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const Steps steps = steps_of(K);
    float sum[ROWS / 2] = {};
    #pragma unroll 1
    for (int step = steps.first, slot = 0, phase = 0; step < steps.end; ++step) {
        const unsigned stage = ring + slot * STAGE_BYTES, full = barriers + 16 * slot;
        wait(full, phase);
        begin_products();
        multiply_stage(sum, stage + warp / 4 * 8192, stage + B_BYTES, step == steps.first);
        end_products();
        wait_for_products<0>(sum);
        if (lane == 0)
            arrive(full + 8);
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }
    asm volatile("bar.sync 2, %0;" :: "n"(BN * 2) : "memory");  // all stages have been read
    #pragma unroll
    for (int j = 0; j < ROWS / 2; ++j) {
        const int row = j / 4 * 8 + lane % 4 * 2 + j % 2, column = warp * 16 + j / 2 % 2 * 8 + lane / 4;
        partial[row * PITCH + column] = sum[j];
    }
}

// Waits for all threads of the cluster, which see then what each has written to shared memory.
static __device__ __forceinline__ void exchange_in_cluster()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Four numbers at the same place in the shared memory of another block of the cluster.
static __device__ __forceinline__ float4 load_from(unsigned block, unsigned address)
{
    float4 four;
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n"
                 "}" : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                 : "r"(address), "r"(block) : "memory");
    return four;
}

// Adds up the partial sums of this block's part of the columns, four at a time:
// write(row, column, four).
template <typename Write>
static __device__ __forceinline__ void add_up(const float *partial, int M, int N, Write write)
{
    constexpr int COLUMNS = BN / SPLIT;
    const int first = blockIdx.x % SPLIT * COLUMNS;
    const unsigned place = (unsigned)__cvta_generic_to_shared(partial);
    #pragma unroll 1
    for (int i = threadIdx.x * 4; i < ROWS * COLUMNS; i += THREADS * 4) {
        const int row = i / COLUMNS, own = first + i % COLUMNS;
        const int column = blockIdx.x / SPLIT * BN + own;
        if (row >= M || column >= N)
            continue;
        float4 part[SPLIT];
        #pragma unroll
        for (int block = 0; block < SPLIT; ++block)
            part[block] = load_from(block, place + (row * PITCH + own) * 4);
        float4 sum = part[0];
        #pragma unroll
        for (int block = 1; block < SPLIT; ++block)
            sum = make_float4(sum.x + part[block].x, sum.y + part[block].y, sum.z + part[block].z,
                              sum.w + part[block].w);
        write(row, column, sum);
    }
}

// -- All of a block ------------------------------------------------------------------------------

template <typename Write>
static __device__ __forceinline__ void decode(const CUtensorMap &A_map, const CUtensorMap &B_map,
                                              char *shared, int M, int N, int K, Write write)
{
    // The ring starts at a multiple of 1,024 bytes, as swizzled boxes must, at the same place in all
    // blocks of a cluster; barriers follow it.
    const unsigned start = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned ring = (start + 1023) / 1024 * 1024, barriers = ring + STAGES * STAGE_BYTES;
    float *const partial = (float *)(shared + (ring - start));
    if (threadIdx.x < BN * 2) {
        multiply_stages(ring, barriers, partial, K);
    } else {
        if (threadIdx.x == BN * 2) {
            prefetch_map(A_map);
            prefetch_map(B_map);
            for (int i = 0; i < STAGES; ++i) {
                init_barrier(barriers + 16 * i, 1);
                init_barrier(barriers + 16 * i + 8, 4 * WARPGROUPS);
            }
            publish_barriers();
        }
        __syncwarp();
        asm volatile("bar.arrive 1, %0;" :: "n"(THREADS) : "memory");
        if (threadIdx.x == BN * 2)
            fetch_stages(A_map, B_map, ring, barriers, K);
        __syncwarp();
    }
    exchange_in_cluster();
    add_up(partial, M, N, write);
    exchange_in_cluster();  // no block ends while its sums are read
}
