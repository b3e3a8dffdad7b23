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
// Measured: 50.0 TFLOP/s at n = 4096, 98% of cuBLAS (H200)
//   47.4 TFLOP/s at 64x8192x8192, 107% of cuBLAS (H200)
//   46.9 TFLOP/s at 8192x64x8192, 112% of cuBLAS (H200)
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

#include <cooperative_groups.h>

#include "../ladder/helpers.cuh"

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
#define SLICE (BK / SLICES)  // a team's share of a step
#define LM (WM / TM)  // rows of lanes in a warp
#define LN (WN / TN)  // and columns of them
#define A_WIDTH (BM + 4)
#define STAGE (BK * (A_WIDTH + BN))  // floats
#define A_ROWS (THREADS / 8)         // rows of A that the block copies at once
#define A_COPIES (BM / A_ROWS)
#define B_ROWS (THREADS / (BN / 4))
#define B_COPIES (BK / B_ROWS)

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
    const int terms_here = min(K, begin + share) - begin;
    A += begin;
    B += (size_t)begin * N;

    extern __shared__ float4 shared[];
    float *const tiles = (float *)shared;
    const unsigned tiles_at = (unsigned)__cvta_generic_to_shared(tiles);

    // Place: a team's warps divide the block's tile, lanes the warp's. Bit 0 of a lane's number
    // counts across, bit 1 down, as in warp-tiled.
    const int thread = threadIdx.x, warp = thread / 32 % WARPS, lane = thread % 32;
    const int team = thread / 32 / WARPS;
    const int across = lane % 2 + lane / 4 % (LN / 2) * 2;
    const int down = lane / 2 % 2 + lane / 4 / (LN / 2) * 2;
    const int m = warp / (BN / WN) * WM + down * 4;
    const int n = warp % (BN / WN) * WN + across * 4;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;

    // What this thread copies. Of A: column a_k of the step, in every A_ROWS-th row. Of B: four
    // columns in every B_ROWS-th row: adjacent if ALIGNED, so that one copy takes all four,
    // otherwise BN / 4 apart and copied one by one. Instead of rows beyond the last one it copies
    // the last one again, if ALIGNED columns too: their sums are not stored.
    const int a_k = thread % 8, a_row = thread / 8;
    const int b_k = thread / (BN / 4), b_column = thread % (BN / 4) * (ALIGNED ? 4 : 1);
    const unsigned a_to = tiles_at + 4 * (a_k * A_WIDTH + a_row);
    const unsigned b_to = tiles_at + 4 * (BK * A_WIDTH + b_k * BN + b_column);
    const float *a_from[A_COPIES], *b_from[B_COPIES];
    bool b_wanted[4];
    #pragma unroll
    for (int i = 0; i < A_COPIES; ++i) {
        const int row = min(first_row + a_row + i * A_ROWS, M - 1);
        a_from[i] = A + (size_t)row * K + a_k;
    }
    const int column = first_column + b_column;
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        b_wanted[j] = ALIGNED || column + j * (BN / 4) < N;
    #pragma unroll
    for (int i = 0; i < B_COPIES; ++i)
        b_from[i] = B + (size_t)(b_k + i * B_ROWS) * N + (ALIGNED ? min(column, N - 4) : column);

    // Starts to copy the next `terms` columns of A and rows of B to the stage at byte `to`.
    auto copy_stage = [&](unsigned to, int terms) {
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            #pragma unroll
            for (int k = 0; k < BK; k += 8)
                copy<4>(a_to + to + 4 * (k * A_WIDTH + i * A_ROWS), a_from[i] + k,
                        terms == BK || a_k + k < terms);
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            #pragma unroll
            for (int j = 0; j < (ALIGNED ? 1 : 4); ++j)
                copy<ALIGNED ? 16 : 4>(b_to + to + 4 * (i * B_ROWS * BN + j * (BN / 4)),
                                       b_from[i] + j * (BN / 4),
                                       b_wanted[j] && (terms == BK || b_k + i * B_ROWS < terms));
        end_of_group();
    };

    // `full` is BK, since blockDim.z is always 1, but the compiler cannot know that. A pointer that
    // advances by an unknown step takes one multiply-add. With a constant step the compiler uses
    // two 32-bit additions, and may repeat the second one before every copy.
    const int full = BK * blockDim.z;
    auto move_on = [&](int terms) {
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            a_from[i] += terms == BK ? full : terms;
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            b_from[i] += terms * (long long)N;
    };

    // Fill the pipeline: first the short step, then full ones.
    const int steps = (terms_here + BK - 1) / BK;
    const int ragged = steps > 0 ? terms_here - (steps - 1) * BK : 0;
    copy_stage(0, ragged);
    move_on(ragged);
    #pragma unroll
    for (int stage = 1; stage < STAGES - 1; ++stage) {
        if (stage < steps) {
            copy_stage(4 * STAGE * stage, BK);
            move_on(BK);
        } else
            end_of_group();
    }

    float sum[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            sum[i][j] = 0.0f;

    const char *const a_tile = (const char *)(tiles + team * SLICE * A_WIDTH + m);
    const char *const b_tile = (const char *)(tiles + (BK * A_WIDTH + team * SLICE * BN) + n);
    float a[2][TM], b[2][TN];  // for this k and for the next
    unsigned current = 0, spare = 4 * STAGE * (STAGES - 1);  // stages, in bytes
    wait_for_all_groups<STAGES - 2>();
    fetch<LM>(a[0], (const float *)a_tile);
    fetch<LN>(b[0], (const float *)b_tile);

    #pragma unroll 1
    for (int left = steps; left > 0; --left) {
        const float *const a_stage = (const float *)(a_tile + current);
        const float *const b_stage = (const float *)(b_tile + current);
        #pragma unroll
        for (int k = 0; k < SLICE; ++k) {
            const int now = k % 2, next = 1 - now;
            if (k < SLICE - 1) {
                fetch<LM>(a[next], a_stage + (k + 1) * A_WIDTH);
                fetch<LN>(b[next], b_stage + (k + 1) * BN);
            } else {
                wait_for_all_groups<STAGES - 2>();
                spare = current;
                current = current == 4 * STAGE * (STAGES - 1) ? 0 : current + 4 * STAGE;
                fetch<LM>(a[next], (const float *)(a_tile + current));
                fetch<LN>(b[next], (const float *)(b_tile + current));
            }

            // The spare stage has been free since the barrier of the previous step.
            if (k == SLICE / 2) {
                if (left > STAGES - 1)
                    copy_stage(spare, BK);
                else
                    end_of_group();
            }

            // Back and forth, as in pipelined.
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sum[i][j] += a[now][i] * b[now][j];
                }
        }
        move_on(BK);
    }

    // Each team stores its sums where the ring was; then each block adds up its share of the tile
    // from all teams of all blocks.
    //
    // Each group of four sums is stored in the order 1, 2, 3, 0, which decides their registers: a
    // store takes four in a row from an even one on. So sum 0 is in an odd register and value 0 of
    // B in an even one, and so on: a multiply-add reads each of the two banks once.
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; j += 4)
            *(float4 *)(tiles + (team * BM + m + i / 4 * 4 * LM + i % 4) * BN + n + j * LN) =
                make_float4(sum[i][j + 1], sum[i][j + 2], sum[i][j + 3], sum[i][j]);
    cluster.sync();
    for (int e = (rank * THREADS + thread) * 4; e < BM * BN; e += blocks * THREADS * 4) {
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int block = 0; block < blocks; ++block) {
            const float *const there = cluster.map_shared_rank(tiles, block);
            #pragma unroll
            for (int other = 0; other < SLICES; ++other) {
                const float4 part = *(const float4 *)(there + other * BM * BN + e);
                total.x += part.x, total.y += part.y, total.z += part.z, total.w += part.w;
            }
        }
        const int row = first_row + e / BN, column = first_column + e % BN;
        float *const to = C + (size_t)row * N + column;
        if (ALIGNED && row < M && column < N)
            *(float4 *)to = make_float4(total.w, total.x, total.y, total.z);
        const float values[4] = {total.w, total.x, total.y, total.z};
        #pragma unroll
        for (int q = 0; q < 4; ++q)
            if (!ALIGNED && row < M && column + q < N)
                to[q] = values[q];
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
