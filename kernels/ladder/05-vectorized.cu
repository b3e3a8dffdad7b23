// /// matbench
// name = "vectorized"
// summary = "16 bytes at a time, from global and from shared memory; A is transposed while staged"
// group = "ladder"
// previous = "thread-tile-2d"
// [sweep]
// BM = [128]
// BN = [128]
// BK = [8]
// TM = [8]
// TN = [8]
// [tune]
// BM = [64, 128]
// BN = [64, 128]
// BK = [8, 16]
// TM = [4, 8]
// TN = [4, 8]
// [launch]
// where = ["TM % 4 == 0", "TN % 4 == 0", "BM % TM == 0", "BN % TN == 0", "BK % 4 == 0",
//          "(BN // TN) * (BM // TM) <= max_threads_per_block",
//          "4 * BK * (BM + 4 + BN) <= max_static_shared_bytes"]
// block = ["BN // TN", "BM // TM"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: 16 bytes per access, in global and in shared memory. A is transposed while it is staged.
// Predicted: at most 53 TFLOP/s: 80% of the instructions are multiply-adds.
//
// Moving four floats at a time takes a quarter of the load instructions, and every instruction
// saved is a slot in which a multiply-add can start. For this, the four values of A that a thread
// fetches must be adjacent in shared memory. They come from one column of A's tile, so the tile is
// transposed when it is staged. Four floats of padding per row avoid bank conflicts between the
// threads that write there.
//
// A thread's rows and columns come in groups of four. The groups of all threads lie side by side,
// so neighbouring threads fetch neighbouring groups; a thread's own groups lie 4 × DOWN rows and
// 4 × ACROSS columns apart.
//
// If the rows of a matrix have a length that is not a multiple of four, they do not all start at a
// multiple of 16 bytes. Their values are then moved one by one.

#include "helpers.cuh"

#ifndef BM
#define BM 128
#define BN 128
#define BK 8
#define TM 8
#define TN 8
#endif
#define ACROSS (BN / TN)
#define DOWN (BM / TM)
#define THREADS (ACROSS * DOWN)

extern "C" __global__ void __launch_bounds__(THREADS)
vectorized(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float4 a[BK][BM / 4 + 1];  // transposed
    __shared__ float4 b[BK][BN / 4];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * ACROSS + tx;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const int aligned_A = K % 4 == 0, aligned_B = N % 4 == 0;

    float sum[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            sum[i][j] = 0.0f;

    for (int start = 0; start < K; start += BK) {
        // Stage: four values of a row of A become four rows of a.
        #pragma unroll
        for (int e = thread; e < BM * BK / 4; e += THREADS) {
            const int m = e / (BK / 4), k = e % (BK / 4) * 4;
            const int row = first_row + m;
            const float4 four =
                load4(A + (size_t)row * K, start + k, row < M ? K : 0, aligned_A);
            ((float *)a[k + 0])[m] = four.x;
            ((float *)a[k + 1])[m] = four.y;
            ((float *)a[k + 2])[m] = four.z;
            ((float *)a[k + 3])[m] = four.w;
        }
        #pragma unroll
        for (int e = thread; e < BK * BN / 4; e += THREADS) {
            const int k = e / (BN / 4), n = e % (BN / 4);
            b[k][n] = load4(B + (size_t)(start + k) * N, first_column + n * 4,
                            start + k < K ? N : 0, aligned_B);
        }
        __syncthreads();

        // Multiply: each of TM values of A with each of TN values of B.
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            float down[TM], across[TN];
            #pragma unroll
            for (int i = 0; i < TM; i += 4) {
                const float4 four = a[k][ty + i / 4 * DOWN];
                down[i] = four.x, down[i + 1] = four.y, down[i + 2] = four.z, down[i + 3] = four.w;
            }
            #pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const float4 four = b[k][tx + j / 4 * ACROSS];
                across[j] = four.x, across[j + 1] = four.y, across[j + 2] = four.z,
                across[j + 3] = four.w;
            }
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += down[i] * across[j];
        }
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + (ty + i / 4 * DOWN) * 4 + i % 4;
        #pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(C + (size_t)row * N, first_column + (tx + j / 4 * ACROSS) * 4, row < M ? N : 0,
                   aligned_B,
                   make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]));
    }
}
