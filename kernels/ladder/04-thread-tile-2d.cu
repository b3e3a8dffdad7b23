// /// matbench
// name = "thread-tile-2d"
// summary = "TM×TN elements per thread: TM + TN values from shared memory serve TM·TN products"
// group = "ladder"
// previous = "thread-tile-1d"
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
// where = ["BM % TM == 0", "BN % TN == 0",
//          "(BN // TN) * (BM // TM) <= max_threads_per_block",
//          "4 * BK * (BM + BN) <= max_static_shared_bytes"]
// block = ["BN // TN", "BM // TM"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: TM×TN elements per thread, in both directions.
// Predicted: at most 43 TFLOP/s: 64% of the instructions are multiply-adds, and shared memory is
//   75% busy.
//
// For each k a thread fetches TM values of A and TN values of B into registers and multiplies each
// with each. With 8×8 that is a quarter of a fetch per multiply-add; tiled needs two.
//
// A thread's columns lie BN / TN apart, not side by side. So whenever a warp fetches from b or
// stores to C, neighbouring threads access neighbouring floats, and there are no bank conflicts.

#ifndef BM
#define BM 128
#define BN 128
#define BK 8
#define TM 8
#define TN 8
#endif
#define ACROSS (BN / TN)
#define THREADS (ACROSS * (BM / TM))

extern "C" __global__ void __launch_bounds__(THREADS)
thread_tile_2d(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[BM][BK];
    __shared__ float b[BK][BN];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * ACROSS + tx;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;

    float sum[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            sum[i][j] = 0.0f;

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

        // Multiply: each of TM values of A with each of TN values of B.
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            float down[TM], across[TN];
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                down[i] = a[ty * TM + i][k];
            #pragma unroll
            for (int j = 0; j < TN; ++j)
                across[j] = b[k][tx + j * ACROSS];
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
        const int row = first_row + ty * TM + i;
        #pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int column = first_column + tx + j * ACROSS;
            if (row < M && column < N)
                C[(size_t)row * N + column] = sum[i][j];
        }
    }
}
