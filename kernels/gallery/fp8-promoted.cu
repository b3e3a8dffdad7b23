// /// matbench
// name = "fp8-promoted"
// summary = "FP8 in, bfloat16 out, scales of blocks: partial sums of 128 terms are added in float32"
// group = "gallery"
// previous = "fp8-wgmma"
// requires = ["cuda", "sm_90a"]
// transpose = "NT"
// accumulator = "float22"
// promotes = 128
// scales = "blocks"
// args = ["tensor_map(A, BM, 128)", "tensor_map(B, BM, 128)", "tensor_map(C, 16, 64)",
//         "A", "B", "C", "scale_a", "scale_b", "M", "N", "K"]
// [sweep]
// BM = [64, 128]
// BAND = [8]
// [tune]
// BAND = [1, 2, 4, 8, 16]
// [launch]
// where = ["max_shared_bytes_per_block >= 230464"]
// block = ["128 + 2 * BM"]
// grid = ["2 * min(multiprocessors // 2, ceil_div(M, 2 * BM) * ceil_div(N, 2 * BM))"]
// shared_bytes = "230464"
// [model]
// global_loads = "M * N * K / (2 * BM) + M * N * K / (2 * BM)"
// ///

// Adds: promotion. Every 128 terms the sums leave the tensor cores, are scaled, and are added to
//   totals in float32. A scale belongs to 1×128 numbers of A, or to 128×128 of B.
// Predicted: at most 2,141 TFLOP/s at 1.98 GHz, as fp8-wgmma: the additions take 256 of 1,024 issue
//   slots of a step, beside the tensor cores.
// Measured: 256 TFLOP/s at n = 1024, 99% of cuBLASLt in FP8 (H100)
//   1268 TFLOP/s at n = 4096, 90% of cuBLASLt in FP8 (H100)
//   1402 TFLOP/s at n = 8192, 90% of cuBLASLt in FP8 (H100)
//
// - Errors: sums of 128 terms lose little, and float32 adds them up. If all terms are positive, the
//   result is off by 0.5% at K = 4096, of which C as bfloat16 is up to 0.2%; fp8-wgmma's by 7%.
// - Registers: 64×256 totals of a warpgroup leave room for only half as many sums. So a step has two
//   pieces of 64×128, one after the other, and C is written before the next tile begins.
// - While one warpgroup adds up a piece, the other warpgroup multiplies. That hides the additions
//   only if they begin and end without delay. So all else is done while products are in flight: the
//   next scales are loaded, the next stage is awaited, its descriptors are computed. Loads in
//   assembler, and descriptors that advance by additions, keep the compiler from moving that back.
//   All this was worth 4% at n = 4096 and 8% at n = 8192.
// - Slower: rows of A in registers (4%, fetched by ldmatrix as soon as the products before have read
//   theirs), the same with pieces of 64×64 of which one is always in flight (7%), tiles of 128×192
//   with one piece per step (8%), warpgroups that take turns at a barrier (5%).

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128
#endif
#include "eight-bit.cuh"
#include "drafts.cuh"

#define PIECES (BN / 128)  // of a step: products of 64×128 by 128×128

// sum = (fresh ? 0 : sum) + a·b: 64×32 by 32×128, both in shared memory.
static __device__ __forceinline__ void multiply_piece(float (&sum)[64], uint64_t a,
                                                      uint64_t b, bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" NAMES_64 "}, "
                 "%64, %65, add, 1, 1;\n"
                 "}" : SUMS_64("+f", 0) : "l"(a), "l"(b), "r"((unsigned)fresh));
}

// Where the scales of a tile start: those of a lane's two rows of A, and of each 128 columns of B.
struct Scales {
    const float *a[2], *b[PIECES];

    __device__ __forceinline__ Scales(const float *scale_a, const float *scale_b, int row,
                                      int column, int M, int N, int steps)
    {
        #pragma unroll
        for (int i = 0; i < 2; ++i)
            a[i] = scale_a + (size_t)min(row + i * 8, M - 1) * steps;
        #pragma unroll
        for (int i = 0; i < PIECES; ++i)
            b[i] = scale_b + (size_t)min((column + i * 128) / 128, (N - 1) / 128) * steps;
    }
};

