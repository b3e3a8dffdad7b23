// /// matbench
// name = "fp16x3"
// summary = "float32 accuracy from float16 tensor cores: two parts per number, one scaled"
// group = "gallery"
// previous = "tf32x3"
// requires = ["cuda", "sm_90a"]
// error_constant = 8.0
// arithmetic = "3 float16"
// exponents = [-12, 15]
// args = ["tensor_map(A, 128, 32)", "A", "B", "C", "workspace", "M", "N", "K"]
// [sweep]
// BN = [64, 256]
// TOTAL_WORDS = [1, 2]
// [tune]
// BN = [64, 128, 192, 256]
// [launch]
// where = ["BN % 64 == 0", "BN <= 256", "TOTAL_WORDS == 1 or BN == 64",
//          "max_shared_bytes_per_block >= 197760"]
// block = [384]
// grid = ["multiprocessors // 2 * 2"]
// shared_bytes = "197760"
// workspace_bytes = """(ceil_div(K, 64) * 256
//                      * (ceil_div(N, BN) * BN + (K % 4 > 0) * ceil_div(M, 256) * 256))"""
// [model]
// global_loads = "K * N + M * N * K / BN + M * N * K / 256"
// global_stores = "K * N + M * N"
// tensor_operations = "6 * M * N * K"
// ///

// Adds: float16 parts in place of TF32 parts. Tensor cores multiply them at twice the rate.
// Predicted: for n = 4096, 386 us for 4.1e11 operations if the tensor cores never wait (1.98 GHz),
//   and 40 us to read the 67 MB of B and write 67 MB of parts: at most 323 TFLOP/s. If they multiply
//   as fast as for cuBLAS with float16 inputs (182 us on an H100), 234.
// Measured: 225 TFLOP/s at n = 4096, 442% of cuBLAS (H100)
//   240 TFLOP/s at n = 8192, 462% of cuBLAS (H100)
//
// float16 has 11 bits like TF32, but a small exponent range: for a number below 1/8 the small part
// would lose bits. So the small part is multiplied by 2¹¹ before it is rounded (H. Ootomo and
// R. Yokota, arXiv 2203.03341):
//
//     x = big + small · 2⁻¹¹      a·b = big·big + 2⁻¹¹ · (big·small + small·big)
//
// The big products and the small ones have sums of their own, of 64 terms (K): as many as there are
// in a row of 128 bytes. Each is added to the total, the small ones with a factor of 2⁻¹¹.
//
// What helped, for n = 4096 (H100, medians in us outside of matbench; 3 of them are the launch):
//
//     700   both matrices are split first, in 100; then sums of 32 terms: small products, a factor,
//           and big products on top, for which the tensor cores wait
//     586   A is split in registers, so B takes 54 alone; the tensor cores have products of one kind
//           while sums of the other are added; sums of 64 terms, so there are half as many to add
//
// Of 530 for the products, the tensor cores are busy 91%: 786,432 cycles at 1.63 GHz, to which the
// clock falls. What the rest costs: the kernel takes 563 with an eighth of the additions, 569 without
// writing C, and 567 with almost no splitting of A.
//
// TOTAL_WORDS. With 2, a total has a second word for what its last addition rounded away, which is
// added with the next sum (W. Kahan). There are enough registers for that only if BN = 64.
//
// RANGE. Correct for absolute values from 2⁻¹² to 65,504, float16's largest; larger values become
// infinite. Smaller values keep an absolute, not a relative, precision of 2⁻³⁶. That is as good as
// float32 if larger values are in the same sum, but not if a whole row or column is tiny. Scale
// such inputs first, or use tf32x3.

#define TERMS 64
#define SCALE 2048.0f
#include "three-products.cuh"
#include <cuda_fp16.h>

// Splits two numbers, the first into the lower halves.
static __device__ __forceinline__ void split(float x, float y, unsigned &big, unsigned &small)
{
    const __half2 rounded = __floats2half2_rn(x, y);
    const __half2 rest = __floats2half2_rn((x - __low2float(rounded)) * SCALE,
                                           (y - __high2float(rounded)) * SCALE);
    big = *(const unsigned *)&rounded;
    small = *(const unsigned *)&rest;
}

// A lane multiplies two terms in each half of a product's 16.
static __device__ __forceinline__ void split(float4 x, Parts *a, int row)
{
    split(x.x, x.y, a->big[row], a->small[row]);
    split(x.z, x.w, a->big[row + 2], a->small[row + 2]);
}

static __device__ __forceinline__ void split(const float (&x)[8], uint4 &big, uint4 &small)
{
    split(x[0], x[1], big.x, small.x);
    split(x[2], x[3], big.y, small.y);
    split(x[4], x[5], big.z, small.z);
    split(x[6], x[7], big.w, small.w);
}

static __device__ __forceinline__ int term_of(int i, int j)
{
    return j / 2 * 16 + i / 2 * 4 + j % 2 * 2 + i % 2;
}

static __device__ __forceinline__ void multiply(float (&sum)[32], const unsigned (&a)[4],
                                                uint64_t b, bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" NAMES_32 "}, "
                 "{%32, %33, %34, %35}, %36, add, 1, 1, 0;\n"
                 "}" : SUMS_32("+f", 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((unsigned)fresh));
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(384, 1)
fp16x3(const CUtensorMap __grid_constant__ A_map, const float *A, const float *B, float *C,
       char *workspace, int M, int N, int K)
{
    three_products(A_map, A, B, C, workspace, M, N, K);
}
