// /// matbench
// name = "tf32x3"
// summary = "float32 accuracy from TF32 tensor cores: two parts per number, three products"
// group = "gallery"
// previous = "pipelined"
// requires = ["cuda", "sm_90a"]
// error_constant = 8.0
// arithmetic = "3 tf32"
// args = ["tensor_map(A, 128, 32)", "A", "B", "C", "workspace", "M", "N", "K"]
// [sweep]
// BN = [64, 256]
// [tune]
// BN = [64, 128, 192, 256]
// [launch]
// where = ["BN % 64 == 0", "BN <= 256", "max_shared_bytes_per_block >= 197760"]
// block = [384]
// grid = ["multiprocessors // 2 * 2"]
// shared_bytes = "197760"
// workspace_bytes = """(ceil_div(K, 32) * 256
//                      * (ceil_div(N, BN) * BN + (K % 4 > 0) * ceil_div(M, 256) * 128))"""
// [model]
// global_loads = "K * N + M * N * K / BN + M * N * K / 128"
// global_stores = "2 * K * N + M * N"
// tensor_operations = "6 * M * N * K"
// ///

// Adds: tensor cores. Each float32 is split into two TF32 parts, and three products of parts
//   replace one product. Nearly all of the code is new.
// Predicted: for n = 4096, 772 us for 4.1e11 operations if the tensor cores never wait (1.98 GHz),
//   and 47 us to read the 67 MB of B and write 134 MB of parts: at most 168 TFLOP/s. If they
//   multiply as fast as for cuBLAS with TF32 inputs, 132.
// Measured: 132 TFLOP/s at n = 4096, 259% of cuBLAS (H100)
//   138 TFLOP/s at n = 8192, 266% of cuBLAS (H100)
//
// With sums of 16 terms instead of 32: 1,065 us beside 1,039 at n = 4096, 8.79 ms beside 8.71 at 8192,
// and with BN = 64 a third more (H100, another day).
//
// The method is that of H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor
// Cores while surpassing the FP32 theoretical peak performance", 2022, arXiv 2203.03341.
//
// SPLITTING. Tensor cores read only 11 bits of each number's significand. So each value is split
// into two TF32 numbers, x = big + small: big is x rounded to 11 bits, and small is the rest, cut
// to 11 bits. Together they hold 23 of float32's 24 bits. Then
//
//     a·b = big·big + big·small + small·big + (small·small, up to 2⁻²² of a·b: omitted)
//
// SUMMING. A tensor core truncates when it adds: it cuts off the bits that do not fit, always
// towards zero, and in a long sum those errors accumulate. So it sums only 32 terms (K) at a time,
// starting from zero, the big products by themselves and the others by themselves. While it computes
// one sum of 64×64, the consumer adds the one before to its total by ordinary, rounded additions.
//
// PACKING. wgmma can take its first factor from registers, but its second only from shared memory,
// for TF32 with K running fastest. B is not stored like that. If each block transposed and split
// what it needs, that would be done M / 128 times. So all blocks first split B once: see
// three-products.cuh, which fp16x3 includes too. If M is small, that takes longer than the products.
//
// RANGE. Correct for all finite numbers below 2¹²⁷ whose products do not underflow: 2⁻²⁴ of a value
// must still be a float32. An infinity becomes NaN.
//
// ERROR. The split loses up to 2⁻²³ of either factor, and the omitted product is up to 2⁻²² of a
// product. Each product may therefore be off by eight times 2⁻²⁴ before it is added, which is
// error_constant. The tensor core's last addition cuts off up to 2⁻²³ more. In a sum such errors
// average out, and the total has a sixteenth as many additions to round as a plain float32 sum.

#define TERMS 32
#define SCALE 1.0f
#include "three-products.cuh"

// `big` is rounded to nearest, ties away from zero. The rest has 12 bits; the last is cut off.
static __device__ __forceinline__ void split(float x, unsigned &big, unsigned &small)
{
    big = (__float_as_uint(x) + 0x1000) & 0xffffe000;
    small = __float_as_uint(x - __uint_as_float(big)) & 0xffffe000;
}

// A lane multiplies one term in each half of a product's eight.
static __device__ __forceinline__ void split(float4 x, Parts *a, int row)
{
    split(x.x, a[0].big[row], a[0].small[row]);
    split(x.y, a[0].big[row + 2], a[0].small[row + 2]);
    split(x.z, a[1].big[row], a[1].small[row]);
    split(x.w, a[1].big[row + 2], a[1].small[row + 2]);
}

static __device__ __forceinline__ void split(const float (&x)[4], uint4 &big, uint4 &small)
{
    split(x[0], big.x, small.x);
    split(x[1], big.y, small.y);
    split(x[2], big.z, small.z);
    split(x[3], big.w, small.w);
}

static __device__ __forceinline__ int term_of(int i, int j) { return i * 4 + j; }

static __device__ __forceinline__ void multiply(float (&sum)[32], const unsigned (&a)[4],
                                                uint64_t b, bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {" NAMES_32 "}, "
                 "{%32, %33, %34, %35}, %36, add, 1, 1;\n"
                 "}" : SUMS_32("+f", 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((unsigned)fresh));
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(384, 1)
tf32x3(const CUtensorMap __grid_constant__ A_map, const float *A, const float *B, float *C,
       char *workspace, int M, int N, int K)
{
    three_products(A_map, A, B, C, workspace, M, N, K);
}
