// Products of bfloat16 operands, stored by rows, with sums in float: what multiplies a stage of the
// ring, and what writes C. The kernel defines BM (64 or 128) and BAND.
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

// sum = (fresh ? 0 : sum) + a·b: 64×16 by 16×BN, both in shared memory; K runs fastest in a, and
// the columns do in b.
static __device__ __forceinline__ void multiply(float (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 WGMMA("k16.f32.bf16.bf16") ", add, 1, 1, 0, 1;\n"
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

// The loop over all tiles: see ring.cuh.
static __device__ __forceinline__ void consume(const CUtensorMap &C_map, Ring ring, float *C, int M,
                                               int N, int K)
{
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4;
    const unsigned drafts = drafts_of(warp, ring);
    multiply_tiles<0, float>(
        ring, M, N, K, multiply_stage,
        [&](const float (&sum)[BN / 2], Tile tile) {
            #pragma unroll
            for (int part = 0; part < BN / 32; ++part)
                write_columns(sum + part * 16, drafts + part % 2 * DRAFT_BYTES, C_map, C,
                              tile.row + warp * 16, tile.column + part * 32, M, N);
        },
        [](int) {});
    wait_for_drafts();
}
