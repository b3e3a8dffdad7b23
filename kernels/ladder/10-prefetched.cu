// /// matbench
// name = "prefetched"
// summary = "Values are fetched one k ahead, across the barrier too; 8×16 elements per thread"
// group = "ladder"
// previous = "warp-tiled"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [128]
// BN = [128, 256]
// BK = [8]
// WM = [64]
// WN = [64]
// TM = [8]
// TN = [16]
// STAGES = [4]
// [tune]
// BM = [64, 128, 256]
// BN = [64, 128, 256]
// BK = [8, 16, 32]
// WM = [32, 64, 128]
// WN = [32, 64, 128]
// TM = [4, 8, 16]
// TN = [4, 8, 16]
// STAGES = [3, 4, 5, 6]
// [let]
// THREADS = "32 * (BM // WM) * (BN // WN)"
// STAGE = "BK * (BM + 4 + BN)"
// [launch]
// where = ["TM % 4 == 0", "TN % 4 == 0", "TM * TN <= 128", "WM % (2 * TM) == 0",
//          "WN % (2 * TN) == 0", "WM // TM * (WN // TN) == 32", "BM % WM == 0", "BN % WN == 0",
//          "BK % 8 == 0", "STAGES >= 2", "THREADS <= max_threads_per_block",
//          "8 * BM % THREADS == 0", "4 * THREADS % BN == 0", "BK * BN % (4 * THREADS) == 0",
//          "THREADS * (TM * TN + 2 * TM + 2 * TN + 40) <= 65536",
//          "4 * STAGES * STAGE <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "4 * STAGES * STAGE"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: fetches from shared memory one k ahead, and 8×16 elements per thread.
// Predicted: at most 60 TFLOP/s: 92% of the instructions are multiply-adds, shared memory is 38%
//   busy, and 512 tiles on 132 multiprocessors fill 3.88 of 4 rounds.
//
// What is left in warp-tiled is waiting inside the loop, for values from shared memory and at the
// barrier.
//
// - The values for the next k are fetched from shared memory while this k is multiplied. At the
//   last k of a step these are the first values of the next step. The barrier therefore comes
//   before the last k's products, which hide both the barrier and the fetch.
// - The copies start a quarter into a step. Right after the barrier all warps fetch from shared
//   memory at once, and copies would compete with them.
// - A step is only eight k, about 1,100 instructions. A loop twice as long does not fit in the
//   instruction cache closest to the schedulers, and they wait for instructions.

#include "helpers.cuh"

#ifndef BM
#define BM 128
#define BN 256
#define BK 8
#define WM 64
#define WN 64
#define TM 8
#define TN 16
#define STAGES 4
#define THREADS 256
#define STAGE 3104  // floats
#endif
#define LM (WM / TM)  // rows of lanes in a warp
#define LN (WN / TN)  // and columns of them
#define A_WIDTH (BM + 4)
#define A_ROWS (THREADS / 8)         // rows of A that the block copies at once
#define B_ROWS (THREADS / (BN / 4))  // and of B
#define A_COPIES (BM / A_ROWS)
#define B_COPIES (BK / B_ROWS)

template <bool ALIGNED>  // the rows of B and C start at multiples of 16 bytes
__device__ __forceinline__ void product(const float *A, const float *B, float *C,
                                        int M, int N, int K)
{
    extern __shared__ float4 shared[];
    float *const tiles = (float *)shared;
    const unsigned tiles_at = (unsigned)__cvta_generic_to_shared(tiles);
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int across = lane % 2 + lane / 4 % (LN / 2) * 2;
    const int down = lane / 2 % 2 + lane / 4 / (LN / 2) * 2;
    const int m = warp / (BN / WN) * WM + down * 4;
    const int n = warp % (BN / WN) * WN + across * 4;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    // What this thread copies, as in warp-tiled.
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
        for (int k = 0; k < BK; ++k) {
            const int now = k % 2, next = 1 - now;
            if (k < BK - 1) {
                fetch<LM>(a[next], a_stage + (k + 1) * A_WIDTH);
                fetch<LN>(b[next], b_stage + (k + 1) * BN);
            } else {
                wait_for_all_groups<STAGES - 2>();
                spare = current;
                current = current == 4 * STAGE * (STAGES - 1) ? 0 : current + 4 * STAGE;
                fetch<LM>(a[next], (const float *)(a_tile + current));
                fetch<LN>(b[next], (const float *)(b_tile + current));
            }
            if (k == BK / 4) {  // the spare stage is free since the last step's barrier
                if (left > STAGES - 1)
                    copy_stage(spare, BK);
                else
                    end_of_group();
            }
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += a[now][i] * b[now][j];
        }
    }

    store_sums<ALIGNED, LM, LN>(C, sum, first_row + m, first_column + n, M, N);
}

extern "C" __global__ void __launch_bounds__(THREADS)
prefetched(const float *A, const float *B, float *C, int M, int N, int K)
{
    if (N % 4 == 0)
        product<true>(A, B, C, M, N, K);
    else
        product<false>(A, B, C, M, N, K);
}
