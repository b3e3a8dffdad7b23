// /// matbench
// name = "banked-sums"
// summary = "Every block takes an equal share of the work: the last tiles are divided (Stream-K)"
// group = "ladder"
// previous = "register-banks"
// requires = ["cuda", "sm_90a"]
// args = ["tensor_map(A, 128, 8)", "tensor_map(B, 8, 256)", "A", "B", "C", "M", "N", "K"]
// [sweep]
// STAGES = [8]
// [tune]
// STAGES = [3, 4, 6, 8, 12, 16]
// [launch]
// where = ["STAGES >= 2", "multiprocessors <= 1024",
//          "STAGES * 12304 + 16384 <= max_shared_bytes_per_block"]
// block = [384]
// grid = ["multiprocessors"]
// shared_bytes = "STAGES * 12304 + 16384"
// [model]
// global_loads = "M * N * K / 256 + M * N * K / 128"
// shared_loads = "M * N * K * (1 / 16 + 1 / 8)"
// ///

// Adds: an equal share of the last tiles for every block.
// Predicted: at most 62 TFLOP/s: 93.2% of the loop's instructions are multiply-adds, each reads one
//   register per bank, and all multiprocessors finish together.
//
// Tiles rarely fill the last round of blocks. There is one block per multiprocessor. It computes
// whole tiles as long as all blocks can, and the steps of the remaining tiles are divided evenly
// (Stream-K: Osama et al., arXiv 2301.03598). If a tile is shared, the block with its last steps
// writes its sums to C, and sets a flag. The block with the steps before adds its own to them.

#include <cuda.h>
#include "helpers.cuh"

#ifndef STAGES
#define STAGES 8
#endif
#define BM 128
#define BN 256
#define BK 8
#define WARPS 8  // that multiply: 2×4, 64×64 elements each
#define A_BYTES (4 * BK * BM)
#define B_BYTES (4 * BK * BN)
#define STAGE (A_BYTES + B_BYTES)
#define LEAST 16  // steps of a block's share of the shared tiles, if a tile has that many

// Steps first .. last - 1 of the tile that starts at this row and column of C.
struct Part { int row, column, first, last; };

struct Work {
    int across, steps, rounds, block, shared_steps, sharing;

    __device__ __forceinline__ Work(int M, int N, int K)
    {
        across = (N + BN - 1) / BN, steps = (K + BK - 1) / BK;
        const int tiles = (M + BM - 1) / BM * across, blocks = gridDim.x;
        const int left = tiles % blocks;
        rounds = tiles / blocks, shared_steps = left * steps;
        sharing = min(blocks, max(left, shared_steps / LEAST));
        // A block waits only for the one with the next lower blockIdx.x, which started before it.
        block = blocks - 1 - blockIdx.x;
    }
    // The block's next part; false if there is none.
    __device__ __forceinline__ bool part(int index, Part &next) const
    {
        int tile = index * gridDim.x + block, first = 0, last = steps;
        if (index >= rounds) {
            if (block >= sharing)
                return false;
            const int share = shared_steps / sharing, longer = shared_steps % sharing;
            const int begin = block * share + min(block, longer);
            const int end = begin + share + (block < longer);
            tile = begin / steps + index - rounds;
            first = max(begin - tile * steps, 0);
            last = min(end - tile * steps, steps);
            if (first >= last)
                return false;
            tile += rounds * gridDim.x;
        }
        next = {tile / across * BM, tile % across * BN, first, last};
        return true;
    }
};

// Whether a block's part of a shared tile is in C; reset by the block that adds to it.
__device__ unsigned is_written[1024];

