// /// matbench
// name = "half-mma"
// summary = "float16 in and out on tensor cores, sums in float32: mma.sync, fed by ldmatrix"
// group = "gallery"
// previous = "double-mma"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [128]
// BN = [128, 256]
// BK = [32]
// STAGES = [4]
// [tune]
// BM = [64, 128]
// BN = [64, 128, 256]
// BK = [32, 64]
// STAGES = [2, 3, 4, 5, 6]
// [launch]
// where = ["BM % 64 == 0", "BN % 64 == 0", "BK % 32 == 0", "STAGES >= 2", "BM * BN <= 32768",
//          "2 * STAGES * (BM * (BK + 8) + BK * (BN + 8)) <= max_shared_bytes_per_block"]
// block = ["BM * BN // 128"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "2 * STAGES * (BM * (BK + 8) + BK * (BN + 8))"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / 64 + 1 / 64)"
// ///

// mma.sync takes numbers of 16 bits in pairs, two to a register: one instruction multiplies 16×16
// by 16×8 for a whole warp, and each lane holds pairs of A's and B's elements that are neighbours
// in k. A is stored that way. B is not: its rows run along n, so a lane would have to combine
// halves of words from two rows.
//
// ldmatrix does this. It fetches four 8×8 blocks for a warp, each of eight rows of 16 bytes whose
// addresses come from eight of the lanes, and gives every lane its pairs as mma.sync expects them;
// with .trans, pairs of vertical neighbours. One instruction replaces eight, or more for B. The
// eight rows of a block are read at once if they lie in different banks: rows of BK + 8 and of
// BN + 8 halves are an odd multiple of 16 bytes long, so they do.
//
// Sums are float32, because in float16 a sum of some thousand terms would have no correct digit. C
// is rounded once, at the end. Each warp computes 64×64 elements of C, 128 sums per lane. As in
// double-mma, copies fill a ring of STAGES pairs of tiles, and a warp fetches the next 16 k while
// it multiplies the current ones. mma.sync does not reach the full rate of newer GPUs: Hopper's
// wgmma (bf16-wgmma) is about twice as fast. On an H200 at n = 4096 this is 0.47 times as fast as
// cuBLAS.
//
// Copies of 16 bytes need rows that start at multiples of 16 bytes. If they do not (K or N not a
// multiple of 8), elements are loaded and stored one by one: correct, but slow.

#include <cuda_fp16.h>

#ifndef BM
#define BM 128
#define BN 128
#define BK 32
#define STAGES 4
#endif
#define ACROSS (BN / 64)        // warps
#define THREADS (BM / 64 * ACROSS * 32)
#define DEPTH 16                // k that a warp fetches at a time
#define SLICES (BK / DEPTH)
#define BAND 8                  // rows of tiles in a band
#define A_WIDTH (BK + 8)
#define B_WIDTH (BN + 8)
#define A_SIZE (BM * A_WIDTH)   // halves
#define STAGE (A_SIZE + BK * B_WIDTH)

static __device__ __forceinline__ unsigned address_of(const __half *shared)
{
    return (unsigned)__cvta_generic_to_shared(shared);
}

// Copies one half to shared memory, or starts to copy eight; writes zeros if not `wanted`.
template <int COUNT>
static __device__ __forceinline__ void copy(__half *to, const __half *from, bool wanted)
{
    if (COUNT == 8)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(address_of(to)), "l"(from), "r"(wanted ? 16 : 0) : "memory");
    else
        *to = wanted ? *from : __ushort_as_half(0);
}

// Makes the compiler compute what depends on these again, such as the addresses of all rows,
// instead of keeping it in registers throughout the loop, which are needed for the sums.
static __device__ __forceinline__ void work_out_anew(int &pitch, int &thread)
{
    asm volatile("" : "+r"(pitch), "+r"(thread));
}

// Starts to copy BK columns of A and BK rows of B, from `start` on.
template <int COUNT>
static __device__ __forceinline__ void copy_tiles(__half *stage, const __half *A, const __half *B,
                                                  int M, int N, int K, int first_row,
                                                  int first_column, int start)
{
    int thread = threadIdx.x;
    #pragma unroll (COUNT == 8 ? 8 : 2)
    for (int i = 0; i < BM * BK / COUNT / THREADS; ++i) {
        work_out_anew(K, thread);
        const int e = (thread + i * THREADS) * COUNT;
        const int row = first_row + e / BK, k = start + e % BK;
        copy<COUNT>(stage + e / BK * A_WIDTH + e % BK, A + (size_t)row * K + k, row < M && k < K);
    }
    #pragma unroll (COUNT == 8 ? 8 : 2)
    for (int i = 0; i < BK * BN / COUNT / THREADS; ++i) {
        work_out_anew(N, thread);
        const int e = (thread + i * THREADS) * COUNT;
        const int k = start + e / BN, column = first_column + e % BN;
        copy<COUNT>(stage + A_SIZE + e / BN * B_WIDTH + e % BN, B + (size_t)k * N + column,
                    k < K && column < N);
    }
}

