// /// matbench
// name = "multistage"
// summary = "Copies run several steps ahead, into a ring of stages in shared memory"
// group = "ladder"
// previous = "async-copied"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [128]
// BN = [128]
// BK = [16]
// TM = [8]
// TN = [8]
// STAGES = [3]
// [tune]
// BM = [64, 128]
// BN = [64, 128]
// BK = [8, 16]
// TM = [4, 8]
// TN = [4, 8]
// STAGES = [2, 3, 4, 5, 6]
// [launch]
// where = ["TM % 4 == 0", "TN % 4 == 0", "BM % TM == 0", "BN % TN == 0", "BK % 8 == 0",
//          "(BN // TN) * (BM // TM) % 8 == 0", "8 * BM % ((BN // TN) * (BM // TM)) == 0",
//          "4 * (BN // TN) * (BM // TM) % BN == 0",
//          "BK * BN % (4 * (BN // TN) * (BM // TM)) == 0", "STAGES >= 2",
//          "(BN // TN) * (BM // TM) <= max_threads_per_block",
//          "4 * STAGES * BK * (BM + 4 + BN) <= max_shared_bytes_per_block"]
// block = ["BN // TN", "BM // TM"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "4 * STAGES * BK * (BM + 4 + BN)"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: a ring of stages, which are filled several steps ahead.
// Predicted: at most 59 TFLOP/s: 91% of the instructions are multiply-adds, shared memory is 75%
//   busy, and 1,024 tiles, two per multiprocessor at a time, fill 3.88 of 4 rounds.
//
// In async-copied all copies must arrive within one step. Here more are in flight, in a ring of
// STAGES pairs of tiles, of which one is multiplied while the others fill. The copies of one step
// form a group, and a thread waits until at most a given number of its groups are outstanding. The
// ring may be larger than arrays in shared memory can be, so its size is given at launch.
//
// Nearly half of what async-copied does besides multiply-adds is to compute addresses and look for
// edges. Here pointers advance from step to step. If K is not a multiple of BK, the short step
// comes first, with zeros for what is missing: all later steps are full, and the loop does not have
// to check for the end of K. How wide a copy of B can be is known when the loop is compiled, once
// for each case.

#include "helpers.cuh"

#ifndef BM
#define BM 128
#define BN 128
#define BK 16
#define TM 8
#define TN 8
#define STAGES 3
#endif
#define ACROSS (BN / TN)
#define DOWN (BM / TM)
#define THREADS (ACROSS * DOWN)
#define A_WIDTH (BM + 4)
#define STAGE (BK * (A_WIDTH + BN))  // floats
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

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * ACROSS + tx;
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

    float sum[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            sum[i][j] = 0.0f;

    const char *const a_tile = (const char *)(tiles + ty * 4);
    const char *const b_tile = (const char *)(tiles + BK * A_WIDTH + tx * 4);
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
            float down[TM], across[TN];
            #pragma unroll
            for (int i = 0; i < TM; i += 4) {
                const float4 four = *(const float4 *)(a_stage + k * A_WIDTH + i * DOWN);
                down[i] = four.x, down[i + 1] = four.y, down[i + 2] = four.z,
                down[i + 3] = four.w;
            }
            #pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const float4 four = *(const float4 *)(b_stage + k * BN + j * ACROSS);
                across[j] = four.x, across[j + 1] = four.y, across[j + 2] = four.z,
                across[j + 3] = four.w;
            }
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i][j] += down[i] * across[j];
        }
        spare = current;
        current = current == 4 * STAGE * (STAGES - 1) ? 0 : current + 4 * STAGE;
    }

    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + (ty + i / 4 * DOWN) * 4 + i % 4;
        #pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(C + (size_t)row * N, first_column + (tx + j / 4 * ACROSS) * 4, row < M ? N : 0,
                   ALIGNED,
                   make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
multistage(const float *A, const float *B, float *C, int M, int N, int K)
{
    if (N % 4 == 0)
        product<true>(A, B, C, M, N, K);
    else
        product<false>(A, B, C, M, N, K);
}
