// Products of 8-bit operands, both stored with K running fastest: what fills the ring of stages, and
// what multiplies. The kernel defines BM (64 or 128) and BAND.
#pragma once

#define BN (2 * BM)
#define BK 128               // terms of a step: rows of 128 bytes
#define CONSUMERS (BM / 64)  // those that multiply
#define A_BYTES (BM * BK)
#define STAGE_BYTES ((BM + BN) * BK)
#define STAGES (196608 / STAGE_BYTES)

#include "ring.cuh"

// -- Producer ------------------------------------------------------------------------------------

// One thread: it fetches the block's rows of A, and half of those of B for both blocks.
static __device__ __forceinline__ void produce(const CUtensorMap &A_map, const CUtensorMap &B_map,
                                               Ring ring, int M, int N, int K)
{
    const int lower = blockIdx.x % 2;
    fill_stages(ring, M, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        arrive_and_expect(barrier, STAGE_BYTES);
        fetch(stage, A_map, k, tile.row, barrier);
        fetch_for(3, stage + A_BYTES + lower * (BM * BK), B_map, k, tile.column + lower * BM,
                  barrier);
    });
}

// 128 threads, where rows do not start at multiples of 16 bytes, which the engine requires.
static __device__ __forceinline__ void produce_by_hand(const void *A, const void *B, Ring ring,
                                                       int M, int N, int K)
{
    fill_stages(ring, M, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        char *const to = (char *)__cvta_shared_to_generic(stage);
        const int place = k + place_in_row<char>();
        const bool inside = place < K;
        copy_rows(to, (const char *)A + (size_t)tile.row * K + place, K, BM,
                  inside ? M - tile.row : 0);
        copy_rows(to + A_BYTES, (const char *)B + (size_t)tile.column * K + place, K, BN,
                  inside ? N - tile.column : 0);
        publish_stores();
        arrive(barrier);
    });
}

// -- Products ------------------------------------------------------------------------------------

// sum = (fresh ? 0 : sum) + a·b: 64×32 by 32×BN numbers (e4m3), both in shared memory.
static __device__ __forceinline__ void multiply(float (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 WGMMA("k32.f32.e4m3.e4m3") ", add, 1, 1;\n"
                 "}" : SUMS("+f") : "l"(a), "l"(b), "r"((unsigned)fresh));
}

// The same with int8: exact sums.
static __device__ __forceinline__ void multiply(int (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 WGMMA("k32.s32.s8.s8") ", add;\n"
                 "}" : SUMS("+r") : "l"(a), "l"(b), "r"((unsigned)fresh));
}

// Starts the products of a step: four, of 32 terms.
template <typename Number>
static __device__ __forceinline__ void multiply_stage(Number (&sum)[BN / 2], unsigned stage,
                                                      int warpgroup, bool fresh)
{
    const uint64_t a = descriptor_of(stage + warpgroup * 64 * BK);
    const uint64_t b = descriptor_of(stage + A_BYTES);
    #pragma unroll
    for (int j = 0; j < BK / 32; ++j)
        multiply(sum, a + j * (32 >> 4), b + j * (32 >> 4), fresh && j == 0);
}
