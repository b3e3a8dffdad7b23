// /// matbench
// name = "int8-wgmma"
// summary = "int8 in, int32 out: exact sums"
// group = "gallery"
// previous = "fp8-wgmma"
// requires = ["cuda", "sm_90a"]
// transpose = "NT"
// args = ["tensor_map(A, BM, 128)", "tensor_map(B, BM, 128)", "tensor_map(C, 16, 32)",
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

// Adds: integers. Sums are exact; C is int32, twice the bytes of bfloat16.
// Predicted: at most 1,640 TFLOP/s at n = 4096, at 1.98 GHz, if nothing happens while C is written:
//   64 µs for the products, and 20 µs for 67 MB at 3.35 TB/s.
// Measured: 242 TFLOP/s at n = 1024, 118% of cuBLASLt in int8 (H100)
//   1410 TFLOP/s at n = 4096, 101% of cuBLASLt in int8 (H100)
//   1635 TFLOP/s at n = 8192, 118% of cuBLASLt in int8 (H100)
//
// A multiprocessor writes 22 bytes per cycle: 5,900 cycles for a tile of 128×256, 15% of its time
// at n = 4096. Sums cannot be packed as in fp8-wgmma, and there are registers for only half of
// them. So half of a tile is written at once, and the other half in the first steps of the next
// tile, while the tensor cores multiply.

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128
#endif
#include "eight-bit.cuh"
#include "drafts.cuh"

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
int8_wgmma(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
           const CUtensorMap __grid_constant__ C_map, const signed char *A,
           const signed char *B, int *C, int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring(shared, DRAFTS_BYTES);
    ring.set_up(K % 16 == 0 ? 1 : 128, A_map, B_map);
    divide_work<40, 232>(
        [&] {
            if (K % 16 != 0)
                produce_by_hand(A, B, ring, M, N, K);
            else if (threadIdx.x == 0)
                produce(A_map, B_map, ring, M, N, K);
        },
        [&] { consume<BN / 64>(C_map, ring, C, M, N, K, multiply_stage<int>); });
}
