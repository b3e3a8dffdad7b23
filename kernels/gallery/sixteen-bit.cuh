// Products of 16-bit operands, stored by rows, with sums in float: what fills the ring of stages, and
// what multiplies a stage. The kernel defines BM (64 or 128), BAND, Factor (the type of the operands)
// and FACTORS (the same in the name of an instruction).
#pragma once

#define BN (2 * BM)
#define BK 64
#define CONSUMERS (BM / 64)  // those that multiply
#define A_BYTES (BM * BK * 2)
#define B_BOX_BYTES (BK * 64 * 2)  // 64 columns of B
#define STAGE_BYTES (A_BYTES + BN / 64 * B_BOX_BYTES)
#define STAGES (196608 / STAGE_BYTES)

#include "ring.cuh"
#include "drafts.cuh"

// -- Producer ------------------------------------------------------------------------------------

// One thread: it fetches the block's rows of A, and half of B's columns for both blocks.
static __device__ __forceinline__ void produce(const CUtensorMap &A_map, const CUtensorMap &B_map,
                                               Ring ring, int M, int N, int K)
{
    const int lower = blockIdx.x % 2;
    fill_stages(ring, M, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        arrive_and_expect(barrier, STAGE_BYTES);
        fetch(stage, A_map, k, tile.row, barrier);
        #pragma unroll
        for (int i = 0; i < BN / 128; ++i) {
            const int box = lower * (BN / 128) + i;
            fetch_for(3, stage + A_BYTES + box * B_BOX_BYTES, B_map, tile.column + box * 64, k,
                      barrier);
        }
    });
}

// 128 threads, where rows do not start at multiples of 16 bytes, which the engine requires.
static __device__ __forceinline__ void produce_by_hand(const Factor *A, const Factor *B, Ring ring,
                                                       int M, int N, int K)
{
    const int place = place_in_row<Factor>();
    fill_stages(ring, M, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        char *const to = (char *)__cvta_shared_to_generic(stage);
        copy_rows(to, A + (size_t)tile.row * K + k + place, K, BM,
                  k + place < K ? M - tile.row : 0);
        #pragma unroll 1
        for (int box = 0; box < BN / 64; ++box) {
            const int column = tile.column + box * 64 + place;
            copy_rows(to + A_BYTES + box * B_BOX_BYTES, B + (size_t)k * N + column, N, BK,
                      column < N ? K - k : 0);
        }
        publish_stores();
        arrive(barrier);
    });
}

// -- Products ------------------------------------------------------------------------------------

// sum = (fresh ? 0 : sum) + a·b: 64×16 by 16×BN, both in shared memory; K runs fastest in a, and
// the columns do in b.
static __device__ __forceinline__ void multiply(float (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 WGMMA("k16.f32." FACTORS) ", add, 1, 1, 0, 1;\n"
                 "}" : SUMS("+f") : "l"(a), "l"(b), "r"((unsigned)fresh));
}

// Starts the products of a step: four, of 16 terms.
static __device__ __forceinline__ void multiply_stage(float (&sum)[BN / 2], unsigned stage,
                                                      int warpgroup, bool fresh)
{
    const uint64_t a = descriptor_of(stage + warpgroup * 64 * 128, B_BOX_BYTES);
    const uint64_t b = descriptor_of(stage + A_BYTES, B_BOX_BYTES);
    #pragma unroll
    for (int i = 0; i < BK / 16; ++i)
        multiply(sum, a + i * (32 >> 4), b + i * (2048 >> 4), fresh && i == 0);
}
