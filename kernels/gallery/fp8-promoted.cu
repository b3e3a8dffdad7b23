#include "hopper.cuh"
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128
#endif
#include "eight-bit.cuh"

#define DRAFT (16 * 64 * 2)  // 16 rows and 64 columns of C
#define DRAFTS (BM / 16 * 2 * DRAFT)


// sum = (fresh ? 0 : sum) + a·b: 64×32 by 32×128, both in shared memory.
static __device__ __forceinline__ void multiply(float (&sum)[64], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" NAMES_64 "}, "
                 "%64, %65, add, 1, 1;\n"
                 "}" : SUMS_64("+f", 0) : "l"(a), "l"(b), "r"((unsigned)fresh));
}

// The scales of a step: of a lane's two rows of A, and of 128 columns of B each.
struct Scales {
    float a[2], b[BN / 128];

    __device__ __forceinline__ void load(const float *scale_a, const float *scale_b, int row,
                                         int column, int step, int M, int N, int steps)
    {
        const int last = (N + 127) / 128 - 1;
        step = min(step, steps - 1);
        #pragma unroll
        for (int i = 0; i < 2; ++i)
            a[i] = __ldg(scale_a + (size_t)min(row + i * 8, M - 1) * steps + step);
        #pragma unroll
        for (int i = 0; i < BN / 128; ++i)
            b[i] = __ldg(scale_b + (size_t)min(column / 128 + i, last) * steps + step);
    }
};

// Two adjacent numbers of a row of C, as bfloat16.
static __device__ __forceinline__ unsigned pair(float left, float right)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(right), "f"(left));
    return both;
}

// Stores 16×16 numbers of C to a draft, four matrices of 8×8: a lane has two numbers of each, and
// gives the address of one of their rows.
static __device__ __forceinline__ void store(unsigned to, const unsigned (&c)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]) : "memory");
}

static __device__ __forceinline__ void consume(const CUtensorMap &C_map, Ring ring,
                                               __nv_bfloat16 *C, const float *scale_a,
                                               const float *scale_b, int M, int N, int K)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4, lane = threadIdx.x % 32;
    const int steps = (K + BK - 1) / BK;
    const unsigned drafts = ring.start + STAGES * STAGE + warp * 2 * DRAFT;
    for (int i = blockIdx.x / BLOCKS; i < pairs_of_tiles(M, N); i += gridDim.x / BLOCKS) {
        const Tile tile = tile_of(i, M, N);
        const int row = tile.row + warp * 16;
        float total[BN / 128][64] = {}, sum[64];
        Scales scales, next;
        scales.load(scale_a, scale_b, row + lane / 4, tile.column, 0, M, N, steps);
        #pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            const uint64_t a = rows_at(ring.stage() + warp / 4 * 64 * BK);
            next.load(scale_a, scale_b, row + lane / 4, tile.column, step + 1, M, N, steps);
            wait(ring.full(), ring.phase);
            #pragma unroll
            for (int piece = 0; piece < BN / 128; ++piece) {
                const uint64_t b = rows_at(ring.stage() + A_BYTES + piece * 128 * BK);
                begin_products();
                #pragma unroll
                for (int j = 0; j < BK / 32; ++j)
                    multiply(sum, a + j * (32 >> 4), b + j * (32 >> 4), j == 0);
                end_products();
                wait_for_products<0>(sum);
                if (piece == BN / 128 - 1)
                    report(ring.empty());
                #pragma unroll
                for (int j = 0; j < 64; ++j)
                    total[piece][j] += scales.a[j / 2 % 2] * scales.b[piece] * sum[j];
            }
            scales = next;
            ring.next();
        }

        // 64 columns at a time: to shared memory, swizzled, then by the copy engine to C.
        #pragma unroll
        for (int part = 0; part < BN / 64; ++part) {
            const unsigned draft = drafts + part % 2 * DRAFT;
            const int column = tile.column + part * 64;
            if (lane == 0)
                wait_until_read<1>();
            __syncwarp();
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                unsigned c[4];
                #pragma unroll
                for (int q = 0; q < 4; ++q) {
                    const float *const two = &total[part / 2][part % 2 * 32 + j * 8 + q * 2];
                    c[q] = pair(two[0], two[1]);
                    const int r = row + q % 2 * 8 + lane / 4;
                    const int n = column + j * 16 + q / 2 * 8 + lane % 4 * 2;
                    if (N % 8 != 0 && r < M && n < N)
                        C[(size_t)r * N + n] = __ushort_as_bfloat16(c[q] & 0xffff);
                    if (N % 8 != 0 && r < M && n + 1 < N)
                        C[(size_t)r * N + n + 1] = __ushort_as_bfloat16(c[q] >> 16);
                }
                store(draft + lane % 16 * 128 + ((j * 2 + lane / 16) ^ (lane % 8)) * 16, c);
            }
            publish_stores();
            __syncwarp();
            if (lane == 0 && N % 8 == 0)
                deliver(C_map, draft, column, row);
        }
    }
    // The copy engine reads shared memory, which is freed when the block exits.
    wait_until_read<0>();
}

extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(128 + 2 * BM, 1)
fp8_promoted(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
          const CUtensorMap __grid_constant__ C_map, const __nv_fp8_e4m3 *A,
          const __nv_fp8_e4m3 *B, __nv_bfloat16 *C, const float *scale_a, const float *scale_b,
          int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring((unsigned)__cvta_generic_to_shared(shared), DRAFTS);
    ring.set_up(K % 16 == 0 ? 1 : 128);

    // Registers move from the warpgroup that moves data to those that multiply.
    if (threadIdx.x < 128) {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
#endif
        if (K % 16 != 0)
            produce_by_hand(A, B, shared, ring, M, N, K);
        else if (threadIdx.x == 0)
            produce(A_map, B_map, ring, M, N, K);
    } else {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
#endif
        consume(C_map, ring, C, scale_a, scale_b, M, N, K);
    }
}
