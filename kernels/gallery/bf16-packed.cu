// /// matbench
// name = "bf16-packed"
// summary = "bf16-wgmma for rows at any address: one launch packs A and B, then multiplies"
// group = "gallery"
// previous = "bf16-wgmma"
// requires = ["cuda", "sm_90a"]
// precision = "bfloat16"
// args = ["tensor_map(C, 16, 32)", "A", "B", "C", "workspace", "M", "N", "K"]
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
// workspace_bytes = "256 * BM * ceil_div(K, 64) * (ceil_div(M, 2 * BM) + ceil_div(N, 2 * BM))"
// [model]
// global_loads = "M * K + K * N + M * N * K / (2 * BM) + M * N * K / (2 * BM)"
// ///

// Adds: packing. All blocks first copy A and B to a workspace, in the form that the ring of stages
//   needs; then they wait for each other and go on as in bf16-wgmma.
// Predicted: at most 847 TFLOP/s at n = 4095: 67 MB read and 67 MB written at 4 TB/s take 34 µs,
//   the products 128 µs, and nothing overlaps.
// Measured: 561 TFLOP/s at n = 4095, 375% of cuBLAS in bfloat16 (H200)
//
// TMA's tensor maps require rows that start at multiples of 16 bytes. In a matrix with 4,095
// columns of 2 bytes they do not, and bf16-wgmma copies value by value: those of A n / 256 times,
// those of B n / 128 times. Here they are packed once. A box of BM×64 of A or 64×64 of B is
// contiguous in the workspace and already swizzled, so that a bulk copy without a tensor map takes
// it to shared memory.
//
// - The blocks wait for each other at a counter. That needs all of them to run at the same time:
//   the grid has at most one block per multiprocessor.
// - Ordinary stores write the workspace and the copy engine reads it. Only fence.proxy.async orders
//   accesses of these two kinds; here it is on both sides of the counter.
// - Rows of C may start anywhere too. If they do not start at multiples of 16 bytes, a warp writes
//   them, 32 adjacent values at a time.

#include "hopper.cuh"
#include <cuda_bf16.h>

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128
#endif
#define BN (2 * BM)
#define BK 64
#define WARPGROUPS (BM / 64)  // those that multiply
#define A_BYTES (BM * BK * 2)
#define B_BOX (BK * 64 * 2)  // 64 columns of B
#define STAGE (A_BYTES + BN / 64 * B_BOX)
#define HALF_B (BN / 128 * B_BOX)  // what a block of the pair fetches for both
#define STAGES (196608 / STAGE)
#define DRAFT (16 * 32 * 4)  // 16 rows and 32 columns of C
#define DRAFTS (BM / 16 * 2 * DRAFT)

#include "tiles.cuh"

// -- Packing -------------------------------------------------------------------------------------

static __device__ __forceinline__ int tiles_down(int M)
{
    return (M + 2 * BM - 1) / (2 * BM) * 2;
}

static __device__ __forceinline__ int steps(int K)
{
    return (K + BK - 1) / BK;
}

static __device__ __forceinline__ size_t packed_bytes_of_A(int M, int K)
{
    return (size_t)tiles_down(M) * steps(K) * A_BYTES;
}

static __device__ __forceinline__ int boxes_across(int N)
{
    return (N + BN - 1) / BN * (BN / 64);
}

// Copies a matrix to boxes of HEIGHT rows and 64 columns, one after the other from left to right,
// with zeros beyond the edge. Within a row of a box the index of each 16 bytes is XORed with the
// row's index modulo 8. A warp copies 16 rows of a box at a time, two values of a row per lane.
template <int HEIGHT>
static __device__ __forceinline__ void pack(char *to, const __nv_bfloat16 *from, int rows,
                                            int columns, int rows_of_boxes, int across)
{
    const int lane = threadIdx.x % 32, warps = gridDim.x * (blockDim.x / 32);
    const unsigned short *const values = (const unsigned short *)from;
    #pragma unroll 1
    for (int part = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
         part < rows_of_boxes * (HEIGHT / 16) * across; part += warps) {
        const int row = part / across * 16, box = part % across, column = box * 64 + lane * 2;
        unsigned low[16], high[16];
        #pragma unroll
        for (int i = 0; i < 16; ++i) {
            const size_t at = (size_t)(row + i) * columns + column;
            low[i] = row + i < rows && column < columns ? values[at] : 0;
            high[i] = row + i < rows && column + 1 < columns ? values[at + 1] : 0;
        }
        char *const there = to + ((size_t)(row / HEIGHT) * across + box) * (HEIGHT * 128)
            + row % HEIGHT * 128 + lane % 4 * 4;
        #pragma unroll
        for (int i = 0; i < 16; ++i)
            *(unsigned *)(there + i * 128 + ((lane / 4) ^ (i % 8)) * 16) = low[i] | high[i] << 16;
    }
}

