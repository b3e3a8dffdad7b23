// /// matbench
// name = "bf16-batched"
// summary = "bf16-wgmma for many small products: tiles are numbered through the whole batch"
// group = "gallery"
// previous = "bf16-wgmma"
// requires = ["cuda", "sm_90a"]
// precision = "bfloat16"
// batch = [64]
// args = ["tensor_map(A, BM, 64)", "tensor_map(B, 64, 64)", "tensor_map(C, 16, 32)",
//         "A", "B", "C", "M", "N", "K", "batch"]
// [sweep]
// BM = [64, 128]
// BAND = [2]
// [tune]
// BAND = [1, 2, 4, 8]
// [launch]
// where = ["N % 8 == 0", "K % 8 == 0", "batch * (M + 2 * BM) < 2**31",
//          "max_shared_bytes_per_block >= 230464"]
// block = ["128 + 2 * BM"]
// grid = ["2 * min(multiprocessors // 2, batch * ceil_div(M, 2 * BM) * ceil_div(N, 2 * BM))"]
// shared_bytes = "230464"
// [model]
// global_loads = "batch * M * N * K / BM"
// ///

// Adds: one launch for many products, as in the attention of a language model. One of 512×512 has 8
//   tiles of 128×256, for 132 multiprocessors; 64 of them have 512, which take 3.9 rounds.
// Predicted: for 64 products of 512, 16 µs if the tensor cores never wait, but 34 µs if 134 MB are
//   read and written at 4.0 TB/s. In between: what of C is in the L2 cache at the end takes no time.
//
// The matrices of a batch lie one after the other, and a tensor map of them has three dimensions.
// So the copy engine itself keeps products apart: beyond the last row of A or B come zeros, not the
// next product, and of C nothing is written there. It requires K and N to be multiples of 8.
//
// Everything else is that of bf16-wgmma. Its loops see one tall matrix: the rows of each product
// are rounded up to whole pairs of tiles, so that no pair belongs to two products. While a tile is
// multiplied, parts of the one before are written and the next one arrives, whatever their products.
// K is small, so half of a tile is written then, not a quarter as there.
//
// On an H200, 64 products of 512 take 44.4 to 45.7 µs, in turns with 43.1 to 44.1 of cuBLASLt's fastest
// algorithm. The link between the two halves of the L2 cache is 87% busy: each half keeps copies of
// what its multiprocessors read from the other. Less would cross it if more blocks shared what they
// fetch; but of clusters of 4 blocks only 30 fit this GPU at a time, which takes 49 µs.

#ifndef BAND
#define BAND 2
#endif
#ifndef BM
#define BM 128
#endif
#include <cuda_bf16.h>
typedef __nv_bfloat16 Factor;
#define FACTORS "bf16.bf16"
#include "sixteen-bit.cuh"

// The matrices of a batch; each takes `height` rows of the tall one.
struct Batch { const CUtensorMap &map; int height; };

struct Place { int row, product; };

static __device__ __forceinline__ Place place_of(int row, const Batch &batch)
{
    return {row % batch.height, row / batch.height};
}

static __device__ __forceinline__ void store_box(const Batch &C, unsigned from, int column,
                                               Place place)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];\n"
                 "cp.async.bulk.commit_group;"
                 :: "l"(&C.map), "r"(column), "r"(place.row), "r"(place.product), "r"(from)
                 : "memory");
}

// As in hopper.cuh, but from one matrix of a batch.
static __device__ __forceinline__ void fetch(unsigned to, const CUtensorMap &map, int column,
                                             Place place, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(place.row), "r"(place.product),
                    "r"(barrier) : "memory");
}

static __device__ __forceinline__ void fetch_for(unsigned blocks, unsigned to,
                                                 const CUtensorMap &map, int column, Place place,
                                                 unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;"
                 :: "r"(to), "l"(&map), "r"(column), "r"(place.row), "r"(place.product),
                    "r"(barrier), "h"((short)blocks) : "memory");
}

// One thread: as in sixteen-bit.cuh, but `rows` are those of the tall matrix.
static __device__ __forceinline__ void produce(const Batch &A, const CUtensorMap &B_map, Ring ring,
                                               int rows, int N, int K)
{
    const int lower = blockIdx.x % 2;
    fill_stages(ring, rows, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        const Place place = place_of(tile.row, A);
        arrive_and_expect(barrier, STAGE_BYTES);
        fetch(stage, A.map, k, place, barrier);
        #pragma unroll
        for (int i = 0; i < BN / 128; ++i) {
            const int box = lower * (BN / 128) + i;
            fetch_for(3, stage + A_BYTES + box * B_BOX_BYTES, B_map, tile.column + box * 64,
                      {k, place.product}, barrier);
        }
    });
}

// A and B are there for their types, which matbench gives to the tensor maps.
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
bf16_batched(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
             const CUtensorMap __grid_constant__ C_map, const __nv_bfloat16 *A,
             const __nv_bfloat16 *B, float *C, int M, int N, int K, int batch)
{
    extern __shared__ char shared[];
    __builtin_assume(N % 8 == 0);
    const Ring ring(shared, DRAFTS_BYTES);
    const int height = (M + 2 * BM - 1) / (2 * BM) * (2 * BM), rows = batch * height;
    ring.set_up(1, A_map, B_map);
    divide_work<40, 232>(
        [&] {
            if (threadIdx.x == 0)
                produce({A_map, height}, B_map, ring, rows, N, K);
        },
        [&] { consume<BN / 64>(Batch{C_map, height}, ring, C, rows, N, K, multiply_stage); });
}
