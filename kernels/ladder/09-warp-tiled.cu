// /// matbench
// name = "warp-tiled"
// summary = "Block, warp and thread tiles: which lanes share a fetch decides what the fetch costs"
// group = "ladder"
// previous = "multistage"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [128]
// BN = [128]
// BK = [16]
// WM = [64]
// WN = [32]
// TM = [8]
// TN = [8]
// STAGES = [3]
// [tune]
// BM = [64, 128, 256]
// BN = [64, 128, 256]
// BK = [8, 16, 32]
// WM = [32, 64, 128]
// WN = [32, 64, 128]
// TM = [4, 8, 16]
// TN = [4, 8, 16]
// STAGES = [2, 3, 4, 5, 6]
// [let]
// THREADS = "32 * (BM // WM) * (BN // WN)"
// STAGE = "BK * (BM + 4 + BN)"
// [launch]
// where = ["TM % 4 == 0", "TN % 4 == 0", "TM * TN <= 128", "WM % (2 * TM) == 0",
//          "WN % (2 * TN) == 0", "WM // TM * (WN // TN) == 32", "BM % WM == 0", "BN % WN == 0",
//          "BK % 8 == 0", "STAGES >= 2", "THREADS <= max_threads_per_block",
//          "8 * BM % THREADS == 0", "4 * THREADS % BN == 0", "BK * BN % (4 * THREADS) == 0",
//          "THREADS * (TM * TN + TM + TN + 40) <= 65536",
//          "4 * STAGES * STAGE <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "4 * STAGES * STAGE"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: a tile for each warp, between those of the block and the thread, and a numbering of its
//   lanes that makes fetches from shared memory cheaper.
// Predicted: at most 59 TFLOP/s: 91% of the instructions are multiply-adds, shared memory is 50%
//   busy, and 1,024 tiles, two per multiprocessor at a time, fill 3.88 of 4 rounds.
//
// A warp computes WM×WN elements. Its 32 lanes form a grid of WM / TM rows by WN / TN columns.
// Lanes in one row fetch the same values of A, lanes in one column the same values of B. So the
// squarer the grid, the fewer different values a warp fetches.
//
// Whether that helps depends on how the lanes are numbered. Shared memory delivers 128 bytes per
// cycle, so a fetch of 16 bytes by 32 lanes takes four cycles. It takes only two if lanes whose
// numbers differ in bit 0, or lanes whose numbers differ in bit 1, ask for the same 16 bytes
// (measured on an H200; sharing between other lanes gains nothing). Numbering the lanes row by row
// achieves this for A but not for B. Here bit 0 counts across and bit 1 down, which achieves it for
// both.

#include "helpers.cuh"

#ifndef BM
#define BM 128
#define BN 128
#define BK 16
#define WM 64
#define WN 32
#define TM 8
#define TN 8
#define STAGES 3
#define THREADS 256
#define STAGE 4160  // floats
#endif
#define LM (WM / TM)  // rows of lanes in a warp
#define LN (WN / TN)  // and columns of them
#define A_WIDTH (BM + 4)
#define A_ROWS (THREADS / 8)         // rows of A that the block copies at once
#define B_ROWS (THREADS / (BN / 4))  // and of B
#define A_COPIES (BM / A_ROWS)
#define B_COPIES (BK / B_ROWS)
#define RESIDENT (TM * TN > 64 ? 256 : 512)  // threads that a multiprocessor should hold at once
#define BLOCKS (THREADS > RESIDENT ? 1 : RESIDENT / THREADS)