// The copies since the last call form a group; the wait is until at most OTHERS are in flight.
static __device__ __forceinline__ void end_group() { asm volatile("cp.async.commit_group;"); }

template <int OTHERS>
static __device__ __forceinline__ void wait_for_groups()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(OTHERS) : "memory");
}

// A lane's share of 16 k: of four times 16 rows of A, and of eight times eight columns of B.
struct Fragments { unsigned a[4][4], b[8][2]; };

static __device__ __forceinline__ void fetch(Fragments &to, unsigned a, unsigned b)
{
    #pragma unroll
    for (int i = 0; i < 4; ++i)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to.a[i][0]), "=r"(to.a[i][1]), "=r"(to.a[i][2]), "=r"(to.a[i][3])
                     : "r"(a + 2 * (i * 16 * A_WIDTH)) : "memory");
    #pragma unroll
    for (int j = 0; j < 8; j += 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to.b[j][0]), "=r"(to.b[j][1]), "=r"(to.b[j + 1][0]),
                       "=r"(to.b[j + 1][1])
                     : "r"(b + 2 * (j * 8)) : "memory");
}

// sum += a·b: 16×16 by 16×8.
static __device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4],
                                                const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int COUNT>
static __device__ __forceinline__ void product(const __half *A, const __half *B, __half *C,
                                               int M, int N, int K, __half *tiles)
{
    // Blocks that run at the same time have tiles in a band of BAND rows of tiles, so they share
    // rows of A and columns of B in the L2 cache.
    const int block = blockIdx.y * gridDim.x + blockIdx.x, whole = BAND * gridDim.x;
    const int band = block / whole, place = block % whole;
    const int height = min(BAND, gridDim.y - band * BAND);
    const int first_row = (band * BAND + place % height) * BM;
    const int first_column = place / height * BN;

    // The row of 16 bytes whose address this lane gives: of two 8×8 blocks down by two across.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / ACROSS * 64, column = warp % ACROSS * 64;
    const int down = lane % 16, aside = lane / 16 * 8;
    const unsigned a_of = address_of(tiles + (row + down) * A_WIDTH + aside);
    const unsigned b_of = address_of(tiles + A_SIZE + down * B_WIDTH + column + aside);

    float sum[4][8][4];
    #pragma unroll
    for (int i = 0; i < 128; ++i)
        sum[i / 32][i / 4 % 8][i % 4] = 0.0f;

    #pragma unroll
    for (int i = 0; i < STAGES; ++i) {
        if (i * BK < K)
            copy_tiles<COUNT>(tiles + i * STAGE, A, B, M, N, K, first_row, first_column, i * BK);
        end_group();
    }
    wait_for_groups<STAGES - 1>();
    __syncthreads();
    Fragments of[2];  // of this slice and the next, alternately
    fetch(of[0], a_of, b_of);

    int now = 0;
    #pragma unroll 1
    for (int start = 0; start < K; start += BK) {
        #pragma unroll
        for (int slice = 0; slice < SLICES; ++slice) {
            if (slice < SLICES - 1) {
                const unsigned from = 2 * (now * STAGE), k = (slice + 1) * DEPTH;
                fetch(of[(slice + 1) % 2], a_of + from + 2 * k, b_of + from + 2 * (k * B_WIDTH));
            } else {
                const int next = now + 1 < STAGES ? now + 1 : 0, coming = start + STAGES * BK;
                wait_for_groups<STAGES - 2>();
                __syncthreads();  // the next tiles have arrived, and nobody reads these any more
                if (coming < K)
                    copy_tiles<COUNT>(tiles + now * STAGE, A, B, M, N, K, first_row, first_column,
                                      coming);
                end_group();
                fetch(of[0], a_of + 2 * (next * STAGE), b_of + 2 * (next * STAGE));
                now = next;
            }
            #pragma unroll
            for (int i = 0; i < 4; ++i)
                #pragma unroll
                for (int j = 0; j < 8; ++j)
                    multiply(sum[i][j], of[slice % 2].a[i], of[slice % 2].b[j]);
        }
    }

    // A lane has pairs of adjacent elements in every eighth row and column.
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int c_row = first_row + row + i * 8 + lane / 4;
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int c_column = first_column + column + j * 8 + lane % 4 * 2;
            const float *const pair = &sum[i / 2][j][i % 2 * 2];
            __half *const to = C + (size_t)c_row * N + c_column;
            if (c_row < M && COUNT == 8 && c_column < N)
                *(__half2 *)to = __floats2half2_rn(pair[0], pair[1]);
            if (c_row < M && COUNT == 1 && c_column < N)
                to[0] = __float2half_rn(pair[0]);
            if (c_row < M && COUNT == 1 && c_column + 1 < N)
                to[1] = __float2half_rn(pair[1]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
half_mma(const __half *A, const __half *B, __half *C, int M, int N, int K)
{
    extern __shared__ float4 shared[];

    if (K % 8 == 0 && N % 8 == 0)
        product<8>(A, B, C, M, N, K, (__half *)shared);
    else
        product<1>(A, B, C, M, N, K, (__half *)shared);
}