static __device__ unsigned arrived;

// Waits until all blocks have packed their part. The copy engine reads what ordinary stores wrote.
static __device__ __forceinline__ void wait_for_packing()
{
    publish_all_stores();
    __syncthreads();
    if (threadIdx.x == 0) {
        meet_all_blocks(arrived);
        publish_all_stores();
    }
    __syncthreads();
}

// -- Producer ------------------------------------------------------------------------------------

// Waits until both blocks have reported every stage empty: nothing will be sent to this block any
// more, and it may exit.
static __device__ __forceinline__ void wait_for_last_reports(int slot, unsigned phase,
                                                             unsigned empty)
{
    for (int i = 0; i < STAGES; ++i) {
        wait(empty + 8 * slot, phase ^ 1);
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }
}

static __device__ __forceinline__ void produce(const char *packed, int M, int N, int K,
                                               unsigned ring, unsigned full, unsigned empty)
{
    const int upper = blockIdx.x % 2, clusters = gridDim.x / 2;
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += clusters) {
        const Tile tile = tile_of(pair, M, N);
        const char *A = packed + (size_t)(tile.row / BM) * steps(K) * A_BYTES;
        const char *B = packed + packed_bytes_of_A(M, K) + (size_t)(tile.column / 64) * B_BOX
            + upper * HALF_B;
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            const unsigned stage = ring + slot * STAGE, half = stage + A_BYTES + upper * HALF_B;
            const unsigned barrier = full + 8 * slot;
            wait(empty + 8 * slot, phase ^ 1);
            arrive_and_expect(barrier, STAGE);
            fetch(stage, A, A_BYTES, barrier);
            fetch_for(3, half, B, HALF_B, barrier);
            A += A_BYTES, B += (size_t)boxes_across(N) * B_BOX;
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    }
    wait_for_last_reports(slot, phase, empty);
}

// -- Consumers -----------------------------------------------------------------------------------

#if BM == 128
#define SUMS SUMS_128("+f", 0)
#define WGMMA "m64n256k16.f32.bf16.bf16 {" NAMES_128 "}, %128, %129"
#define FRESH "%130"
#else
#define SUMS SUMS_64("+f", 0)
#define WGMMA "m64n128k16.f32.bf16.bf16 {" NAMES_64 "}, %64, %65"
#define FRESH "%66"
#endif

// sum = (fresh ? 0 : sum) + a·b: 64×16 by 16×BN, both in shared memory; K runs fastest in a, and
// the columns do in b.
static __device__ __forceinline__ void multiply(float (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 "wgmma.mma_async.sync.aligned." WGMMA ", add, 1, 1, 0, 1;\n"
                 "}" : SUMS : "l"(a), "l"(b), "r"((unsigned)fresh));
}

// Stores two adjacent sums of a row to a box of 32 columns: `eight` is the index of eight columns,
// `pair` that of the pair within them.
static __device__ __forceinline__ void draw(unsigned draft, int row, int eight, int pair, float x,
                                            float y)
{
    const unsigned place = (eight * 2 + pair / 2) ^ (row % 8);
    const unsigned to = draft + row * 128 + place * 16 + pair % 2 * 8;
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(to), "f"(x), "f"(y) : "memory");
}

static __device__ __forceinline__ void deliver_by_hand(float *C, int M, int N, unsigned from,
                                                       int column, int row)
{
    const int lane = threadIdx.x % 32;
    C += (size_t)row * N + column + lane;
    #pragma unroll 4
    for (int i = 0; i < 16; ++i) {
        float value;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value)
                     : "r"(from + i * 128 + ((lane / 4) ^ (i % 8)) * 16 + lane % 4 * 4));
        if (row + i < M && column + lane < N)
            C[(size_t)i * N] = value;
    }
    __syncwarp();
}

