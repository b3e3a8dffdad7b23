// /// matbench
// name = "bf16-wgmma"
// summary = "bfloat16 in, float32 out: both operands in shared memory, all copies by TMA"
// group = "gallery"
// previous = "tf32x3"
// requires = ["cuda", "sm_90a"]
// precision = "bfloat16"
// args = ["tensor_map(A, BM, 64)", "tensor_map(B, 64, 64)", "tensor_map(C, 16, 32)",
//         "A", "B", "C", "M", "N", "K"]
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
// [model]
// global_loads = "M * N * K / (2 * BM) + M * N * K / (2 * BM)"
// ///

// Adds: bfloat16 inputs, which need no splitting. So TMA fetches A and B as they are, both operands
//   are multiplied from shared memory, and TMA writes C. Nearly all of the code is new: the loops
//   are in ring.cuh, the products in sixteen-bit.cuh, and the writes of C in drafts.cuh.
// Predicted: at most 1,070 TFLOP/s if the tensor cores never wait, at 1.98 GHz.
// Measured: 214 TFLOP/s at n = 1024, 98% of cuBLAS in bfloat16 (H100)
//   747 TFLOP/s at n = 4096, 100% of cuBLAS in bfloat16 (H100)
//   792 TFLOP/s at n = 8192, 102% of cuBLAS in bfloat16 (H100)
//
// The plan is that of tf32x3. In detail:
//
// - wgmma: a warpgroup of four warps starts products of 64×16 by 16×256 and continues; it waits for
//   them later. Here both operands are in shared memory and the sums in the warpgroup's registers.
// - TMA (tensor maps): one thread requests a box of a matrix. The copy engine computes the
//   addresses, fills in zeros beyond the edge, stores the box so that eight rows lie in different
//   banks (swizzling), and reports the number of bytes to a barrier.
// - Clusters: two blocks, one below the other, need the same columns of B. Each fetches half of
//   them, and the engine delivers to both: a block receives 48 KiB per step but loads only 32 KiB
//   from the L2 cache.
// - Warp specialisation: one warpgroup keeps the ring of stages full and needs few registers. The
//   other two take over its spare registers (setmaxnreg) for 64×256 sums each, which makes a tile
//   of 128×256 per block. For small products BM = 64: one warpgroup and 64×128 sums. n = 1024 has
//   32 large tiles or 128 small ones, for 132 multiprocessors.
// - Persistent grid: there is one block per multiprocessor, and it computes one tile after the
//   other. The ring never runs empty in between: the first steps of the next tile arrive while the
//   sums of this one are written. The copy engine writes them too, 16×32 at a time from shared
//   memory, in whole lines and without making a warp wait for the last of them. tiles.cuh orders
//   tiles so that blocks that run at the same time share rows of A and columns of B in the L2 cache.
//
// TMA requires rows that start at multiples of 16 bytes. If they do not (K or N not a multiple of
// 8), the producer's threads copy value by value to the same places: correct, but slow. bf16-packed
// is for such sizes.

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

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
bf16_wgmma(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
           const CUtensorMap __grid_constant__ C_map,
           const __nv_bfloat16 *A, const __nv_bfloat16 *B, float *C, int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring(shared, DRAFTS_BYTES);
    const bool has_maps = K % 8 == 0 && N % 8 == 0;
    ring.set_up(has_maps ? 1 : 128, A_map, B_map);
    divide_work<72, 216>(
        [&] {
            if (!has_maps)
                produce_by_hand(A, B, ring, M, N, K);
            else if (threadIdx.x == 0)
                produce(A_map, B_map, ring, M, N, K);
        },
        [&] { consume<BN / 128>(C_map, ring, C, M, N, K, multiply_stage); });
}