template <bool ALIGNED>  // the rows of B and C start at multiples of 16 bytes
__device__ __forceinline__ void product(const float *A, const float *B, float *C,
                                        int M, int N, int K)
{
    extern __shared__ float4 shared[];
    float *const tiles = (float *)shared;
    const unsigned tiles_at = (unsigned)__cvta_generic_to_shared(tiles);
    // Warps divide the block's tile, lanes the warp's. (m, n) is where this thread's first group of
    // 4×4 elements starts; its groups lie 4 × LM rows and 4 × LN columns apart.
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int across = lane % 2 + lane / 4 % (LN / 2) * 2;
    const int down = lane / 2 % 2 + lane / 4 / (LN / 2) * 2;
    const int m = warp / (BN / WN) * WM + down * 4;
    const int n = warp % (BN / WN) * WN + across * 4;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    // What this thread copies, as before. The four columns of B are adjacent, and one copy takes
    // all four, if rows are ALIGNED; otherwise they lie BN / 4 apart and are copied one by one.
    const int a_k = thread % 8, a_row = thread / 8;
    const int b_k = thread / (BN / 4), b_column = thread % (BN / 4) * (ALIGNED ? 4 : 1);
    const unsigned a_to = tiles_at + 4 * (a_k * A_WIDTH + a_row);
    const unsigned b_to = tiles_at + 4 * (BK * A_WIDTH + b_k * BN + b_column);
    const float *a_from = A + (size_t)(first_row + a_row) * K + a_k;
    const float *b_from = B + (size_t)b_k * N + first_column + b_column;

    // Starts to copy the next `terms` columns of A and rows of B to the stage at byte `to`.
    auto copy_stage = [&](unsigned to, int terms) {
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            #pragma unroll
            for (int k = 0; k < BK; k += 8)
                copy<4>(a_to + to + 4 * (k * A_WIDTH + i * A_ROWS),
                        a_from + (size_t)(i * A_ROWS) * K + k,
                        first_row + a_row + i * A_ROWS < M && (terms == BK || a_k + k < terms));
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            #pragma unroll
            for (int j = 0; j < (ALIGNED ? 1 : 4); ++j)
                copy<ALIGNED ? 16 : 4>(b_to + to + 4 * (i * B_ROWS * BN + j * (BN / 4)),
                                       b_from + (size_t)(i * B_ROWS) * N + j * (BN / 4),
                                       first_column + b_column + j * (BN / 4) < N
                                           && (terms == BK || b_k + i * B_ROWS < terms));
        a_from += terms;
        b_from += (size_t)terms * N;
        end_of_group();
    };

    // Fill the pipeline: first the short step, then full ones.
    const int steps = (K + BK - 1) / BK, ragged = K - (steps - 1) * BK;
    copy_stage(0, ragged);
    #pragma unroll
    for (int stage = 1; stage < STAGES - 1; ++stage) {
        if (stage < steps)
            copy_stage(4 * STAGE * stage, BK);
        else
            end_of_group();
    }

    float sum[TM][TN] = {};
    const char *const a_tile = (const char *)(tiles + m);
    const char *const b_tile = (const char *)(tiles + BK * A_WIDTH + n);
    unsigned current = 0, spare = 4 * STAGE * (STAGES - 1);  // stages, in bytes
    for (int left = steps; left > 0; --left) {
        // This step's tiles have arrived when at most STAGES - 2 groups, those of later steps, are
        // outstanding. After the barrier that holds for the copies of all threads. The barrier also
        // means that all threads are done with the previous step, whose tiles may be overwritten.
        wait_for_groups<STAGES - 2>();
        __syncthreads();
        if (left > STAGES - 1)
            copy_stage(spare, BK);
        else
            end_of_group();

        // Multiply: each of TM values of A with each of TN values of B.
        const float *const a_stage = (const float *)(a_tile + current);
        const float *const b_stage = (const float *)(b_tile + current);
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
            fetch<LM>(a, a_stage + k * A_WIDTH);
            fetch<LN>(b, b_stage + k * BN);
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += a[i] * b[j];
        }
        spare = current;
        current = current == 4 * STAGE * (STAGES - 1) ? 0 : current + 4 * STAGE;
    }

    store_sums<ALIGNED, LM, LN>(C, sum, first_row + m, first_column + n, M, N);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
warp_tiled(const float *A, const float *B, float *C, int M, int N, int K)
{
    if (N % 4 == 0)
        product<true>(A, B, C, M, N, K);
    else
        product<false>(A, B, C, M, N, K);
}
