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

// Copies rows of 128 bytes of a matrix, swizzled as the copy engine does; zeros beyond the edge.
static __device__ __forceinline__ void copy_rows(char *to, const char *from, int rows, int row,
                                                 int end, int k, int K)
{
    const int place = threadIdx.x % 128;
    from += (size_t)row * K + k + place;
    #pragma unroll 8
    for (int i = 0; i < rows; ++i, from += K)
        to[i * 128 + (place ^ i % 8 * 16)] = row + i < end && k + place < K ? *from : 0;
}

// 128 threads, where rows do not start at multiples of 16 bytes, which the engine requires.
static __device__ __forceinline__ void produce_by_hand(const void *A, const void *B, Ring ring,
                                                       int M, int N, int K)
{
    fill_stages(ring, M, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        char *const to = (char *)__cvta_shared_to_generic(stage);
        copy_rows(to, (const char *)A, BM, tile.row, M, k, K);
        copy_rows(to + A_BYTES, (const char *)B, BN, tile.column, N, k, K);
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

// The loop over all tiles: see ring.cuh. A step is four products of 32 terms.
template <int PARTS, typename Number, typename Finish, typename Write>
static __device__ __forceinline__ void multiply_tiles(Ring ring, int M, int N, int K,
                                                      Finish finish, Write write_part)
{
    multiply_tiles<PARTS, Number>(
        ring, M, N, K,
        [](Number (&sum)[BN / 2], unsigned stage, int warpgroup, bool fresh) {
            const uint64_t a = descriptor_of(stage + warpgroup * 64 * BK);
            const uint64_t b = descriptor_of(stage + A_BYTES);
            #pragma unroll
            for (int j = 0; j < BK / 32; ++j)
                multiply(sum, a + j * (32 >> 4), b + j * (32 >> 4), fresh && j == 0);
        },
        finish, write_part);
}
