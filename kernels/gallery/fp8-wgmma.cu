// /// matbench
// name = "fp8-wgmma"
// summary = "FP8 (e4m3) in, bfloat16 out: tensor cores that add with 13 bits after the point"
// group = "gallery"
// previous = "bf16-wgmma"
// requires = ["cuda", "sm_90a"]
// transpose = "NT"
// accumulator = "float22"
// scales = "matrix"
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

// Adds: FP8 inputs: twice the products per cycle of bf16-wgmma, and half its bytes per number. A tile
//   is written while the next one is multiplied. eight-bit.cuh and hopper.cuh hold the common parts.
// Predicted: at most 2,141 TFLOP/s if the tensor cores never wait, at 1.98 GHz. But they use more
//   power than there is: the clock will be lower.
// Measured: 262 TFLOP/s at n = 1024, 105% of cuBLASLt in FP8 (H100)
//   1453 TFLOP/s at n = 4096, 103% of cuBLASLt in FP8 (H100)
//
// At n = 8192 the tensor cores are busy in 98% of 1,036,000 cycles, but 700 W last for 1.31 GHz.
//
// - Numbers of 8 bits have three bits of fraction (e4m3) and reach only from 2^-9 to 448. So A and
//   B have a scale each, by which C is multiplied.
// - B is stored transposed, for products of 8 bits read both factors with K running fastest. Rows
//   of 128 bytes are 128 terms: a step, of four products of 64×32 by 32×256.
// - Sums are less exact than float32: of 32 products and the running sum, the tensor cores keep
//   the bits down to 2^-13 of the largest and cut off the rest. Cut-off parts all point to zero. If
//   all terms are positive, errors reach 8% of the sum at K = 4096. cuBLAS calls this fast
//   accumulation. fp8-promoted is more exact.
// - Writing a tile of C would take 2,700 cycles, 8% of the time of a tile at n = 4096. As bfloat16
//   it needs only half of the registers of its sums. So it is kept there, and a quarter of it is
//   written in each of the first four steps of the next tile, while the tensor cores multiply.

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128
#endif
#include "eight-bit.cuh"
#include "fp8.cuh"

#if BM == 128
#define OPERATION "m64n256k32.f32.e4m3.e4m3 {" NAMES_128 "}, %128, %129, add, 1, 1;\n"
#define SUMS SUMS_128("+f", 0)
#define FRESH "%130"
#else
#define OPERATION "m64n128k32.f32.e4m3.e4m3 {" NAMES_64 "}, %64, %65, add, 1, 1;\n"
#define SUMS SUMS_64("+f", 0)
#define FRESH "%66"
#endif

// sum = (fresh ? 0 : sum) + a·b: 64×32 by 32×BN, both in shared memory.
static __device__ __forceinline__ void multiply(float (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 "wgmma.mma_async.sync.aligned." OPERATION
                 "}" : SUMS : "l"(a), "l"(b), "r"((unsigned)fresh));
}

static __device__ __forceinline__ void consume(const CUtensorMap &C_map, Ring ring,
                                               __nv_bfloat16 *C, float scale, int M, int N, int K)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4;
    const unsigned drafts = ring.start + STAGES * STAGE + warp * 2 * DRAFT;
    unsigned held[BN / 4];  // the tile before, as bfloat16, while it is being written
    Tile done = {-1, 0};
    for (int i = blockIdx.x / 2; i < pairs_of_tiles(M, N); i += gridDim.x / 2) {
        float sum[BN / 2];
        unsigned before = 0;  // the barrier of the stage whose products are in flight
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            const uint64_t a = rows_at(ring.stage() + warp / 4 * 64 * BK);
            const uint64_t b = rows_at(ring.stage() + A_BYTES);
            wait(ring.full(), ring.phase);
            begin_products();
            #pragma unroll
            for (int j = 0; j < BK / 32; ++j)
                multiply(sum, a + j * (32 >> 4), b + j * (32 >> 4), k == 0 && j == 0);
            end_products();

            // Meanwhile a part of the tile before is written; in the last step, all that is left.
            #pragma unroll
            for (int part = 0; part < BN / 64; ++part)
                if (done.row >= 0 && (k == part * BK || (k < part * BK && k + BK >= K)))
                    write(held + part * 16, drafts + part % 2 * DRAFT, C_map, C,
                          done.row + warp * 16, done.column + part * 64, M, N);

            // The previous step is done: its stage may be filled again.
            wait_for_products<1>(sum);
            if (k > 0)
                report(before);
            before = ring.empty();
            ring.next();
        }
        wait_for_products<0>(sum);
        report(before);
        #pragma unroll
        for (int j = 0; j < BN / 4; ++j)
            held[j] = pair(scale * sum[2 * j], scale * sum[2 * j + 1]);
        done = tile_of(i, M, N);
    }
    #pragma unroll
    for (int part = 0; part < BN / 64; ++part)
        write(held + part * 16, drafts + part % 2 * DRAFT, C_map, C, done.row + warp * 16,
              done.column + part * 64, M, N);
    // The copy engine reads shared memory, which is freed when the block exits.
    wait_until_read<0>();
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
fp8_wgmma(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
          const CUtensorMap __grid_constant__ C_map, const __nv_fp8_e4m3 *A,
          const __nv_fp8_e4m3 *B, __nv_bfloat16 *C, const float *scale_a, const float *scale_b,
          int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring((unsigned)__cvta_generic_to_shared(shared), DRAFTS);
    ring.set_up(K % 16 == 0 ? 1 : 128);

    // Registers move from the warpgroup that moves data to those that multiply.
    if (threadIdx.x < 128) {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
#endif
        if (K % 16 != 0)
            produce_by_hand(A, B, shared, ring, M, N, K);
        else if (threadIdx.x == 0)
            produce(A_map, B_map, ring, M, N, K);
    } else {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
#endif
        consume(C_map, ring, C, *scale_a * *scale_b, M, N, K);
    }
}
