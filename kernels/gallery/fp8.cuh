// Writes C as bfloat16, from float sums of products of 64 rows by a warpgroup: a lane has two
// adjacent numbers of each 8×8.
#include "hopper.cuh"
#include <cuda_bf16.h>

#define DRAFT (16 * 64 * 2)  // 16 rows and 64 columns of C
#define DRAFTS (BM / 16 * 2 * DRAFT)

// Two adjacent numbers of a row of C, as bfloat16.
static __device__ __forceinline__ unsigned pair(float left, float right)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(right), "f"(left));
    return both;
}

// Stores 16×16 numbers of C to a draft, four matrices of 8×8: a lane has two numbers of each, and
// gives the address of one of their rows.
static __device__ __forceinline__ void store(unsigned to, const unsigned *c)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]) : "memory");
}

// Writes 16 rows and 64 columns of C, of which a lane has the numbers c: through a draft, swizzled,
// by the copy engine; or one by one if rows do not start at multiples of 16 bytes.
static __device__ __forceinline__ void write(const unsigned *c, unsigned draft,
                                             const CUtensorMap &C_map, __nv_bfloat16 *C, int row,
                                             int column, int M, int N)
{
    const int lane = threadIdx.x % 32;
    if (lane == 0)
        wait_until_read<1>();
    __syncwarp();
    #pragma unroll
    for (int j = 0; j < 4; ++j, c += 4) {
        store(draft + lane % 16 * 128 + ((j * 2 + lane / 16) ^ (lane % 8)) * 16, c);
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
            const int r = row + q % 2 * 8 + lane / 4;
            const int n = column + j * 16 + q / 2 * 8 + lane % 4 * 2;
            if (N % 8 != 0 && r < M && n < N)
                C[(size_t)r * N + n] = __ushort_as_bfloat16(c[q] & 0xffff);
            if (N % 8 != 0 && r < M && n + 1 < N)
                C[(size_t)r * N + n + 1] = __ushort_as_bfloat16(c[q] >> 16);
        }
    }
    publish_stores();
    __syncwarp();
    if (lane == 0 && N % 8 == 0)
        deliver(C_map, draft, column, row);
}
