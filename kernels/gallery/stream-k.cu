// /// matbench
// name = "stream-k"
// summary = "Every block takes an equal share of the k steps of all tiles"
// group = "gallery"
// previous = "split-k"
// requires = ["cuda", "sm_80"]
// args = ["A", "B", "C", "workspace", "M", "N", "K"]
// [sweep]
// BM = [64]
// BN = [64, 128]
// BK = [32]
// WM = [64]
// WN = [64]
// TM = [8]
// TN = [16]
// SLICES = [4]
// STAGES = [3]
// RESIDENT = [1, 2]
// [tune]
// BM = [64, 128]
// BN = [64, 128]
// BK = [16, 32]
// WM = [32, 64]
// WN = [32, 64]
// TM = [8]
// TN = [8, 16]
// SLICES = [1, 2, 4]
// STAGES = [3, 4]
// RESIDENT = [1, 2, 3]
// [let]
// WARPS = "(BM // WM) * (BN // WN)"
// THREADS = "32 * WARPS * SLICES"
// SHARED_BYTES = "4 * max(STAGES * BK * (BM + 4 + BN), SLICES * BM * BN)"
// [launch]
// where = ["TM % 4 == 0", "TN % 4 == 0", "WM % (2 * TM) == 0", "WN % (2 * TN) == 0",
//          "WM // TM * (WN // TN) == 32", "BM % WM == 0", "BN % WN == 0", "STAGES >= 2",
//          "BK % 8 == 0", "BK % (2 * SLICES) == 0", "THREADS <= max_threads_per_block",
//          "8 * BM % THREADS == 0", "4 * THREADS % BN == 0", "BK * BN % (4 * THREADS) == 0",
//          "THREADS * RESIDENT * (TM * TN + 64) <= 65536",
//          "SHARED_BYTES <= max_shared_bytes_per_block",
//          "RESIDENT * (4 * STAGES * BK * (BM + 4 + BN) + 1024) <= max_shared_bytes_per_block",
//          "RESIDENT * (4 * SLICES * BM * BN + 1024) <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["min(multiprocessors * RESIDENT, ceil_div(M, BM) * ceil_div(N, BN) * ceil_div(K, BK))"]
// shared_bytes = "SHARED_BYTES"
// workspace_bytes = "8 * BM * BN * multiprocessors * RESIDENT"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: a grid of as many blocks as can run at the same time, and for each an equal share of all
//   steps.
// Predicted: at 128x128x65536, at most 47 TFLOP/s: 2.1 GFLOP at the rate of the loop of sliced-k
//   are 43 µs, 67 MB of A and B take 16 µs meanwhile, and 4.3 MB of partial sums 2 µs at the end.
// Measured: 48.8 TFLOP/s at n = 4095, 101% of cuBLAS (H200)
//   37.4 TFLOP/s at 128x128x65536, 118% of cuBLAS (H200)
//
// This is Stream-K (M. Osama and others, arXiv 2301.03598). The tiles' steps, one tile after the
// other, form one row; each block takes an equal part of it, wherever it begins and ends. So all
// blocks finish at the same time, whatever the number of tiles. split-k has at most eight blocks
// for each tile: if there are few tiles, the other multiprocessors idle.
//
// A block that computes all steps of a tile stores it in C. If several blocks share a tile, each
// stores its partial sums in the workspace. When all blocks of the grid have arrived, the blocks of
// a tile add up its parts, always in the same order. Each takes a share of the tile, so the sum of
// 66 parts takes about as long as that of two.
//
// The blocks wait for one another, which is only possible because all of them run at the same time:
// there are RESIDENT per multiprocessor. A wait of two seconds ends with an error.

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
#define STAGES 3
#define RESIDENT 1
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
#define QUADS (BM * BN / 4)  // groups of four elements of a tile

// Blocks that have arrived at the barrier of the grid; the highest bit changes when all have.
static __device__ unsigned arrivals;

