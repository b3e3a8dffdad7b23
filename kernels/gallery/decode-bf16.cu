// /// matbench
// name = "decode-bf16"
// summary = "bfloat16 in, float32 out, for at most 64 rows of A: the blocks of a cluster share K"
// group = "gallery"
// previous = "bf16-split-k"
// requires = ["cuda", "sm_90a"]
// precision = "bfloat16"
// args = ["tensor_map(A, ROWS, 64)", "tensor_map(B, 64, 64)", "A", "B", "C", "M", "N", "K"]
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
// where = ["M <= ROWS", "ROWS == 8 or ROWS < 4 * M", "N % 8 == 0", "K % 8 == 0",
//          "1024 + STAGES * (128 * (BN + ROWS) + 16) <= max_shared_bytes_per_block"]
// block = ["2 * BN + 32"]
// grid = ["SPLIT * ceil_div(N, BN)"]
// shared_bytes = "1024 + STAGES * (128 * (BN + ROWS) + 16)"
// [model]
// global_loads = "K * N + M * N * K / BN"
// ///

// Adds: few rows of A. Nothing is used often enough to be worth a large tile: a block fetches 64 columns
//   of B, which no other block needs, and all the rows of A.
// Predicted: 12 µs at 16x4096x4096: B is 33.6 MB, 8.4 µs at 4.0 TB/s, and an empty kernel takes 3.2 µs.
//
// A language model multiplies the activations of one token for each of M requests by its weights: M is
// 1 to 64, and N and K are thousands. Each number of B is used for M products, so that memory decides
// until M is about 200. What costs time then is everything that keeps memory waiting:
//
// - Too few blocks. 4,096 columns are 64 blocks, for 132 multiprocessors. So the blocks of a cluster
//   share K, and add up their sums from each other's shared memory: no workspace, no second kernel.
// - A late start. Two or three blocks fit on a multiprocessor, and each requests 48 KiB of B at once before
//   it waits for anything.
// - Padding. wgmma multiplies at least 64 rows of its left operand, but as few as 8 columns of its
//   right one. So the columns of B are on the left, and rows of A on the right.
//
// decode.cuh has all this, for other types too. K and N are multiples of 8, as tensor maps require.

#define BK 64
#define BY_COLUMNS true
#define TYPES "k16.f32.bf16.bf16"
#define LAYOUTS ", 1, 0"  // of B by columns, and of A, as 16-bit types need to be told
#define B_APART 2048
#include <cuda_bf16.h>
#include "decode.cuh"

extern "C" __global__ void __cluster_dims__(SPLIT) __launch_bounds__(THREADS)
decode_bf16(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
            const __nv_bfloat16 *A, const __nv_bfloat16 *B, float *C, int M, int N, int K)
{
    extern __shared__ char shared[];
    decode(A_map, B_map, shared, M, N, K,
           [&](int row, int column, float4 four) { *(float4 *)(C + (size_t)row * N + column) = four; });
}
