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
// Measured: 49.1 TFLOP/s at n = 4095, 101% of cuBLAS (H100)
//   36.9 TFLOP/s at 128x128x65536, 115% of cuBLAS (H100)
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
#include "teams.cuh"

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
    const int thread = threadIdx.x;

    // All tiles have the same number of steps. The first step of a tile is the short one.
    const int steps = (K + BK - 1) / BK;
    const int ragged = K - (steps - 1) * BK;
    const Shares shares(M, N, steps);
    const long long begin = shares.begin(blockIdx.x), end = shares.begin(blockIdx.x + 1);
    #pragma unroll 1
    for (long long step = begin; step < end;) {
        const int tile = step / steps, from = step % steps;
        const int count = min((long long)(steps - from), end - step);
        const int row = shares.row(tile), column = shares.column(tile);
        const int first_k = from == 0 ? 0 : ragged + (from - 1) * BK;
        multiply<ALIGNED>(A + first_k, B + (size_t)first_k * N, M, N, K, row, column, count,
                          from == 0 ? ragged : BK, (float *)shared);

        // The block adds up the sums of all teams. A tile that is this block's alone is then
        // complete; a part of a tile goes to the workspace.
        __syncthreads();
        float4 *const part = parts + Shares::part(blockIdx.x, from == 0);
        for (int quad = thread; quad < QUADS; quad += THREADS) {
            float4 total = shared[quad];
            #pragma unroll
            for (int team = 1; team < SLICES; ++team)
                add(total, shared[team * QUADS + quad]);
            if (count == steps)
                store<ALIGNED>(C, M, N, row, column, 4 * quad, total);
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