// Waits until every block of the grid has arrived, and makes visible what they have stored.
//
// A block that has waited for two seconds stores to address 0, which ends the grid with an error.
// __trap() would do so too. But then the compiler knows that threads may end in the middle of the
// code, no longer keeps counters in uniform registers, and the main loop becomes 5% slower.
static __device__ __forceinline__ void wait_for_grid()
{
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned last = 0x80000000u;
        const unsigned own = blockIdx.x == 0 ? last - (gridDim.x - 1) : 1;
        unsigned before, now;
        unsigned long long start, time;
        asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], %2;"
                     : "=r"(before) : "l"(&arrivals), "r"(own) : "memory");
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
        do {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(&arrivals) : "memory");
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
            if (time - start > 2000000000ull)
                asm volatile("st.global.u32 [%0], %1;" :: "l"(0ull), "r"(now) : "memory");
        } while (((now ^ before) & last) == 0);
    }
    __syncthreads();
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

// The steps of all tiles, one tile after the other, divided evenly among the blocks of the grid.
struct Shares {
    int across, steps;  // tiles in a row of C, steps of a tile
    long long total;    // steps of all tiles

    __device__ Shares(int M, int N, int steps)
        : across((N + BN - 1) / BN), steps(steps),
          total((long long)((M + BM - 1) / BM) * across * steps)
    {
    }

    __device__ int row(int tile) const { return tile / across * BM; }
    __device__ int column(int tile) const { return tile % across * BN; }

    // The first step of a block.
    __device__ long long begin(int block) const { return total * block / gridDim.x; }

    // The block that computes a step.
    __device__ int block(long long step) const { return ((step + 1) * gridDim.x - 1) / total; }

    // No tile is shared by several blocks.
    __device__ bool none_shared() const { return total / steps % gridDim.x == 0; }

    // Where the workspace holds a block's part of a tile. A block may start in the middle of one
    // tile and end in the middle of another.
    static __device__ size_t part(int block, bool first_of_tile)
    {
        return (2 * block + first_of_tile) * (size_t)QUADS;
    }
};

