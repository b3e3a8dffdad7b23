// /// matbench
// name = "async-copied"
// summary = "The next tiles are copied to shared memory directly, past the registers"
// group = "ladder"
// previous = "double-buffered"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [128]
// BN = [128]
// BK = [16]
// TM = [8]
// TN = [8]
// [tune]
// BM = [64, 128]
// BN = [64, 128]
// BK = [8, 16]
// TM = [4, 8]
// TN = [4, 8]
// [launch]
// where = ["TM % 4 == 0", "TN % 4 == 0", "BM % TM == 0", "BN % TN == 0", "BK % 8 == 0",
//          "(BN // TN) * (BM // TM) % 8 == 0", "8 * BM % ((BN // TN) * (BM // TM)) == 0",
//          "4 * (BN // TN) * (BM // TM) % BN == 0",
//          "BK * BN % (4 * (BN // TN) * (BM // TM)) == 0",
//          "(BN // TN) * (BM // TM) <= max_threads_per_block",
//          "8 * BK * (BM + 4 + BN) <= max_static_shared_bytes"]
// block = ["BN // TN", "BM // TM"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: copies from global to shared memory that bypass the registers.
// Predicted: at most 58 TFLOP/s: 86% of the instructions are multiply-adds.
//
// From sm_80 on, cp.async copies 4, 8 or 16 bytes directly to shared memory, and writes zeros in
// place of bytes outside the matrix. A thread starts the copies of the next tiles, multiplies, and
// then only waits until its copies have arrived; the barrier makes sure of those of all threads.
// Data in flight take no registers, so a step can have sixteen k instead of eight.
//
// A copy can transpose only float by float, so A is copied 4 bytes at a time. Eight neighbouring
// threads copy eight k of a row, which is a full 32-byte sector of memory. With four floats of
// padding per row of the transposed tile, the 32 floats of a warp fall into 32 different banks.

#include "helpers.cuh"

#ifndef BM
#define BM 128
#define BN 128
#define BK 16
#define TM 8
#define TN 8
#endif
#define ACROSS (BN / TN)
#define DOWN (BM / TM)
#define THREADS (ACROSS * DOWN)
#define A_ROWS (THREADS / 8)         // rows of A that the block copies at once
#define B_ROWS (THREADS / (BN / 4))  // and of B
#define A_COPIES (BM / A_ROWS)
#define B_COPIES (BK / B_ROWS)

extern "C" __global__ void __launch_bounds__(THREADS)
async_copied(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float4 a[2][BK][BM / 4 + 1];  // transposed
    __shared__ float4 b[2][BK][BN / 4];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * ACROSS + tx;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const int aligned = N % 4 == 0;
    // What this thread copies. Of A: column a_k of eight, in every A_ROWS-th row. Of B: the b_n-th
    // four columns, in every B_ROWS-th row.
    const int a_k = thread % 8, a_row = thread / 8;
    const int b_k = thread / (BN / 4), b_n = thread % (BN / 4);

    float sum[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            sum[i][j] = 0.0f;

    // Step -1 only copies the first tiles; there is nothing to multiply yet.
    for (int start = -BK; start < K; start += BK) {
        const int now = (start / BK) & 1, next = 1 - now;

        // Start to copy the next tiles; zeros after the last.
        const int left = K - (start + BK);  // columns of A and rows of B
        const float *const a_from = A + (size_t)(first_row + a_row) * K + (start + BK + a_k);
        const float *const b_from = B + (size_t)(start + BK + b_k) * N;
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            #pragma unroll
            for (int k = 0; k < BK; k += 8)
                copy<4>((float *)a[next][a_k + k] + a_row + i * A_ROWS,
                        a_from + (size_t)(i * A_ROWS) * K + k,
                        first_row + a_row + i * A_ROWS < M && a_k + k < left);
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            copy4(&b[next][b_k + i * B_ROWS][b_n], b_from + (size_t)(i * B_ROWS) * N,
                  first_column + b_n * 4, b_k + i * B_ROWS < left ? N : 0, aligned);

        // Multiply: each of TM values of A with each of TN values of B.
        if (start >= 0) {
            #pragma unroll
            for (int k = 0; k < BK; ++k) {
                float down[TM], across[TN];
                #pragma unroll
                for (int i = 0; i < TM; i += 4) {
                    const float4 four = a[now][k][ty + i / 4 * DOWN];
                    down[i] = four.x, down[i + 1] = four.y, down[i + 2] = four.z,
                    down[i + 3] = four.w;
                }
                #pragma unroll
                for (int j = 0; j < TN; j += 4) {
                    const float4 four = b[now][k][tx + j / 4 * ACROSS];
                    across[j] = four.x, across[j + 1] = four.y, across[j + 2] = four.z,
                    across[j + 3] = four.w;
                }
                #pragma unroll
                for (int i = 0; i < TM; ++i)
                    #pragma unroll
                    for (int j = 0; j < TN; ++j)
                        sum[i][j] += down[i] * across[j];
            }
        }

        wait_for_copies();
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + (ty + i / 4 * DOWN) * 4 + i % 4;
        #pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(C + (size_t)row * N, first_column + (tx + j / 4 * ACROSS) * 4, row < M ? N : 0,
                   aligned,
                   make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]));
    }
}
