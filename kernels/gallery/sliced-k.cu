// /// matbench
// name = "sliced-k"
// summary = "Teams of warps in a block split K: small products keep all schedulers busy"
// group = "gallery"
// previous = "pipelined"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [32, 64]
// BN = [64, 128]
// BK = [32, 64]
// WM = [32]
// WN = [64]
// TM = [8]
// TN = [8]
// SLICES = [4, 8]
// STAGES = [3]
// [tune]
// BM = [32, 64, 128]
// BN = [16, 32, 64, 128]
// BK = [16, 32, 64]
// WM = [32, 64]
// WN = [16, 32, 64]
// TM = [4, 8]
// TN = [4, 8, 16]
// SLICES = [1, 2, 4, 8]
// STAGES = [3, 4, 5]
// [let]
// WARPS = "(BM // WM) * (BN // WN)"
// THREADS = "32 * WARPS * SLICES"
// SHARED_BYTES = "4 * max(STAGES * BK * (BM + 4 + BN), SLICES * BM * BN)"
// [launch]
// where = ["TM % 4 == 0", "TN % 4 == 0", "WM % (2 * TM) == 0", "WN % (2 * TN) == 0",
//          "WM // TM * (WN // TN) == 32", "BM % WM == 0", "BN % WN == 0", "STAGES >= 2",
//          "BK % 8 == 0", "BK % (2 * SLICES) == 0", "THREADS <= max_threads_per_block",
//          "8 * BM % THREADS == 0", "4 * THREADS % BN == 0", "BK * BN % (4 * THREADS) == 0",
//          "THREADS * (TM * TN + 64) <= 65536", "SHARED_BYTES <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "SHARED_BYTES"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: teams of warps that split K within a block, so that small products have enough warps.
// Limit: at n = 1000, 62 TFLOP/s: 128 tiles of 64×128 use 128 of 132 multiprocessors. The 64 tiles
//   of 128×128 of pipelined use half of them, which allows 31 TFLOP/s.
// Measured: 21.2 TFLOP/s at n = 512, 143% of cuBLAS (H100)
//   39.9 TFLOP/s at n = 1000, 125% of cuBLAS (H100)
//   49.4 TFLOP/s at n = 4096, 95% of cuBLAS (H100)
//
// The warps of a block form SLICES teams. Each team computes the whole BM×BN tile, but only from
// its share of every step's k. At the end the block adds up the teams' sums, always in the same
// order.
//
// A small product has few tiles, so it needs smaller ones. But a block with a small tile and large
// thread tiles has few warps, and a scheduler with a single warp idles whenever that warp waits.
// Splitting K gives the block more warps. It is also more accurate: SLICES short sums that are
// added up collect 1 / SLICES of the rounding errors of one long sum.
//
// At n = 256 the fastest have tiles of 32×16 with 4×4 elements per thread (BK = 64, STAGES = 5; see
// [tune]): 128 blocks of eight teams. They read more from the caches than larger tiles would, but
// all multiprocessors take part.

#ifndef BM
#define BM 64
#define BN 64
#define BK 32
#define WM 32
#define WN 64
#define TM 8
#define TN 8
#define SLICES 4
#define STAGES 3
#define WARPS 2  // of a team
#define THREADS 256
#endif
#include "teams.cuh"

// ALIGNED: the rows of B and C start at multiples of 16 bytes.
template <bool ALIGNED>
static __device__ __forceinline__ void product(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    extern __shared__ float4 shared[];
    const int row = blockIdx.y * BM, column = blockIdx.x * BN;
    const int steps = (K + BK - 1) / BK;  // the first is the short one
    multiply<ALIGNED>(A, B, M, N, K, row, column, steps, K - (steps - 1) * BK, (float *)shared);

    // The block adds up the sums of all teams.
    __syncthreads();
    #pragma unroll
    for (int quad = threadIdx.x; quad < QUADS; quad += THREADS) {
        float4 total = shared[quad];
        #pragma unroll
        for (int team = 1; team < SLICES; ++team)
            add(total, shared[team * QUADS + quad]);
        store<ALIGNED>(C, M, N, row, column, 4 * quad, total);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
sliced_k(const float *A, const float *B, float *C, int M, int N, int K)
{
    if (N % 4 == 0)
        product<true>(A, B, C, M, N, K);
    else
        product<false>(A, B, C, M, N, K);
}
