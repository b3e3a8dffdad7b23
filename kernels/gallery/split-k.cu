// /// matbench
// name = "split-k"
// summary = "The blocks of a cluster split K and add up in shared memory, in one launch"
// group = "gallery"
// previous = "sliced-k"
// requires = ["cuda", "sm_90"]
// [sweep]
// BM = [64]
// BN = [64, 128]
// BK = [32]
// WM = [64]
// WN = [64]
// TM = [8]
// TN = [16]
// SLICES = [4]
// SPLITS = [2, 4, 8]
// STAGES = [3]
// [tune]
// BM = [32, 64, 128]
// BN = [32, 64, 128]
// BK = [16, 32]
// WM = [32, 64]
// WN = [32, 64]
// TM = [4, 8]
// TN = [4, 8, 16]
// SLICES = [1, 2, 4, 8]
// SPLITS = [1, 2, 4, 8]
// STAGES = [3, 4]
// [let]
// WARPS = "(BM // WM) * (BN // WN)"
// THREADS = "32 * WARPS * SLICES"
// SHARED_BYTES = "4 * max(STAGES * BK * (BM + 4 + BN), SLICES * BM * BN)"
// [launch]
// where = ["TM % 4 == 0", "TN % 4 == 0", "WM % (2 * TM) == 0", "WN % (2 * TN) == 0",
//          "WM // TM * (WN // TN) == 32", "BM % WM == 0", "BN % WN == 0", "STAGES >= 2",
//          "SPLITS <= 8", "BK % 8 == 0", "BK % (2 * SLICES) == 0",
//          "THREADS <= max_threads_per_block", "8 * BM % THREADS == 0", "4 * THREADS % BN == 0",
//          "BK * BN % (4 * THREADS) == 0", "THREADS * (TM * TN + 64) <= 65536",
//          "SHARED_BYTES <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)", "SPLITS"]
// shared_bytes = "SHARED_BYTES"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: clusters of blocks that split K, for products with fewer tiles than multiprocessors.
// Limit: at 64x8192x8192, 65 TFLOP/s: 64 tiles of 2 blocks each use 128 of 132 multiprocessors.
//   At 128x128x65536, 16 TFLOP/s: 4 tiles of 8 blocks each use 32.
// Measured: 50.1 TFLOP/s at n = 4096, 97% of cuBLAS (H100)
//   47.4 TFLOP/s at 64x8192x8192, 107% of cuBLAS (H100)
//   46.6 TFLOP/s at 8192x64x8192, 113% of cuBLAS (H100)
//
// A cluster of SPLITS blocks computes one tile of C, each block from its own range of K, and the
// teams of a block split that range as in sliced-k. At the end the blocks of a cluster read one
// another's shared memory: each adds up one share of the tile's elements, always in the same order,
// and stores it. So there is nothing to set to zero before the launch, no second launch and no
// atomic addition, and the result is the same every time.
//
// This pays off if K is long and C so small that, even with small tiles, it has fewer tiles than
// there are multiprocessors. From sm_90 on, the blocks of a cluster are guaranteed to run at the
// same time; eight blocks is the largest cluster that every device supports.

#ifndef BM
#define BM 64
#define BN 64
#define BK 32
#define WM 64
#define WN 64
#define TM 8
#define TN 16
#define SLICES 4
#define SPLITS 2
#define STAGES 3
#define WARPS 1  // of a team
#define THREADS 128
#endif
#include "teams.cuh"
#include <cooperative_groups.h>

// ALIGNED: the rows of B and C start at multiples of 16 bytes.
template <bool ALIGNED>
static __device__ __forceinline__ void product(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    // This block's range of K; the last ones may be short or empty.
    const auto cluster = cooperative_groups::this_cluster();
    const int blocks = cluster.num_blocks(), rank = cluster.block_rank();
    const int share = (K + blocks - 1) / blocks;
    const int begin = min(K, rank * share);
    const int terms = min(K, begin + share) - begin;

    extern __shared__ float4 shared[];
    const int row = blockIdx.y * BM, column = blockIdx.x * BN;
    const int steps = (terms + BK - 1) / BK;  // the first is the short one
    multiply<ALIGNED>(A + begin, B + (size_t)begin * N, M, N, K, row, column, steps,
                      steps > 0 ? terms - (steps - 1) * BK : 0, (float *)shared);

    // Each block adds up its share of the tile from all teams of all blocks.
    cluster.sync();
    for (int quad = rank * THREADS + threadIdx.x; quad < QUADS; quad += blocks * THREADS) {
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int block = 0; block < blocks; ++block) {
            const float4 *const there = cluster.map_shared_rank(shared, block);
            #pragma unroll
            for (int team = 0; team < SLICES; ++team)
                add(total, there[team * QUADS + quad]);
        }
        store<ALIGNED>(C, M, N, row, column, 4 * quad, total);
    }
    cluster.sync();  // no block exits while another still reads its shared memory
}

extern "C" __global__ void __cluster_dims__(1, 1, SPLITS) __launch_bounds__(THREADS)
split_k(const float *A, const float *B, float *C, int M, int N, int K)
{
    if (N % 4 == 0)
        product<true>(A, B, C, M, N, K);
    else
        product<false>(A, B, C, M, N, K);
}
