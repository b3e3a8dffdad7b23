// /// matbench
// name = "async-copied"
// summary = "Copies from global to shared memory that bypass the registers, several steps ahead"
// group = "ladder"
// previous = "double-buffered"
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
// where = ["TM % 4 == 0", "TN % 4 == 0", "BM % TM == 0", "BN % TN == 0", "STAGES >= 2",
//          "BK % 8 == 0", "(BN // TN) * (BM // TM) <= max_threads_per_block",
//          "8 * BM % ((BN // TN) * (BM // TM)) == 0",
//          "4 * (BN // TN) * (BM // TM) % BN == 0",
//          "BK * BN % (4 * (BN // TN) * (BM // TM)) == 0",
//          "4 * STAGES * BK * (BM + 4 + BN) <= max_shared_bytes_per_block"]
// block = ["BN // TN", "BM // TM"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "4 * STAGES * BK * (BM + 4 + BN)"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: copies from global to shared memory that bypass the registers, into a ring of stages.
// Predicted: at most 59 TFLOP/s: 89% of the instructions are multiply-adds, and shared memory is
//   75% busy.
//
// From sm_80 on, cp.async copies 4, 8 or 16 bytes directly to shared memory, and writes zeros in
// place of bytes outside the matrix. Since no registers are needed for data in flight, more can
// be in flight: a ring of STAGES pairs of tiles, of which one is multiplied while the others fill.
// The copies of one step form a group, and a thread waits until at most a given number of its
// groups are outstanding.
//
// A copy can transpose only float by float, so A is copied 4 bytes at a time. Eight neighbouring
// threads copy eight k of a row, which is a full 32-byte sector of memory. With four floats of
// padding per row of the transposed tile, the 32 floats of a warp fall into 32 different banks.
//
// If K is not a multiple of BK, the short step comes first, with zeros for what is missing. All
// later steps are full, so the loop does not have to check for the end of K.

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
#define STAGE (BK * (A_WIDTH + BN))      // floats
#define A_ROWS (THREADS / 8)             // rows of A that the block copies at once
#define B_ROWS (THREADS / (BN / 4))      // and of B
#define RESIDENT (TM * TN > 64 ? 256 : 512)  // threads that a multiprocessor should hold at once
#define BLOCKS (THREADS > RESIDENT ? 1 : RESIDENT / THREADS)

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
async_copied(const float *A, const float *B, float *C, int M, int N, int K)
{
    extern __shared__ float4 shared[];
    float *const ring = (float *)shared;

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * ACROSS + tx;
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
                const float4 four = *(const float4 *)(a + k * A_WIDTH + (ty + i / 4 * DOWN) * 4);
                down[i] = four.x, down[i + 1] = four.y, down[i + 2] = four.z, down[i + 3] = four.w;
            }
            #pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const float4 four = *(const float4 *)(b + k * BN + (tx + j / 4 * ACROSS) * 4);
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
        const int row = first_row + (ty + i / 4 * DOWN) * 4 + i % 4;
        #pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int column = first_column + (tx + j / 4 * ACROSS) * 4;
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
