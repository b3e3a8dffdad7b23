// /// matbench
// name = "tensor-cores"
// summary = "The same on tensor cores: one instruction of a warp multiplies 16×16 by 16×8 doubles"
// group = "ladder"
// previous = "double-tile"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [64]
// BN = [64]
// BK = [16]
// [tune]
// BM = [32, 64, 128]
// BN = [32, 64, 128]
// BK = [16, 32]
// [let]
// THREADS = "BM * BN // 32"
// [launch]
// where = ["BM % 32 == 0", "BN % 32 == 0", "BK % 16 == 0", "THREADS <= max_threads_per_block",
//          "4 * (BM * (BK + 4) + BK * (BN + 8)) <= max_static_shared_bytes"]
// block = ["THREADS"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / 32 + 1 / 32)"
// ///

// Adds: tensor cores, which multiply doubles twice as fast as the ordinary units, and as fast as
//   those multiply floats.
// Predicted: at most 65 TFLOP/s, if fetches, conversions and staging, which take 94% of the issue
//   slots, all happen while other warps multiply.
//
// One instruction, mma.sync, multiplies 16×16 by 16×8 doubles for a whole warp: a lane holds eight
// elements of A, four of B and four of the sum, which elements is fixed (multiply in helpers.cuh).
// Nothing is truncated: for doubles the tensor cores round as the ordinary units do.
//
// A warp computes 32×32 elements of C: TM fragments of A times TN of B, as a thread multiplied TM
// values by TN. Rows in shared memory have four or eight floats of padding, so that the 32 lanes
// fetch from different banks.
//
// Tiles are staged as before: a block waits for its loads in every step, and each float is
// converted by every warp that fetches it.

#include "helpers.cuh"

#ifndef BM
#define BM 64
#define BN 64
#define BK 16
#define THREADS 128
#endif
#define TM 2                // fragments of A, in the 32 rows of a warp
#define TN 4                // and of B, in its 32 columns
#define ACROSS (BN / 32)    // warps

extern "C" __global__ void __launch_bounds__(THREADS)
tensor_cores(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[BM][BK + 4];
    __shared__ float b[BK][BN + 8];

    // Warps divide the block's tile. Lane 4 g + t has rows g and g + 8 of a fragment of A.
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int g = lane / 4, t = lane % 4;
    const int m = warp / ACROSS * 32, n = warp % ACROSS * 32;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;

    double sum[TM][TN][4] = {};

    for (int start = 0; start < K; start += BK) {
        // Stage: neighbouring threads take neighbouring elements of each tile.
        for (int e = thread; e < BM * BK; e += THREADS) {
            const int row = first_row + e / BK, k = start + e % BK;
            a[e / BK][e % BK] = row < M && k < K ? A[(size_t)row * K + k] : 0.0f;
        }
        for (int e = thread; e < BK * BN; e += THREADS) {
            const int k = start + e / BN, column = first_column + e % BN;
            b[e / BN][e % BN] = k < K && column < N ? B[(size_t)k * N + column] : 0.0f;
        }
        __syncthreads();

        // Multiply: each of TM fragments of A with each of TN of B.
        #pragma unroll
        for (int k = 0; k < BK; k += 16) {
            double down[8], across[TN][4];
            #pragma unroll
            for (int j = 0; j < TN; ++j)
                #pragma unroll
                for (int p = 0; p < 4; ++p)
                    across[j][p] = b[k + t + p * 4][n + j * 8 + g];
            #pragma unroll
            for (int i = 0; i < TM; ++i) {
                #pragma unroll
                for (int p = 0; p < 8; ++p)
                    down[p] = a[m + i * 16 + g + p % 2 * 8][k + t + p / 2 * 4];
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    multiply(sum[i][j], down, across[j]);
            }
        }
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    #pragma unroll
    for (int i = 0; i < 2 * TM; ++i) {
        const int row = first_row + m + i * 8 + g;
        #pragma unroll
        for (int j = 0; j < 2 * TN; ++j) {
            const int column = first_column + n + j / 2 * 8 + t * 2 + j % 2;
            if (row < M && column < N)
                C[(size_t)row * N + column] = (float)sum[i / 2][j / 2][i % 2 * 2 + j % 2];
        }
    }
}
