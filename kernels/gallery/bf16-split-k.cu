// /// matbench
// name = "bf16-split-k"
// summary = "bf16-wgmma for few tiles: clusters share K, and their partial sums are added in order"
// group = "gallery"
// previous = "bf16-wgmma"
// requires = ["cuda", "sm_90a"]
// precision = "bfloat16"
// args = ["tensor_map(A, 64, 64)", "tensor_map(B, 64, 64)", "A", "B", "C",
//         "workspace", "M", "N", "K"]
// [launch]
// where = ["max_shared_bytes_per_block >= 197760", "K % 8 == 0", "N % 8 == 0"]
// block = ["256"]
// grid = ["multiprocessors // 2 * 2"]
// shared_bytes = "197760"
// workspace_bytes = "65536 * (multiprocessors // 2)"
// [model]
// global_loads = "M * N * K / 128 + M * N * K / 128"
// ///

// Adds: K is shared. If C has fewer tiles than there are clusters of blocks, each cluster has a part
//   of the steps of a pair of tiles, so that all multiprocessors fetch.
// Predicted: 10 µs at 128x128x65536, at 3.35 TB/s: A and B are 34 MB. One pair of tiles has 1,024
//   steps, for 66 clusters; bf16-wgmma takes 152 µs, for it uses one of them.
// Measured: 96.3 TFLOP/s at 128x128x65536, 110% of cuBLAS in bfloat16 (H100)
//
// Each block stores its partial sums in the workspace, as its threads hold them, which makes whole
// lines. Then all blocks meet, and the blocks of a tile divide its elements: each adds up the
// partial sums of its share, always in the same order. So results are the same every time. If every
// cluster has a tile of its own anyway, the sums go directly to C.
//
// What it takes at 128x128x65536, in µs (H100). An empty kernel takes 3.2, and one that only reads A
// and B, with ordinary loads, 18.7: the cache is full of what was written before, which must go to
// memory first. (If it has only been read before, 14.1.)
//
//     27.0   32 threads of a block add up 66 partial sums each, 16 loads at a time
//     23.7   256 threads add up 8 or 9 each, all loads at a time, and clusters take turns in K
//     21.9   what is fetched leaves the cache first, so less of what was written has to
//
// In the second line, the first stage was full after 3.4, products were done after 13.9 to 17.6, and
// 3.3 went by from there to the end: stores, the barrier, loads and the sums.
//
// K and N are multiples of 8, as tensor maps of A and B require.

#include "hopper.cuh"
#include <cuda_bf16.h>

#define BM 64
#define BN 128
#define BK 64
#define A_BYTES (BM * BK * 2)
#define B_BOX (BK * 64 * 2)  // 64 columns of B
#define STAGE (A_BYTES + 2 * B_BOX)
#define STAGES (196608 / STAGE)
#define FOURS (BM * BN / 4)  // of a tile: four sums of a thread each

// -- Shares --------------------------------------------------------------------------------------

// A cluster has a pair of tiles, one below the other, or a part of the steps of one.
static __device__ __forceinline__ int pairs_of_tiles(int M, int N)
{
    return (M + 2 * BM - 1) / (2 * BM) * ((N + BN - 1) / BN);
}

static __device__ __forceinline__ int steps_of(int K) { return (K + BK - 1) / BK; }

// Into how many parts the steps of a pair are split: so many that every cluster has one.
static __device__ __forceinline__ int parts_of(int M, int N, int K)
{
    return max(1, min(steps_of(K), (int)gridDim.x / 2 / pairs_of_tiles(M, N)));
}

// Parts take turns: what clusters fetch at the same time lies side by side in the rows of A.
struct Share { int row, column, first, stride; };

static __device__ __forceinline__ Share share_of(int index, int M, int N, int K)
{
    const int pairs = pairs_of_tiles(M, N), down = (M + 127) / 128, pair = index % pairs;
    return {(pair % down * 2 + (int)blockIdx.x % 2) * BM, pair / down * BN, index / pairs,
            parts_of(M, N, K)};
}

static __device__ __forceinline__ int shares(int M, int N, int K)
{
    return pairs_of_tiles(M, N) * parts_of(M, N, K);
}

// -- Products ------------------------------------------------------------------------------------

// One thread keeps the ring of stages full.
static __device__ __forceinline__ void produce(const CUtensorMap &A_map, const CUtensorMap &B_map,
                                               int M, int N, int K, unsigned ring, unsigned full,
                                               unsigned empty)
{
    const int lower = blockIdx.x % 2;
    const uint64_t policy = read_once();
    unsigned slot = 0, phase = 0;
    for (int i = blockIdx.x / 2; i < shares(M, N, K); i += gridDim.x / 2) {
        const Share share = share_of(i, M, N, K);
        #pragma unroll 1
        for (int step = share.first; step < steps_of(K); step += share.stride) {
            const unsigned stage = ring + slot * STAGE, barrier = full + 8 * slot;
            wait(empty + 8 * slot, phase ^ 1);
            arrive_and_expect(barrier, STAGE);
            fetch(stage, A_map, step * BK, share.row, barrier, policy);
            fetch_for(3, stage + A_BYTES + lower * B_BOX, B_map, share.column + lower * 64,
                      step * BK, barrier, policy);
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    }
    // When all stages are empty, nothing will be sent to this block any more, and it may exit.
    for (int i = 0; i < STAGES; ++i) {
        wait(empty + 8 * slot, phase ^ 1);
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }
}

// sum = (fresh ? 0 : sum) + a·b: 64×16 by 16×128, both in shared memory; K runs fastest in a, and
// the columns do in b.
static __device__ __forceinline__ void multiply(float (&sum)[64], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" NAMES_64 "}, "
                 "%64, %65, add, 1, 1, 0, 1;\n"
                 "}" : SUMS_64("+f", 0) : "l"(a), "l"(b), "r"((unsigned)fresh));
}