// Calls fill(stage, barrier, part, k) for one step after the other.
template <typename Fill>
__device__ __forceinline__ void produce(const Work &work, unsigned ring, unsigned full,
                                        unsigned empty, Fill fill)
{
    unsigned slot = 0, phase = 1;  // at first every stage is empty, and no wait takes time
    Part part;
    for (int index = 0; work.part(index, part); ++index) {
        #pragma unroll 1
        for (int step = part.first; step < part.last; ++step) {
            wait(empty + 8 * slot, phase);
            fill(ring + slot * STAGE, full + 8 * slot, part, step * BK);
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    }
    wait(empty + 8 * slot, phase);  // consumers look one stage ahead
    arrive(full + 8 * slot);
}

__device__ __forceinline__ void consume(const Work &work, char *shared, unsigned ring,
                                        unsigned full, float *C, int M, int N)
{
    const Consumer at(ring, A_BYTES, shared + STAGES * (STAGE + 16));
    float4 a[8];     // four k of each row
    float b[2][16];  // for this k and for the next
    unsigned stage = 0, barrier = full, phase = 0;
    Part part;
    bool more = work.part(0, part);
    wait(barrier, phase);
    #pragma unroll
    for (int i = 0; i < 8; ++i)
        a[i] = load(at.a_low + 256 * i);
    load_row(b[0], at.b);
    #pragma unroll 1
    for (int index = 0; more;) {
        float sum[8][16] = {};
        #pragma unroll 1
        for (int left = part.last - part.first; left > 0; --left) {
            unsigned a_next = at.a_high + stage, b_next = at.b + stage;
            #pragma unroll
            for (int k = 0; k < BK; ++k) {
                if (k == BK - 1) {  // the last k's values have been fetched
                    __syncwarp();
                    if (at.lane == 0)
                        arrive(barrier + 8 * STAGES);  // empty
                    stage += STAGE, barrier += 8;
                    if (stage == STAGES * STAGE)
                        stage = 0, barrier -= 8 * STAGES, phase ^= 1;
                    wait(barrier, phase);
                    a_next = at.a_low + stage, b_next = at.b + stage - B_BYTES;  // k + 1 is BK
                }
                load_row(b[1 - k % 2], b_next + (k + 1) * 4 * BN);
                if (k % 2 == 0)  // often enough, and it takes an issue slot
                    keep_order();
                multiply(sum, a, b[k % 2], k, a_next);
            }
        }
        // The sums for the steps that follow have to be in C before these can be added.
        const bool adds = part.last < work.steps;
        if (adds) {
            if (at.thread == 0) {
                volatile unsigned *const flag = is_written + work.block + 1;
                while (*flag == 0) { }
                __threadfence();
                *flag = 0;
            }
            synchronize_first<32 * WARPS>();
        }
        write_sums(sum, at.draft, at.down, at.across, C, part.row + at.m, part.column + at.n, M, N,
                   adds);
        if (part.first > 0) {
            __threadfence();
            synchronize_first<32 * WARPS>();
            if (at.thread == 0)
                *(volatile unsigned *)(is_written + work.block) = 1;
        }
        more = work.part(++index, part);
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
banked_sums(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
            const float *A, const float *B, float *C, int M, int N, int K)
{
    // A ring of stages, two barriers per stage, then the drafts.
    extern __shared__ __align__(1024) char shared[];
    const unsigned ring = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned full = ring + STAGES * STAGE, empty = full + 8 * STAGES;
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    const bool has_maps = K % 4 == 0 && N % 4 == 0;
    const Work work(M, N, K);
    start_ring<STAGES>(full, empty, has_maps ? 1 : 128, WARPS);
    if (warp >= WARPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (!has_maps)
            produce(work, ring, full, empty,
                    [&](unsigned stage, unsigned barrier, const Part &part, int k) {
                copy_boxes(A, B, M, N, K, stage, barrier, part.row, part.column, k);
            });
        else if (warp == WARPS)
            if (is_elected())
                produce(work, ring, full, empty,
                        [&](unsigned stage, unsigned barrier, const Part &part, int k) {
                    arrive_and_expect(barrier, STAGE);
                    fetch_box(stage, A_map, k, part.row, barrier);
                    fetch_box(stage + A_BYTES, B_map, part.column, k, barrier);
                });
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        consume(work, shared, ring, full, C, M, N);
    }
}
