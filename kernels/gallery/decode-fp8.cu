// /// matbench
// name = "decode-fp8"
// summary = "FP8 (e4m3) in, bfloat16 out, for at most 64 rows of A"
// group = "gallery"
// previous = "decode-bf16"
// requires = ["cuda", "sm_90a"]
// transpose = "NT"
// accumulator = "float22"
// scales = "matrix"
// args = ["tensor_map(A, ROWS, 128)", "tensor_map(B, 64, 128)", "A", "B", "C", "scale_a", "scale_b",
//         "M", "N", "K"]
// [sweep]
// ROWS = [8, 16, 64]
// SPLIT = [2]
// BN = [64, 128]
// STAGES = [6]
// [tune]
// SPLIT = [1, 2, 4, 8]
// BN = [64, 128, 256]
// STAGES = [3, 4, 6, 8]
// [launch]
// where = ["M <= ROWS", "ROWS == 8 or ROWS < 4 * M", "K % 16 == 0",
//          "1024 + STAGES * (128 * (BN + ROWS) + 16) <= max_shared_bytes_per_block"]
// block = ["2 * BN + 32"]
// grid = ["SPLIT * ceil_div(N, BN)"]
// shared_bytes = "1024 + STAGES * (128 * (BN + ROWS) + 16)"
// [model]
// global_loads = "K * N + M * N * K / BN"
// ///

// Adds: FP8 inputs: half the bytes of decode-bf16. B is stored transposed, as products of 8 bits need it.
// Predicted: 7 µs at 16x4096x4096: B is 16.8 MB, 4.2 µs at 4.0 TB/s, and an empty kernel takes 3.2 µs.
//
// decode-bf16 has the plan, fp8-wgmma the numbers. K is a multiple of 16, as tensor maps require.

#define BK 128
#define BY_COLUMNS false
#define TYPES "k32.f32.e4m3.e4m3"
#define LAYOUTS ""
#define B_APART 32
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include "decode.cuh"

extern "C" __global__ void __cluster_dims__(SPLIT) __launch_bounds__(THREADS)
decode_fp8(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
           const __nv_fp8_e4m3 *A, const __nv_fp8_e4m3 *B, __nv_bfloat16 *C, const float *scale_a,
           const float *scale_b, int M, int N, int K)
{
    extern __shared__ char shared[];
    decode(A_map, B_map, shared, M, N, K,
           [&](int row, int column, float4 four) {
               const float scale = *scale_a * *scale_b, sum[] = {four.x, four.y, four.z, four.w};
               #pragma unroll
               for (int i = 0; i < 4; ++i)
                   if (column + i < N)
                       C[(size_t)row * N + column + i] = __float2bfloat16(scale * sum[i]);
           });
}
