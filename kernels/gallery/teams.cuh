// Teams of warps in a block: each multiplies a slice of every step of K, as pipelined does the whole
// step. The kernel defines the sizes of tiles (BM, BN, BK, WM, WN, TM, TN), SLICES (the number of
// teams), STAGES, WARPS of a team, and THREADS.
#pragma once

#include "../ladder/helpers.cuh"

#define SLICE (BK / SLICES)  // a team's share of a step
#define LM (WM / TM)  // rows of lanes in a warp
#define LN (WN / TN)  // and columns of them
#define A_WIDTH (BM + 4)
#define STAGE (BK * (A_WIDTH + BN))  // floats
#define A_ROWS (THREADS / 8)         // rows of A that the block copies at once
#define A_COPIES (BM / A_ROWS)
#define B_ROWS (THREADS / (BN / 4))
#define B_COPIES (BK / B_ROWS)
#define QUADS (BM * BN / 4)  // groups of four elements of a tile

// Multiplies the first columns of A by the first rows of B: in `steps` steps of BK terms, but of
// `first_terms` in the first. Stores the sums of each team in `tiles`, one team after the other; the
// caller synchronizes the block before it reads them. ALIGNED: the rows of B start at multiples of
// 16 bytes.
template <bool ALIGNED>
static __device__ __forceinline__ void multiply(const float *A, const float *B, int M, int N, int K,
                                                int first_row, int first_column, int steps,
                                                int first_terms, float *tiles)
{
    const unsigned tiles_at = (unsigned)__cvta_generic_to_shared(tiles);

    // Place: a team's warps divide the block's tile, lanes the warp's. Bit 0 of a lane's number
    // counts across, bit 1 down, as in warp-tiled.
    const int thread = threadIdx.x, warp = thread / 32 % WARPS, lane = thread % 32;
    const int team = thread / 32 / WARPS;
    const int across = lane % 2 + lane / 4 % (LN / 2) * 2;
    const int down = lane / 2 % 2 + lane / 4 / (LN / 2) * 2;
    const int m = warp / (BN / WN) * WM + down * 4;
    const int n = warp % (BN / WN) * WN + across * 4;

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

    // Fill the pipeline.
    copy_stage(0, first_terms);
    move_on(first_terms);
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

    // Each team stores its sums where the ring was.
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
}

// Stores sums 1, 2, 3 and 0 of four, at `at` of the tile that starts at this row and column.
template <bool ALIGNED>
static __device__ __forceinline__ void store(float *C, int M, int N, int row, int column, int at,
                                             const float4 &sums)
{
    row += at / BN, column += at % BN;
    float *const to = C + (size_t)row * N + column;
    if (ALIGNED && row < M && column < N)
        *(float4 *)to = make_float4(sums.w, sums.x, sums.y, sums.z);
    const float values[4] = {sums.w, sums.x, sums.y, sums.z};
    #pragma unroll
    for (int q = 0; q < 4; ++q)
        if (!ALIGNED && row < M && column + q < N)
            to[q] = values[q];
}

static __device__ __forceinline__ void add(float4 &sums, const float4 &more)
{
    sums.x += more.x, sums.y += more.y, sums.z += more.z, sums.w += more.w;
}
