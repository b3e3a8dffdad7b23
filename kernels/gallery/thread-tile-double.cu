// /// matbench
// name = "thread-tile-double"
// summary = "float64 throughout, without tensor cores: TM×TN elements per thread"
// group = "gallery"
// previous = "thread-tile-2d"
// [sweep]
// BM = [128]
// BN = [64]
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
//          "8 * BK * (BM + BN) <= max_static_shared_bytes"]
// block = ["BN // TN", "BM // TM"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// As thread-tile-2d, with doubles in memory, in tiles and in sums. The algorithm is the same, but a
// double takes two registers: 8×8 sums fill 128 of a thread's 255, and few threads fit on a
// multiprocessor. A double also takes two words of shared memory, and a warp's fetch twice the
// cycles.
//
// On a device with half as many units for double as for float (data-centre GPUs) these effects
// cancel: half as many products per cycle need twice the bytes each, so the same tiles are about as
// good as before. A consumer GPU has 1/64 of the units, and only their number matters there.

#ifndef BM
#define BM 128
#define BN 64
#define BK 8
#define TM 8
#define TN 8
#endif
#define ACROSS (BN / TN)
#define THREADS (ACROSS * (BM / TM))

extern "C" __global__ void __launch_bounds__(THREADS)
thread_tile_double(const double *A, const double *B, double *C, int M, int N, int K)
{
    __shared__ double a[BM][BK];
    __shared__ double b[BK][BN];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * ACROSS + tx;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;

    double sum[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            sum[i][j] = 0.0;

    for (int start = 0; start < K; start += BK) {
        // Stage: each tile's elements are divided among the threads, neighbours to neighbours.
        for (int e = thread; e < BM * BK; e += THREADS) {
            const int row = first_row + e / BK, k = start + e % BK;
            a[e / BK][e % BK] = row < M && k < K ? A[(size_t)row * K + k] : 0.0;
        }
        for (int e = thread; e < BK * BN; e += THREADS) {
            const int k = start + e / BN, column = first_column + e % BN;
            b[e / BN][e % BN] = k < K && column < N ? B[(size_t)k * N + column] : 0.0;
        }
        __syncthreads();

        // Multiply: each of TM values of A with each of TN values of B.
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            double down[TM], across[TN];
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