static __device__ __forceinline__ void consume(const CUtensorMap &C_map, float *C, int M,
                                               int N, int K, unsigned ring, unsigned full,
                                               unsigned empty)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4;
    const int lane = threadIdx.x % 32, group = warp / 4, clusters = gridDim.x / 2;
    const unsigned drafts = ring + STAGES * STAGE + warp * 2 * DRAFT;
    const bool odd = lane / 4 % 2;
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += clusters) {
        float sum[BN / 2];
        unsigned before = 0;  // the barrier of the slot whose products are in flight
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            const uint64_t a = rows_at(ring + slot * STAGE + group * 64 * 128, B_BOX);
            const uint64_t b = rows_at(ring + slot * STAGE + A_BYTES, B_BOX);
            wait(full + 8 * slot, phase);
            begin_products();
            #pragma unroll
            for (int i = 0; i < BK / 16; ++i)
                multiply(sum, a + i * (32 >> 4), b + i * (2048 >> 4), k == 0 && i == 0);
            end_products();

            // The previous step is done: both blocks may fill its stage again.
            wait_for_products<1>(sum);
            if (k > 0 && threadIdx.x % 128 < 2)
                arrive_in(threadIdx.x % 128, before);
            before = empty + 8 * slot;
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
        wait_for_products<0>(sum);
        if (threadIdx.x % 128 < 2)
            arrive_in(threadIdx.x % 128, before);

        const Tile tile = tile_of(pair, M, N);
        // 32 columns at a time: to shared memory, swizzled as above, then by the copy engine to C.
        #pragma unroll
        for (int part = 0; part < BN / 32; ++part) {
            const unsigned draft = drafts + part % 2 * DRAFT;
            if (lane == 0)
                wait_until_read<1>();
            __syncwarp();
            #pragma unroll
            for (int i = 0; i < 2; ++i) {
                // Odd rows start with other columns than even rows, so that banks differ.
                const float *const near = &sum[(part * 4 + i) * 4], *const far = near + 8;
                #pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float *const one = near + half * 2, *const two = far + half * 2;
                    const int row = half * 8 + lane / 4;
                    draw(draft, row, odd ? i + 2 : i, lane % 4, odd ? two[0] : one[0],
                         odd ? two[1] : one[1]);
                    draw(draft, row, odd ? i : i + 2, lane % 4, odd ? one[0] : two[0],
                         odd ? one[1] : two[1]);
                }
            }
            if (N % 4 == 0) {
                publish_stores();
                __syncwarp();
                if (lane == 0)
                    deliver(C_map, draft, tile.column + part * 32, tile.row + warp * 16);
            } else {
                __syncwarp();
                deliver_by_hand(C, M, N, draft, tile.column + part * 32, tile.row + warp * 16);
            }
        }
    }
    // The copy engine reads shared memory, which is freed when the block exits.
    wait_until_read<0>();
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
bf16_packed(const CUtensorMap __grid_constant__ C_map, const __nv_bfloat16 *A,
            const __nv_bfloat16 *B, float *C, char *workspace, int M, int N, int K)
{
    // The ring of stages starts at a multiple of 1,024 bytes. Two barriers per stage follow it.
    extern __shared__ char shared[];
    const unsigned start = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned ring = (start + 1023) / 1024 * 1024;
    const unsigned full = ring + STAGES * STAGE + DRAFTS, empty = full + 8 * STAGES;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            expect_arrivals(full + 8 * stage, 1);
            expect_arrivals(empty + 8 * stage, 2 * WARPGROUPS);  // of both blocks
        }
        publish_barriers();
    }
    synchronize_cluster();

    pack<BM>(workspace, A, M, K, tiles_down(M), steps(K));
    pack<BK>(workspace + packed_bytes_of_A(M, K), B, K, N, steps(K), boxes_across(N));
    wait_for_packing();

    // With three warpgroups, registers move from the one that moves data to those that multiply.
    if (threadIdx.x < 128) {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
#endif
        if (threadIdx.x == 0)
            produce(workspace, M, N, K, ring, full, empty);
    } else {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
#endif
        consume(C_map, C, M, N, K, ring, full, empty);
    }
}
