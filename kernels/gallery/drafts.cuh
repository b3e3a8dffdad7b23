// Writes a warpgroup's sums to C. A warp has 16 rows, a lane two adjacent elements of each 8×8. They
// go through a draft: 16 swizzled rows of 128 bytes in shared memory, which the copy engine writes
// to C. A warp has two drafts and fills one while the other is read. If the rows of C do not start
// at multiples of 16 bytes, the warp writes them itself. The kernel defines BM.
#pragma once

#include "ring.cuh"
#include <cuda_bf16.h>

#define DRAFT_BYTES (16 * 128)
#define DRAFTS_BYTES (BM / 16 * 2 * DRAFT_BYTES)

// The first of a warp's two drafts; the other one follows. All drafts follow the ring.
static __device__ __forceinline__ unsigned drafts_of(int warp, const Ring &ring)
{
    return ring.start + STAGES * STAGE_BYTES + warp * 2 * DRAFT_BYTES;
}

// A block calls it before it exits: the copy engine reads shared memory, which is freed then.
static __device__ __forceinline__ void wait_for_drafts() { wait_until_read<0>(); }

// -- 32 columns of float or int ------------------------------------------------------------------

// Stores two adjacent elements of a row.
static __device__ __forceinline__ void store(unsigned to, float left, float right)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(to), "f"(left), "f"(right) : "memory");
}

static __device__ __forceinline__ void store(unsigned to, int left, int right)
{
    asm volatile("st.shared.v2.s32 [%0], {%1, %2};" :: "r"(to), "r"(left), "r"(right) : "memory");
}

// Row by row, 32 adjacent elements at a time.
template <typename Number>
static __device__ __forceinline__ void write_by_hand(unsigned draft, Number *C, int row, int column,
                                                     int M, int N)
{
    const int lane = threadIdx.x % 32;
    unsigned *const to = (unsigned *)C + (size_t)row * N + column + lane;
    #pragma unroll 4
    for (int i = 0; i < 16; ++i) {
        unsigned bits;
        asm volatile("ld.shared.u32 %0, [%1];"
                     : "=r"(bits) : "r"(draft + i * 128 + (lane * 4 ^ i % 8 * 16)));
        if (row + i < M && column + lane < N)
            to[(size_t)i * N] = bits;
    }
    __syncwarp();
}

template <typename Number>
static __device__ __forceinline__ void write_columns(const Number *c, unsigned draft,
                                                     const CUtensorMap &C_map, Number *C, int row,
                                                     int column, int M, int N)
{
    const int lane = threadIdx.x % 32;
    const bool is_odd = lane / 4 % 2;
    if (lane == 0)
        wait_until_read<1>();
    __syncwarp();
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
        // Odd rows start with other columns than even rows, so that banks differ.
        const Number *const even = c + j * 2, *const odd = c + (j ^ 4) * 2;
        const int r = j % 2 * 8 + lane / 4, n = (j / 2 ^ is_odd * 2) * 8 + lane % 4 * 2;
        store(draft + r * 128 + (n * 4 ^ r % 8 * 16), is_odd ? odd[0] : even[0],
              is_odd ? odd[1] : even[1]);
    }
    if (N % 4 == 0) {
        publish_stores();
        __syncwarp();
        if (lane == 0)
            store_box(C_map, draft, column, row);
    } else {
        __syncwarp();
        write_by_hand(draft, C, row, column, M, N);
    }
}

// -- 64 columns of bfloat16 ----------------------------------------------------------------------

// Two adjacent elements of a row, rounded to bfloat16, as one word.
static __device__ __forceinline__ unsigned bfloat16x2(float left, float right)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(right), "f"(left));
    return both;
}

// Stores 16×16 elements, four matrices of 8×8: a lane has two elements of each, and gives the address
// of one of their rows.
static __device__ __forceinline__ void store(unsigned to, const unsigned *c)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]) : "memory");
}

static __device__ __forceinline__ void write_columns(const unsigned *c, unsigned draft,
                                                     const CUtensorMap &C_map, __nv_bfloat16 *C,
                                                     int row, int column, int M, int N)
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
        store_box(C_map, draft, column, row);
}
