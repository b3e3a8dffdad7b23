// /// matbench
// name = "warp-tiled"
// summary = "Block, warp and thread tiles: which lanes share a fetch decides what the fetch costs"
// group = "ladder"
// previous = "async-copied"
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
// [launch]
// where = ["TM % 4 == 0", "TN % 4 == 0", "TM * TN <= 128", "WM % (2 * TM) == 0",
//          "WN % (2 * TN) == 0", "WM // TM * (WN // TN) == 32", "BM % WM == 0", "BN % WN == 0",
//          "BK % 8 == 0", "BM % (4 * (BM // WM) * (BN // WN)) == 0",
//          "128 * (BM // WM) * (BN // WN) % BN == 0",
//          "BK * BN % (128 * (BM // WM) * (BN // WN)) == 0", "STAGES >= 2",
//          "32 * (BM // WM) * (BN // WN) <= max_threads_per_block",
//          "32 * (BM // WM) * (BN // WN) * (TM * TN + TM + TN + 40) <= 65536",
//          "4 * STAGES * BK * (BM + 4 + BN) <= max_shared_bytes_per_block"]
// block = ["32 * (BM // WM) * (BN // WN)"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "4 * STAGES * BK * (BM + 4 + BN)"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: a tile for each warp, between those of the block and the thread, and a numbering of its
//   lanes that makes fetches from shared memory cheaper.
// Predicted: at most 59 TFLOP/s: 89% of the instructions are multiply-adds, and shared memory is
//   50% busy.
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
#endif
#define THREADS (32 * (BM / WM) * (BN / WN))
#define LM (WM / TM)  // rows of lanes in a warp
#define LN (WN / TN)  // and columns of them
#define A_WIDTH (BM + 4)
#define STAGE (BK * (A_WIDTH + BN))      // floats
#define A_ROWS (THREADS / 8)             // rows of A that the block copies at once
#define B_ROWS (THREADS / (BN / 4))      // and of B
#define RESIDENT (TM * TN > 64 ? 256 : 512)  // threads that a multiprocessor should hold at once
#define BLOCKS (THREADS > RESIDENT ? 1 : RESIDENT / THREADS)

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
warp_tiled(const float *A, const float *B, float *C, int M, int N, int K)
{
    extern __shared__ float4 shared[];
    float *const ring = (float *)shared;

    // Place: warps divide the block's tile, lanes the warp's. (m, n) is where this thread's first
    // group of 4×4 elements starts; its groups lie 4 × LM rows and 4 × LN columns apart.
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int lane_across = lane % 2 + lane / 4 % (LN / 2) * 2;
    const int lane_down = lane / 2 % 2 + lane / 4 / (LN / 2) * 2;
    const int m = warp / (BN / WN) * WM + lane_down * 4;
    const int n = warp % (BN / WN) * WN + lane_across * 4;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const bool aligned = N % 4 == 0;

    // What this thread copies. Of A: column a_k of eight, in every A_ROWS-th row. Of B: four
    // columns in every B_ROWS-th row. They are adjacent, and one copy takes all four, if rows start
    // at multiples of 16 bytes; otherwise they lie BN / 4 apart and are copied one by one.
    const int a_k = thread % 8, a_row = thread / 8;
    const int b_k = thread / (BN / 4), b_column = thread % (BN / 4) * (aligned ? 4 : 1);
    const float *a_from = A + (size_t)(first_row + a_row) * K + a_k;
    const float *b_from = B + (size_t)b_k * N + first_column + b_column;

    // Starts to copy the next `terms` columns of A and rows of B.
    auto copy_stage = [&](int stage, int terms) {
        float *const a = ring + stage * STAGE + a_k * A_WIDTH + a_row;
        float *const b = ring + stage * STAGE + BK * A_WIDTH + b_k * BN + b_column;
        #pragma unroll
        for (int i = 0; i < BM; i += A_ROWS)
            #pragma unroll
            for (int k = 0; k < BK; k += 8)
                copy<4>(a + k * A_WIDTH + i, a_from + (size_t)i * K + k,
                      first_row + a_row + i < M && (terms == BK || a_k + k < terms));
        #pragma unroll
        for (int k = 0; k < BK; k += B_ROWS) {
            const bool inside = terms == BK || b_k + k < terms;
            if (aligned)
                copy<16>(b + k * BN, b_from + (size_t)k * N,
                       first_column + b_column < N && inside);
            else
                #pragma unroll
                for (int j = 0; j < BN; j += BN / 4)
                    copy<4>(b + k * BN + j, b_from + (size_t)k * N + j,
                            first_column + b_column + j < N && inside);
        }
        a_from += terms;
        b_from += (size_t)terms * N;
    };

    float sum[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            sum[i][j] = 0.0f;

    const int steps = (K + BK - 1) / BK;
    copy_stage(0, K - (steps - 1) * BK);
    end_of_group();
    for (int stage = 1; stage < STAGES - 1; ++stage) {
        if (stage < steps)
            copy_stage(stage, BK);
        end_of_group();
    }

    int stage = 0, spare = STAGES - 1;
    for (int left = steps; left > 0; --left) {
        // This step's tiles have arrived when at most STAGES - 2 groups, those of later steps, are
        // outstanding. After the barrier that holds for the copies of all threads. The barrier also
        // means that all threads are done with the previous step, whose tiles may be overwritten.
        wait_for_groups<STAGES - 2>();
        __syncthreads();
        if (left > STAGES - 1)
            copy_stage(spare, BK);
        end_of_group();

        // Multiply: each of TM values of A with each of TN values of B.
        const float *const a = ring + stage * STAGE, *const b = a + BK * A_WIDTH;
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            float down[TM], across[TN];
            #pragma unroll
            for (int i = 0; i < TM; i += 4) {
                const float4 four = *(const float4 *)(a + k * A_WIDTH + m + i * LM);
                down[i] = four.x, down[i + 1] = four.y, down[i + 2] = four.z, down[i + 3] = four.w;
            }
            #pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const float4 four = *(const float4 *)(b + k * BN + n + j * LN);
                across[j] = four.x, across[j + 1] = four.y, across[j + 2] = four.z,
                across[j + 3] = four.w;
            }
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += down[i] * across[j];
        }
        spare = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }

    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + m + i / 4 * 4 * LM + i % 4;
        #pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int column = first_column + n + j * LN;
            float *const to = C + (size_t)row * N + column;
            if (aligned && row < M && column < N)
                *(float4 *)to = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
            #pragma unroll
            for (int q = 0; q < 4; ++q)
                if (!aligned && row < M && column + q < N)
                    to[q] = sum[i][j + q];
        }
    }
}
