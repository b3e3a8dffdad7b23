// /// matbench
// name = "half-wgmma"
// summary = "float16 in and out on Hopper's tensor cores: a tile is written while the next is multiplied"
// group = "gallery"
// previous = "bf16-wgmma"
// requires = ["cuda", "sm_90a"]
// args = ["tensor_map(A, BM, 64)", "tensor_map(B, 64, 64)", "tensor_map(C, 16, 64)",
//         "A", "B", "C", "M", "N", "K"]
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

// Adds: float16 instead of bfloat16, in the same products with the same float32 sums, and a C of
//   float16. As 16-bit numbers a finished tile fits beside the sums of the next one, so it is written
//   while that is multiplied: see consume_and_hold in drafts.cuh. The code is bf16-wgmma's otherwise.
// Predicted: at most 1,070 TFLOP/s at 1.98 GHz, as bf16-wgmma; half of its bytes of C.
//
// At n = 1024 the 128 tiles of 64×128 take 32 MB from the L2 cache, half of which multicast delivers
// to two blocks, and a block takes 5.8 µs (H200). Clusters of four blocks would take 24 MB. But of
// the 32 that are needed, not all fit at the same time, and the launch takes 13.5 µs.
//
// Sums are float32, because in float16 a sum of some thousand terms would have no correct digit. C
// is rounded once, at the end. It reaches to 65,504 only: larger results become infinite.

#include <cuda_fp16.h>

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128
#endif
typedef __half Factor;
#define FACTORS "f16.f16"
#include "sixteen-bit.cuh"

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
half_wgmma(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
           const CUtensorMap __grid_constant__ C_map, const __half *A, const __half *B, __half *C,
           int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring(shared, DRAFTS_BYTES);
    const bool has_maps = K % 8 == 0 && N % 8 == 0;
    ring.set_up(has_maps ? 1 : 128, A_map, B_map);
    divide_work<56, 224>(
        [&] {
            if (!has_maps)
                produce_by_hand(A, B, ring, M, N, K);
            else if (threadIdx.x == 0)
                produce(A_map, B_map, ring, M, N, K);
        },
        [&] { consume_and_hold(C_map, ring, C, M, N, K, multiply_stage, float16x2); });
}
