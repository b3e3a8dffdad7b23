// /// matbench
// name = "double-sums"
// summary = "float32 in and out, products and sums in double: rounded once, at the end"
// group = "gallery"
// previous = "double-buffered"
// [sweep]
// BM = [64, 128]
// BN = [128]
// BK = [8, 16]
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
//          "BM * BK % (4 * (BN // TN) * (BM // TM)) == 0",
//          "BK * BN % (4 * (BN // TN) * (BM // TM)) == 0",
//          "(BN // TN) * (BM // TM) <= max_threads_per_block",
//          "8 * BK * (BM + 4 + BN) <= max_static_shared_bytes"]
// block = ["BN // TN", "BM // TM"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: products and sums in double; A, B and C stay float32.
// Limit: 33.5 TFLOP/s: the H200 has half as many units for double as for float.
// Measured: 15.1 TFLOP/s at n = 1000, 48% of cuBLAS (H200)
//   21.3 TFLOP/s at n = 4096, 42% of cuBLAS (H200)
//
// Values are converted to double when they are fetched from shared memory. The product of two
// floats fits in a double without rounding, and K additions in double lose less than the single
// rounding to float at the end. So except for very rare near-ties, C is the float nearest to the
// exact result.
//
// The cost depends on the device. A data-centre GPU has half as many units for double as for float;
// a consumer GPU has 1/64.

#include "../ladder/helpers.cuh"

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
#define A_LOADS (BM * BK / 4 / THREADS)  // of four floats, per thread and step
#define B_LOADS (BK * BN / 4 / THREADS)

extern "C" __global__ void __launch_bounds__(THREADS)
double_sums(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float4 a[2][BK][BM / 4 + 1];  // transposed
    __shared__ float4 b[2][BK][BN / 4];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * ACROSS + tx;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const int aligned_A = K % 4 == 0, aligned_B = N % 4 == 0;

    double sum[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            sum[i][j] = 0.0;

    // Step -1 only loads the first tiles; there is nothing to multiply yet.
    for (int start = -BK; start < K; start += BK) {
        const int now = (start / BK) & 1, next = 1 - now;

        // Load the next tiles into registers; zeros after the last.
        float4 a_next[A_LOADS], b_next[B_LOADS];
        #pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int e = thread + i * THREADS;
            const int row = first_row + e / (BK / 4), k = start + BK + e % (BK / 4) * 4;
            a_next[i] = load4(A + (size_t)row * K, k, row < M ? K : 0, aligned_A);
        }
        #pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int e = thread + i * THREADS;
            const int k = start + BK + e / (BN / 4), column = first_column + e % (BN / 4) * 4;
            b_next[i] = load4(B + (size_t)k * N, column, k < K ? N : 0, aligned_B);
        }

        // Multiply: each of TM values of A with each of TN values of B.
        if (start >= 0) {
            #pragma unroll
            for (int k = 0; k < BK; ++k) {
                double down[TM], across[TN];
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

        // Stage what was loaded: four values of a row of A become four rows of a.
        #pragma unroll
        for (int i = 0; i < A_LOADS; ++i) {
            const int e = thread + i * THREADS;
            const int m = e / (BK / 4), k = e % (BK / 4) * 4;
            ((float *)a[next][k + 0])[m] = a_next[i].x;
            ((float *)a[next][k + 1])[m] = a_next[i].y;
            ((float *)a[next][k + 2])[m] = a_next[i].z;
            ((float *)a[next][k + 3])[m] = a_next[i].w;
        }
        #pragma unroll
        for (int i = 0; i < B_LOADS; ++i) {
            const int e = thread + i * THREADS;
            b[next][e / (BN / 4)][e % (BN / 4)] = b_next[i];
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + (ty + i / 4 * DOWN) * 4 + i % 4;
        #pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(C + (size_t)row * N, first_column + (tx + j / 4 * ACROSS) * 4, row < M ? N : 0,
                   aligned_B,
                   make_float4((float)sum[i][j], (float)sum[i][j + 1], (float)sum[i][j + 2],
                               (float)sum[i][j + 3]));
    }
}
