// /// matbench
// name = "bf16-packed"
// summary = "bf16-wgmma for rows at any address: one launch packs A and B, then multiplies"
// group = "gallery"
// previous = "bf16-wgmma"
// requires = ["cuda", "sm_90a"]
// precision = "bfloat16"
// args = ["tensor_map(C, 16, 32)", "A", "B", "C", "workspace", "M", "N", "K"]
// [sweep]
// BM = [64, 128]
// BAND = [8]
// [tune]
// BAND = [1, 2, 4, 8, 16]
// [launch]
// where = ["max_shared_bytes_per_block >= 230464"]
// block = ["128 + 2 * BM"]
// grid = ["2 * min(multiprocessors // 2, ceil_div(M, 2 * BM) * ceil_div(N, 2 * BM))"]
// shared_bytes = "230464"
// workspace_bytes = "256 * BM * ceil_div(K, 64) * (ceil_div(M, 2 * BM) + ceil_div(N, 2 * BM))"
// [model]
// global_loads = "M * K + K * N + M * N * K / (2 * BM) + M * N * K / (2 * BM)"
// ///

// Adds: packing. All blocks first copy A and B to a workspace, in the form that the ring of stages
//   needs; then they wait for each other and go on as in bf16-wgmma.
// Predicted: at most 817 TFLOP/s at n = 4095: 67 MB read and 67 MB written at 3.35 TB/s take 40 µs,
//   the products 128 µs, and nothing overlaps.
// Measured: 539 TFLOP/s at n = 4095, 361% of cuBLAS in bfloat16 (H100)
//
// TMA's tensor maps require rows that start at multiples of 16 bytes. In a matrix with 4,095
// columns of 2 bytes they do not, and bf16-wgmma copies value by value: those of A n / 256 times,
// those of B n / 128 times. Here they are packed once. A box of BM×64 of A or 64×64 of B is
// contiguous in the workspace and already swizzled, so that a bulk copy without a tensor map takes
// it to shared memory.
//
// - The blocks wait for each other at a counter. That needs all of them to run at the same time:
//   the grid has at most one block per multiprocessor.
// - Ordinary stores write the workspace and the copy engine reads it. Only fence.proxy.async orders
//   accesses of these two kinds; here it is on both sides of the counter.
// - Rows of C may start anywhere too. If they do not start at multiples of 16 bytes, a warp writes
//   them, 32 adjacent values at a time.

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128
#endif
#include <cuda_bf16.h>
typedef __nv_bfloat16 Factor;
#define FACTORS "bf16.bf16"
#include "sixteen-bit.cuh"

static __device__ __forceinline__ int tiles_down(int M)
{
    return (M + 2 * BM - 1) / (2 * BM) * 2;
}

static __device__ __forceinline__ int steps(int K)
{
    return (K + BK - 1) / BK;
}

static __device__ __forceinline__ size_t packed_bytes_of_A(int M, int K)
{
    return (size_t)tiles_down(M) * steps(K) * A_BYTES;
}

static __device__ __forceinline__ int boxes_across(int N)
{
    return (N + BN - 1) / BN * (BN / 64);
}

// Copies a matrix to boxes of HEIGHT rows and 64 columns, one after the other from left to right,
// swizzled, with zeros beyond the edge. A warp copies 16 rows of a box at a time, two elements of a
// row per lane.
template <int HEIGHT>
static __device__ __forceinline__ void pack(char *to, const __nv_bfloat16 *from, int rows,
                                            int columns, int rows_of_boxes, int across)
{
    const int lane = threadIdx.x % 32, warps = gridDim.x * (blockDim.x / 32);
    const unsigned short *const values = (const unsigned short *)from;
    #pragma unroll 1
    for (int part = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
         part < rows_of_boxes * (HEIGHT / 16) * across; part += warps) {
        const int row = part / across * 16, box = part % across, column = box * 64 + lane * 2;
        unsigned low[16], high[16];
        #pragma unroll
        for (int i = 0; i < 16; ++i) {
            const size_t at = (size_t)(row + i) * columns + column;
            low[i] = row + i < rows && column < columns ? values[at] : 0;
            high[i] = row + i < rows && column + 1 < columns ? values[at + 1] : 0;
        }
        char *const there = to + ((size_t)(row / HEIGHT) * across + box) * (HEIGHT * 128)
            + row % HEIGHT * 128 + lane % 4 * 4;
        #pragma unroll
        for (int i = 0; i < 16; ++i)
            *(unsigned *)(there + i * 128 + ((lane / 4) ^ (i % 8)) * 16) = low[i] | high[i] << 16;
    }
}

static __device__ unsigned arrived;

// Waits until all blocks have packed their part. The copy engine reads what ordinary stores wrote.
static __device__ __forceinline__ void wait_for_packing()
{
    publish_all_stores();
    __syncthreads();
    if (threadIdx.x == 0) {
        synchronize_grid(arrived);
        publish_all_stores();
    }
    __syncthreads();
}

// One thread: the block's rows of A, and half of the columns of B for both blocks.
static __device__ __forceinline__ void produce(const char *packed, Ring ring, int M, int N, int K)
{
    const int half = blockIdx.x % 2 * (BN / 128);  // the first box of that half
    const char *const packed_B = packed + packed_bytes_of_A(M, K);
    fill_stages(ring, M, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        const int step = k / BK;
        arrive_and_expect(barrier, STAGE_BYTES);
        fetch(stage, packed + ((size_t)(tile.row / BM) * steps(K) + step) * A_BYTES, A_BYTES,
              barrier);
        fetch_for(3, stage + A_BYTES + half * B_BOX_BYTES,
                  packed_B
                      + ((size_t)step * boxes_across(N) + tile.column / 64 + half) * B_BOX_BYTES,
                  BN / 128 * B_BOX_BYTES, barrier);
    });
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
bf16_packed(const CUtensorMap __grid_constant__ C_map, const __nv_bfloat16 *A,
            const __nv_bfloat16 *B, float *C, char *workspace, int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring(shared, DRAFTS_BYTES);
    ring.set_up(1);
    pack<BM>(workspace, A, M, K, tiles_down(M), steps(K));
    pack<BK>(workspace + packed_bytes_of_A(M, K), B, K, N, steps(K), boxes_across(N));
    wait_for_packing();
    divide_work<72, 216>(
        [&] {
            if (threadIdx.x == 0)
                produce(workspace, ring, M, N, K);
        },
        [&] { consume<BN / 128>(C_map, ring, C, M, N, K, multiply_stage); });
}
