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
//   is written while the next one is multiplied. ring.cuh has the loop that does so, eight-bit.cuh
//   what fills the ring and multiplies, drafts.cuh what writes C.
// Predicted: at most 2,141 TFLOP/s if the tensor cores never wait, at 1.98 GHz. But they use more
//   power than there is: the clock will be lower.
// Measured: 264 TFLOP/s at n = 1024, 102% of cuBLASLt in FP8 (H100)
//   1454 TFLOP/s at n = 4096, 103% of cuBLASLt in FP8 (H100)
//   1581 TFLOP/s at n = 8192, 101% of cuBLASLt in FP8 (H100)
//
// At n = 8192 the tensor cores are busy in 98% of 1,036,000 cycles. But those take 696 µs: within
// 700 W the clock is only 1.49 GHz on average.
//
// - Numbers of 8 bits have three bits of fraction (e4m3) and reach only from 2^-9 to 448. So A and
//   B have a scale each, by which C is multiplied.
// - B is stored transposed, for products of 8 bits read both operands with K running fastest. Rows
//   of 128 bytes are 128 terms: a step, of four products of 64×32 by 32×256.
// - Sums are less exact than float32: of 32 products and the running sum, the tensor cores keep the
//   bits down to 2^-13 of the largest and truncate the rest towards zero. If all terms are
//   positive, the sum is 7% too small at K = 4096. cuBLAS calls this fast accumulation.
//   fp8-promoted is more exact.
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
#include "drafts.cuh"

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
fp8_wgmma(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
          const CUtensorMap __grid_constant__ C_map, const __nv_fp8_e4m3 *A,
          const __nv_fp8_e4m3 *B, __nv_bfloat16 *C, const float *scale_a, const float *scale_b,
          int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring(shared, DRAFTS_BYTES);
    ring.set_up(K % 16 == 0 ? 1 : 128, A_map, B_map);
    divide_work<56, 224>(
        [&] {
            if (K % 16 != 0)
                produce_by_hand(A, B, ring, M, N, K);
            else if (threadIdx.x == 0)
                produce(A_map, B_map, ring, M, N, K);
        },
        [&] {
            const float scale = *scale_a * *scale_b;
            consume_and_hold(C_map, ring, C, M, N, K, multiply_stage<float>,
                             [&](float left, float right) {
                                 return bfloat16x2(scale * left, scale * right);
                             });
        });
}
