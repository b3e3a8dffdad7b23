// /// matbench
// name = "pipelined"
// summary = "Products and pointers in the order that suits the registers: the loop hardly waits"
// group = "ladder"
// previous = "prefetched"
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

// Adds: an order of products, and pointers, for which no instruction waits for registers.
// Predicted: at most 60 TFLOP/s: 92.5% of the instructions are multiply-adds, shared memory is 38%
//   busy, and 512 tiles on 132 multiprocessors fill 3.88 of 4 rounds.
//
// - A multiply-add reads three registers from two banks (even and odd registers), which deliver one
//   per cycle each. What the previous instruction read in the same operand position is still there.
//   So rows of products go back and forth: each begins with the last value of B of the row before.
// - Each thread keeps a pointer to every place it copies from. If it computed the pointer just
//   before the copy, it would have to wait until the previous copy has read the registers.

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
    // What this thread copies, as before, but with a pointer for each copy.
    const int a_k = thread % 8, a_row = thread / 8;
    const int b_k = thread / (BN / 4), b_column = thread % (BN / 4) * (ALIGNED ? 4 : 1);
    const unsigned a_to = tiles_at + 4 * (a_k * A_WIDTH + a_row);
    const unsigned b_to = tiles_at + 4 * (BK * A_WIDTH + b_k * BN + b_column);
    const float *a_from[A_COPIES], *b_from[B_COPIES];
    bool a_wanted[A_COPIES], b_wanted[4];
    #pragma unroll
    for (int i = 0; i < A_COPIES; ++i) {
        const int row = first_row + a_row + i * A_ROWS;
        a_from[i] = A + (size_t)row * K + a_k;
        a_wanted[i] = row < M;
    }
    #pragma unroll
    for (int i = 0; i < B_COPIES; ++i)
        b_from[i] = B + (size_t)(b_k + i * B_ROWS) * N + first_column + b_column;
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        b_wanted[j] = first_column + b_column + j * (BN / 4) < N;

    // Starts to copy the next `terms` columns of A and rows of B to the stage at byte `to`.
    auto copy_stage = [&](unsigned to, int terms) {
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            #pragma unroll
            for (int k = 0; k < BK; k += 8)
                copy<4>(a_to + to + 4 * (k * A_WIDTH + i * A_ROWS), a_from[i] + k,
                        a_wanted[i] && (terms == BK || a_k + k < terms));
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            #pragma unroll
            for (int j = 0; j < (ALIGNED ? 1 : 4); ++j)
                copy<ALIGNED ? 16 : 4>(b_to + to + 4 * (i * B_ROWS * BN + j * (BN / 4)),
                                       b_from[i] + j * (BN / 4),
                                       b_wanted[j] && (terms == BK || b_k + i * B_ROWS < terms));
        end_of_group();
    };
    // `full` is BK, but the compiler does not know that blockDim.z is 1. An unknown step takes one
    // multiply-add per pointer, a constant one two additions, perhaps one of them in every copy.
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
    const int steps = (K + BK - 1) / BK, ragged = K - (steps - 1) * BK;
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
            if (k == BK / 2) {  // the spare stage is free since the last step's barrier
                if (left > STAGES - 1)
                    copy_stage(spare, BK);
                else
                    end_of_group();
            }
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
    store_sums<ALIGNED, LM, LN>(C, sum, first_row + m, first_column + n, M, N);
}

extern "C" __global__ void __launch_bounds__(THREADS)
pipelined(const float *A, const float *B, float *C, int M, int N, int K)
{
    if (N % 4 == 0)
        product<true>(A, B, C, M, N, K);
    else
        product<false>(A, B, C, M, N, K);
}