// Loads a scale. In assembler, so that the compiler does not move the load.
static __device__ __forceinline__ float load(const float *from)
{
    float x;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(x) : "l"(from));
    return x;
}

static __device__ __forceinline__ void consume(const CUtensorMap &C_map, Ring ring,
                                               __nv_bfloat16 *C, const float *scale_a,
                                               const float *scale_b, int M, int N, int K)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4, lane = threadIdx.x % 32;
    const int steps = (K + BK - 1) / BK;
    const unsigned drafts = drafts_of(warp, ring);
    for (int i = blockIdx.x / 2; i < pairs_of_tiles(M, N); i += gridDim.x / 2) {
        const Tile tile = tile_of(i, M, N);
        const int row = tile.row + warp * 16;
        const Scales scales(scale_a, scale_b, row + lane / 4, tile.column, M, N, steps);
        float total[BN / 2] = {}, sum[64];
        float factor[PIECES][2], next_a[2], next_b[PIECES];
        #pragma unroll
        for (int q = 0; q < 2 * PIECES; ++q)
            factor[q / 2][q % 2] = load(scales.a[q % 2]) * load(scales.b[q / 2]);
        uint64_t a = descriptor_of(ring.stage() + warp / 4 * 64 * BK);
        uint64_t b = descriptor_of(ring.stage() + A_BYTES);
        wait(ring.full(), ring.phase);
        #pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            #pragma unroll
            for (int piece = 0; piece < PIECES; ++piece) {
                begin_products();
                #pragma unroll
                for (int j = 0; j < BK / 32; ++j)
                    multiply_piece(sum, a + j * (32 >> 4),
                                   b + piece * (128 * BK >> 4) + j * (32 >> 4), j == 0);
                end_products();

                // Meanwhile the next step is prepared.
                if (piece == 0) {
                    const int next = min(step + 1, steps - 1);
                    #pragma unroll
                    for (int q = 0; q < 2; ++q)
                        next_a[q] = load(scales.a[q] + next);
                    #pragma unroll
                    for (int q = 0; q < PIECES; ++q)
                        next_b[q] = load(scales.b[q] + next);
                }
                const unsigned empty = ring.empty();
                if (piece == PIECES - 1) {
                    ring.next();
                    const uint64_t back = (STAGES - 1) * STAGE_BYTES >> 4;
                    a += ring.slot > 0 ? STAGE_BYTES >> 4 : -back;
                    b += ring.slot > 0 ? STAGE_BYTES >> 4 : -back;
                    if (step + 1 < steps)
                        wait(ring.full(), ring.phase);
                }
                wait_for_products<0>(sum);
                if (piece == PIECES - 1)
                    report(empty);
                #pragma unroll
                for (int j = 0; j < 64; ++j)
                    total[piece * 64 + j] += factor[piece][j / 2 % 2] * sum[j];
            }
            #pragma unroll
            for (int q = 0; q < 2 * PIECES; ++q)
                factor[q / 2][q % 2] = next_a[q % 2] * next_b[q / 2];
        }

        #pragma unroll
        for (int part = 0; part < BN / 64; ++part) {
            unsigned c[16];
            #pragma unroll
            for (int j = 0; j < 16; ++j)
                c[j] = bfloat16x2(total[part * 32 + 2 * j], total[part * 32 + 2 * j + 1]);
            write_columns(c, drafts + part % 2 * DRAFT_BYTES, C_map, (unsigned short *)C, row,
                          tile.column + part * 64, M, N);
        }
    }
    wait_for_drafts();
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
fp8_promoted(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
             const CUtensorMap __grid_constant__ C_map, const __nv_fp8_e4m3 *A,
             const __nv_fp8_e4m3 *B, __nv_bfloat16 *C, const float *scale_a, const float *scale_b,
             int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring(shared, DRAFTS_BYTES);
    ring.set_up(K % 16 == 0 ? 1 : 128, A_map, B_map);
    divide_work<40, 232>(
        [&] {
            if (K % 16 != 0)
                produce_by_hand(A, B, ring, M, N, K);
            else if (threadIdx.x == 0)
                produce(A_map, B_map, ring, M, N, K);
        },
        [&] { consume(C_map, ring, C, scale_a, scale_b, M, N, K); });
}