static __device__ __forceinline__ float4 operator+(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Writes four sums of thread `thread` to C: two adjacent columns of two rows, of the eight columns
// number `eight` of the tile.
static __device__ __forceinline__ void write(float4 four, int eight, int thread, float *C,
                                             Share tile, int M, int N)
{
    const int row = tile.row + thread / 32 * 16 + thread % 32 / 4;
    const int column = tile.column + eight * 8 + thread % 4 * 2;
    float *const to = C + (size_t)row * N + column;
    if (row < M && column < N)
        *(float2 *)to = make_float2(four.x, four.y);
    if (row + 8 < M && column < N)
        *(float2 *)(to + (size_t)8 * N) = make_float2(four.z, four.w);
}

static __device__ __forceinline__ void consume(float *C, float4 *workspace, int M, int N, int K,
                                               unsigned ring, unsigned full, unsigned empty)
{
    unsigned slot = 0, phase = 0;
    for (int i = blockIdx.x / 2; i < shares(M, N, K); i += gridDim.x / 2) {
        const Share share = share_of(i, M, N, K);
        float sum[64];
        unsigned before = 0;  // the barrier of the stage whose products are in flight
        #pragma unroll 1
        for (int step = share.first; step < steps_of(K); step += share.stride) {
            const uint64_t a = rows_at(ring + slot * STAGE, B_BOX);
            const uint64_t b = rows_at(ring + slot * STAGE + A_BYTES, B_BOX);
            wait(full + 8 * slot, phase);
            begin_products();
            #pragma unroll
            for (int j = 0; j < BK / 16; ++j)
                multiply(sum, a + j * (32 >> 4), b + j * (2048 >> 4),
                         step == share.first && j == 0);
            end_products();

            // The previous step is done: both blocks may fill its stage again.
            wait_for_products<1>(sum);
            if (step > share.first && threadIdx.x % 128 < 2)
                arrive_in(threadIdx.x % 128, before);
            before = empty + 8 * slot;
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
        wait_for_products<0>(sum);
        if (threadIdx.x % 128 < 2)
            arrive_in(threadIdx.x % 128, before);

        #pragma unroll
        for (int j = 0; j < 16; ++j) {
            const float4 four = make_float4(sum[4 * j], sum[4 * j + 1], sum[4 * j + 2],
                                            sum[4 * j + 3]);
            if (parts_of(M, N, K) == 1)
                write(four, j, threadIdx.x % 128, C, share, M, N);
            else
                workspace[(size_t)blockIdx.x * FOURS + j * 128 + threadIdx.x % 128] = four;
        }
    }
}

// Each block of a pair adds up a part of its tile. Teams of threads have a part of the addends each:
// every thread loads nine at once, for each load takes half a microsecond. The order is always the
// same.
static __device__ __forceinline__ void add_up(float *C, const float4 *workspace, float4 *sums,
                                              int M, int N, int K)
{
    const int pairs = pairs_of_tiles(M, N), parts = parts_of(M, N, K), index = blockIdx.x / 2;
    if (index >= pairs * parts)
        return;
    const Share share = share_of(index, M, N, K);
    const int part = index / pairs, end = FOURS * (part + 1) / parts;
    const int teams = max(1, min(8, parts / 8)), width = 256 / teams;
    const int team = threadIdx.x / width, place = threadIdx.x % width;
    workspace += (size_t)(index % pairs * 2 + blockIdx.x % 2) * FOURS;
    for (int first = FOURS * part / parts; first < end; first += width) {
        const int i = first + place;
        float4 total = {};
        for (int j = team; i < end && j < parts; j += 9 * teams) {
            float4 four[9];
            #pragma unroll
            for (int k = 0; k < 9; ++k)
                four[k] = j + k * teams < parts
                    ? __ldcg(workspace + (size_t)(j + k * teams) * pairs * 2 * FOURS + i)
                    : float4{};
            #pragma unroll
            for (int k = 0; k < 9; ++k)
                total = total + four[k];
        }
        sums[threadIdx.x] = total;
        __syncthreads();
        if (team == 0 && i < end) {
            for (int j = 1; j < teams; ++j)
                total = total + sums[j * width + place];
            write(total, i / 128, i % 128, C, share, M, N);
        }
        __syncthreads();
    }
}

static __device__ unsigned arrived;

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(256, 1)
bf16_split_k(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
             const __nv_bfloat16 *A, const __nv_bfloat16 *B, float *C, float4 *workspace, int M,
             int N, int K)
{
    // The ring of stages starts at a multiple of 1,024 bytes. Two barriers per stage follow it.
    extern __shared__ char shared[];
    const unsigned start = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned ring = (start + 1023) / 1024 * 1024;
    const unsigned full = ring + STAGES * STAGE, empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            expect_arrivals(full + 8 * stage, 1);
            expect_arrivals(empty + 8 * stage, 2);  // of both blocks
        }
        publish_barriers();
    }
    synchronize_cluster();
    if (threadIdx.x >= 128)
        consume(C, workspace, M, N, K, ring, full, empty);
    else if (threadIdx.x == 0)
        produce(A_map, B_map, M, N, K, ring, full, empty);
    if (parts_of(M, N, K) > 1) {
        __syncthreads();
        if (threadIdx.x == 0)
            meet_all_blocks(arrived);
        __syncthreads();
        add_up(C, workspace, (float4 *)shared, M, N, K);
    }
}
