// /// matbench
// name = "double-tile"
// summary = "Products and sums in double on the ordinary units: C is rounded once, not K times"
// group = "ladder"
// previous = "thread-tile-2d"
// [sweep]
// BM = [64]
// BN = [64, 128]
// BK = [16]
// TM = [8]
// TN = [4, 8]
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

// Adds: products and sums in double. A, B and C stay float32.
// Predicted: at most 33 TFLOP/s: a multiprocessor has half as many units for double as for float,
//   and converts 16 floats per cycle: for 8×8 products as long as the products take.
//
// A sum in float32 is rounded K times. The product of two floats is exact in double: 24 bits times
// 24 bits fit in its 53. K additions in double lose less than the one rounding to float at the end.
// So except for very rare near-ties C is the float nearest to the exact result.
//
// The price depends on the card: H100 and H200 multiply half as many doubles per cycle as floats,
// most others 1/32 or 1/64. And a double takes two registers: 8×8 sums are half of what a thread
// can have. So values of A are fetched one at a time, not TM.
//
// The tiles are those of thread-tile-2d, in float32. A thread converts what it fetches.

#ifndef BM
#define BM 64
#define BN 64
#define BK 16
#define TM 8
#define TN 8
#endif
#define ACROSS (BN / TN)
#define THREADS (ACROSS * (BM / TM))

extern "C" __global__ void __launch_bounds__(THREADS)
double_tile(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[BM][BK];
    __shared__ float b[BK][BN];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * ACROSS + tx;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;

    double sum[TM][TN] = {0};

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
            double across[TN];
            #pragma unroll
            for (int j = 0; j < TN; ++j)
                across[j] = b[k][tx + j * ACROSS];
            #pragma unroll
            for (int i = 0; i < TM; ++i) {
                const double down = a[ty * TM + i][k];
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += down * across[j];
            }
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
                C[(size_t)row * N + column] = (float)sum[i][j];
        }
    }
}