// ALIGNED: the rows of B and C start at multiples of 16 bytes.
template <bool ALIGNED>
static __device__ __forceinline__ void product(const float *A, const float *B, float *C,
                                               float4 *parts, int M, int N, int K)
{
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

    // What this thread copies. Of A: column a_k of the step, in every A_ROWS-th row. Of B: four
    // columns in every B_ROWS-th row: adjacent if ALIGNED, so that one copy takes all four,
    // otherwise BN / 4 apart and copied one by one. Beyond the last row of A it copies that row
    // again, and if ALIGNED, beyond B's last columns those: these sums are not stored.
    const int a_k = thread % 8, a_row = thread / 8;
    const int b_k = thread / (BN / 4), b_column = thread % (BN / 4) * (ALIGNED ? 4 : 1);
    const unsigned a_to = tiles_at + 4 * (a_k * A_WIDTH + a_row);
    const unsigned b_to = tiles_at + 4 * (BK * A_WIDTH + b_k * BN + b_column);
    const float *a_from[A_COPIES], *b_from[B_COPIES];
    bool b_wanted[4];

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

    // `full` is BK, since blockDim.z is always 1, but the compiler cannot know that; see sliced-k.
    const int full = BK * blockDim.z;
    auto move_on = [&](int terms) {
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            a_from[i] += terms == BK ? full : terms;
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            b_from[i] += terms * (long long)N;
    };

    const char *const a_tile = (const char *)(tiles + team * SLICE * A_WIDTH + m);
    const char *const b_tile = (const char *)(tiles + (BK * A_WIDTH + team * SLICE * BN) + n);

    // All tiles have the same number of steps. The first step of a tile is the short one.
    const int steps = (K + BK - 1) / BK;
    const int ragged = K - (steps - 1) * BK;
    const Shares shares(M, N, steps);
    const long long begin = shares.begin(blockIdx.x), end = shares.begin(blockIdx.x + 1);

    #pragma unroll 1
    for (long long step = begin; step < end;) {
        const int tile = step / steps, from = step % steps;
        const int count = min((long long)(steps - from), end - step);
        const int first_row = shares.row(tile), first_column = shares.column(tile);

        // Fill the pipeline.
        const int first_k = from == 0 ? 0 : ragged + (from - 1) * BK;
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i) {
            const int row = min(first_row + a_row + i * A_ROWS, M - 1);
            a_from[i] = A + (size_t)row * K + (first_k + a_k);
        }
        const int column = first_column + b_column;
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            b_wanted[j] = ALIGNED || column + j * (BN / 4) < N;
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            b_from[i] = B + (size_t)(first_k + b_k + i * B_ROWS) * N +
                        (ALIGNED ? min(column, N - 4) : column);
        const int first_terms = from == 0 ? ragged : BK;
        copy_stage(0, first_terms);
        move_on(first_terms);
        #pragma unroll
        for (int stage = 1; stage < STAGES - 1; ++stage) {
            if (stage < count) {
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

        float a[2][TM], b[2][TN];  // for this k and for the next
        unsigned current = 0, spare = 4 * STAGE * (STAGES - 1);  // stages, in bytes
        wait_for_all_groups<STAGES - 2>();
        fetch<LM>(a[0], (const float *)a_tile);
        fetch<LN>(b[0], (const float *)b_tile);

        #pragma unroll 1
        for (int left = count; left > 0; --left) {
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
                    for (int x = 0; x < TN; ++x) {
                        const int j = i % 2 == 0 ? x : TN - 1 - x;
                        sum[i][j] += a[now][i] * b[now][j];
                    }
            }
            move_on(BK);
        }

        // The teams store their sums where the ring was, and the block adds them up. A tile that
        // is this block's alone is then complete; a part of a tile goes to the workspace. Groups of
        // four are in the order 1, 2, 3, 0, as in sliced-k.
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < TM; ++i)
            #pragma unroll
            for (int j = 0; j < TN; j += 4)
                *(float4 *)(tiles + (team * BM + m + i / 4 * 4 * LM + i % 4) * BN + n + j * LN) =
                    make_float4(sum[i][j + 1], sum[i][j + 2], sum[i][j + 3], sum[i][j]);
        __syncthreads();
        float4 *const part = parts + Shares::part(blockIdx.x, from == 0);
        for (int quad = thread; quad < QUADS; quad += THREADS) {
            float4 total = shared[quad];
            #pragma unroll
            for (int other = 1; other < SLICES; ++other)
                add(total, shared[other * QUADS + quad]);
            if (count == steps)
                store<ALIGNED>(C, M, N, first_row, first_column, 4 * quad, total);
            else
                part[quad] = total;
        }
        __syncthreads();
        step += count;
    }
    if (shares.none_shared())
        return;

    // Add up the parts of a tile: all blocks that have a part of it take turns with its quads.
    wait_for_grid();
    int last = -1;
    #pragma unroll 1
    for (int edge = 0; edge < 2; ++edge) {
        const int tile = (edge == 0 ? begin : end - 1) / steps;
        const int first = shares.block((long long)tile * steps);
        const int helpers = shares.block((tile + 1ll) * steps - 1) - first + 1;
        if (tile == last || helpers == 1)
            continue;
        last = tile;

        // If the helpers have more threads than the tile has quads, several threads share a quad.
        int width = THREADS;
        while (width > 32 && helpers * width >= 2 * QUADS)
            width /= 2;
        const int group = thread / width, groups = THREADS / width;
        for (int at = ((int)blockIdx.x - first) * width; at < QUADS; at += helpers * width) {
            const int quad = at + thread % width;
            float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            #pragma unroll 8
            for (int p = group; p < helpers; p += groups)
                add(total, __ldcg(parts + Shares::part(first + p, p == 0) + quad));
            shared[thread] = total;
            __syncthreads();
            if (group == 0) {
                for (int other = 1; other < groups; ++other)
                    add(total, shared[other * width + thread]);
                store<ALIGNED>(C, M, N, shares.row(tile), shares.column(tile), 4 * quad, total);
            }
            __syncthreads();
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
stream_k(const float *A, const float *B, float *C, float4 *parts, int M, int N, int K)
{
    if (N % 4 == 0)
        product<true>(A, B, C, parts, M, N, K);
    else
        product<false>(A, B, C, parts, M, N, K);
}
