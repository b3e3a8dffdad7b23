// Writes a warpgroup's sums to C. A warp has 16 rows, a lane two adjacent elements of each 8×8. They
// go through a draft: 16 swizzled rows of 128 bytes in shared memory, which the copy engine writes
// to C. A warp has two drafts and fills one while the other is read. If the rows of C do not start
// at multiples of 16 bytes, the warp writes them itself. The kernel defines BM.
#pragma once

#include "ring.cuh"

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

// Where `store_box` finds a row of C. Kernels with maps of other kinds have their own.
static __device__ __forceinline__ int place_of(int row, const CUtensorMap &) { return row; }

template <typename Number, typename Map>
static __device__ __forceinline__ void write_columns(const Number *c, unsigned draft,
                                                     const Map &C_map, Number *C, int row,
                                                     int column, int M, int N)
{
    const int lane = threadIdx.x % 32;
    const auto place = place_of(row, C_map);
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
            store_box(C_map, draft, column, place);
    } else {
        __syncwarp();
        write_by_hand(draft, C, row, column, M, N);
    }
}

// The loop over all tiles (see ring.cuh) for a C of 32-bit numbers. The last PARTS parts of a tile, of 32
// columns each, are kept in registers, and one of them is written in each of the first steps of the
// next tile, while the tensor cores multiply.
template <int PARTS, typename Map, typename Number, typename Multiply>
static __device__ __forceinline__ void consume(const Map &C_map, Ring ring, Number *C, int M, int N,
                                               int K, Multiply multiply)
{
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4;
    const unsigned drafts = drafts_of(warp, ring);
    Number held[PARTS * 16 + 1];
    Tile tile = {};
    const auto write_part = [&](const Number *c, int part) {
        write_columns(c, drafts + part % 2 * DRAFT_BYTES, C_map, C, tile.row + warp * 16,
                      tile.column + part * 32, M, N);
    };
    multiply_tiles<PARTS, Number>(
        ring, M, N, K, multiply,
        [&](const Number (&sum)[BN / 2], Tile finished) {
            tile = finished;
            #pragma unroll
            for (int part = 0; part < BN / 32 - PARTS; ++part)
                write_part(sum + part * 16, part);
            #pragma unroll
            for (int j = 0; j < PARTS * 16; ++j)
                held[j] = sum[BN / 2 - PARTS * 16 + j];
        },
        [&](int part) { write_part(held + part * 16, BN / 32 - PARTS + part); });
    wait_for_drafts();
}

// -- 64 columns of 16-bit numbers ----------------------------------------------------------------

// Two adjacent elements of a row, rounded to bfloat16, as one word.
static __device__ __forceinline__ unsigned bfloat16x2(float left, float right)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(right), "f"(left));
    return both;
}

// The same as float16.
static __device__ __forceinline__ unsigned float16x2(float left, float right)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(right), "f"(left));
    return both;
}

// Stores 16×16 elements, four matrices of 8×8: a lane has two elements of each, and gives the address
// of one of their rows.
static __device__ __forceinline__ void store(unsigned to, const unsigned *c)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]) : "memory");
}

// C as words of 16 bits: only whoever rounded knows their type.
static __device__ __forceinline__ void write_columns(const unsigned *c, unsigned draft,
                                                     const CUtensorMap &C_map, unsigned short *C,
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
                C[(size_t)r * N + n] = c[q] & 0xffff;
            if (N % 8 != 0 && r < M && n + 1 < N)
                C[(size_t)r * N + n + 1] = c[q] >> 16;
        }
    }
    publish_stores();
    __syncwarp();
    if (lane == 0 && N % 8 == 0)
        store_box(C_map, draft, column, row);
}

// The loop over all tiles (see ring.cuh) for a C of 16-bit numbers. A tile of it needs half of the
// registers of its sums. So it is kept there, and a part of it is written in each of the first steps
// of the next tile, while the tensor cores multiply. round(left, right) makes a word of two sums.
template <typename Multiply, typename Round>
static __device__ __forceinline__ void consume_and_hold(const CUtensorMap &C_map, Ring ring, void *C,
                                                        int M, int N, int K, Multiply multiply,
                                                        Round round)
{
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4;
    const unsigned drafts = drafts_of(warp, ring);
    unsigned held[BN / 4];
    Tile tile = {};
    multiply_tiles<BN / 64, float>(
        ring, M, N, K, multiply,
        [&](const float (&sum)[BN / 2], Tile finished) {
            tile = finished;
            #pragma unroll
            for (int j = 0; j < BN / 4; ++j)
                held[j] = round(sum[2 * j], sum[2 * j + 1]);
        },
        [&](int part) {
            write_columns(held + part * 16, drafts + part % 2 * DRAFT_BYTES, C_map,
                          (unsigned short *)C, tile.row + warp * 16, tile.column + part * 64, M, N);
        });
    wait_for_drafts();
}
