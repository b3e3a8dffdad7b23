// /// matbench
// name = "thread-tile-1d"
// summary = "TM elements of a column per thread: one value of B from shared memory serves TM times"
// group = "ladder"
// previous = "tiled"
// [sweep]
// BM = [64]
// BN = [64]
// BK = [8]
// TM = [8]
// [tune]
// BM = [32, 64, 128]
// BN = [32, 64, 128]
// BK = [8, 16, 32]
// TM = [2, 4, 8, 16]
// [launch]
// where = ["BM % TM == 0", "BN * (BM // TM) <= max_threads_per_block",
//          "4 * BK * (BM + BN) <= max_static_shared_bytes"]
// block = ["BN", "BM // TM"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 + 1 / TM)"
// ///

// Adds: TM elements of one column of C per thread, instead of one.
// Predicted: at most 27 TFLOP/s: 20 cycles of shared memory for 32 multiply-adds of a warp.
//
// In tiled, every multiply-add needs two values from shared memory, and those fetches limit the
// speed. Here a thread keeps TM sums in registers, so each value of B that it fetches is used TM
// times. The tiles of A and B no longer have to be square: a block of BN × (BM / TM) threads stages
// them together and computes a BM×BN tile of C.

#ifndef BM
#define BM 64
#define BN 64
#define BK 8
#define TM 8
#endif
#define THREADS (BN * (BM / TM))

extern "C" __global__ void __launch_bounds__(THREADS)
thread_tile_1d(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[BM][BK];
    __shared__ float b[BK][BN];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * BN + tx;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;

    // An array stays in registers if the compiler knows every index into it. So all loops over it
    // are unrolled.
    float sum[TM];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        sum[i] = 0.0f;

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

        // Multiply: one value of B with TM values of A.
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            const float value = b[k][tx];
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                sum[i] += a[ty * TM + i][k] * value;
        }
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    const int column = first_column + tx;
    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + ty * TM + i;
        if (row < M && column < N)
            C[(size_t)row * N + column] = sum[i];
    }
}
