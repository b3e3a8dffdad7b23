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
//   steps, for 66 clusters; bf16-wgmma takes 152 µs, because it uses one of them.
// Measured: 96.2 TFLOP/s at 128x128x65536, 109% of cuBLAS in bfloat16 (H100)
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

#define BM 64
#define BAND 4096  // a single band: pairs are numbered down the columns of C
#include <cuda_bf16.h>
typedef __nv_bfloat16 Factor;
#define FACTORS "bf16.bf16"
#include "sixteen-bit.cuh"

#define QUADS (BM * BN / 4)  // of a tile: four sums of a thread each

// -- Shares --------------------------------------------------------------------------------------

static __device__ __forceinline__ int steps_of(int K) { return (K + BK - 1) / BK; }

// Into how many parts the steps of a pair are split: so many that every cluster has one.
static __device__ __forceinline__ int parts_of(int M, int N, int K)
{
    return max(1, min(steps_of(K), (int)gridDim.x / 2 / pairs_of_tiles(M, N)));
}

// Parts take turns: what clusters fetch at the same time lies side by side in the rows of A.
struct Share { Tile tile; int first, stride; };

static __device__ __forceinline__ Share share_of(int index, int M, int N, int K)
{
    const int pairs = pairs_of_tiles(M, N);
    return {tile_of(index % pairs, M, N), index / pairs, parts_of(M, N, K)};
}

static __device__ __forceinline__ int shares(int M, int N, int K)
{
    return pairs_of_tiles(M, N) * parts_of(M, N, K);
}

// -- Products ------------------------------------------------------------------------------------

// One thread keeps the ring of stages full.
static __device__ __forceinline__ void produce_shares(const CUtensorMap &A_map,
                                                      const CUtensorMap &B_map, Ring ring, int M,
                                                      int N, int K)
{
    const int lower = blockIdx.x % 2;
    const uint64_t policy = evict_first_policy();
    for (int i = blockIdx.x / 2; i < shares(M, N, K); i += gridDim.x / 2) {
        const Share share = share_of(i, M, N, K);
        #pragma unroll 1
        for (int step = share.first; step < steps_of(K); step += share.stride, ring.next()) {
            const unsigned stage = ring.stage(), barrier = ring.full();
            wait(ring.empty(), ring.phase ^ 1);
            arrive_and_expect(barrier, STAGE_BYTES);
            fetch(stage, A_map, step * BK, share.tile.row, barrier, policy);
            fetch_for(3, stage + A_BYTES + lower * B_BOX_BYTES, B_map,
                      share.tile.column + lower * 64, step * BK, barrier, policy);
        }
    }
    ring.wait_until_empty();
}

static __device__ __forceinline__ float4 operator+(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Writes four sums of thread `thread` to C: two adjacent columns in each of two rows. `j` counts
// groups of eight columns of the tile.
static __device__ __forceinline__ void write_four(float4 four, int j, int thread, float *C,
                                             Tile tile, int M, int N)
{
    const int row = tile.row + thread / 32 * 16 + thread % 32 / 4;
    const int column = tile.column + j * 8 + thread % 4 * 2;
    float *const to = C + (size_t)row * N + column;
    if (row < M && column < N)
        *(float2 *)to = make_float2(four.x, four.y);
    if (row + 8 < M && column < N)
        *(float2 *)(to + (size_t)8 * N) = make_float2(four.z, four.w);
}

static __device__ __forceinline__ void consume(float *C, float4 *workspace, Ring ring, int M, int N,
                                               int K)
{
    for (int i = blockIdx.x / 2; i < shares(M, N, K); i += gridDim.x / 2) {
        const Share share = share_of(i, M, N, K);
        float sum[64];
        unsigned previous = 0;  // the barrier `empty` of the step before
        #pragma unroll 1
        for (int step = share.first; step < steps_of(K); step += share.stride) {
            wait(ring.full(), ring.phase);
            begin_products();
            multiply_stage(sum, ring.stage(), 0, step == share.first);
            end_products();

            // The previous step is done: both blocks may fill its stage again.
            wait_for_products<1>(sum);
            if (step > share.first)
                report(previous);
            previous = ring.empty();
            ring.next();
        }
        wait_for_products<0>(sum);
        report(previous);

        #pragma unroll
        for (int j = 0; j < 16; ++j) {
            const float4 four = make_float4(sum[4 * j], sum[4 * j + 1], sum[4 * j + 2],
                                            sum[4 * j + 3]);
            if (parts_of(M, N, K) == 1)
                write_four(four, j, threadIdx.x % 128, C, share.tile, M, N);
            else
                workspace[(size_t)blockIdx.x * QUADS + j * 128 + threadIdx.x % 128] = four;
        }
    }
}

// The blocks that share a tile divide its elements, and each adds up the partial sums of its own.
// Teams of threads take some of the addends each. A thread loads nine at once, because a load takes
// half a microsecond. The order of additions is always the same.
static __device__ __forceinline__ void add_up(float *C, const float4 *workspace, float4 *sums,
                                              int M, int N, int K)
{
    const int pairs = pairs_of_tiles(M, N), parts = parts_of(M, N, K), index = blockIdx.x / 2;
    if (index >= pairs * parts)
        return;
    const Share share = share_of(index, M, N, K);
    const int part = index / pairs, end = QUADS * (part + 1) / parts;
    const int teams = max(1, min(8, parts / 8)), width = 256 / teams;
    const int team = threadIdx.x / width, place = threadIdx.x % width;
    workspace += (size_t)(index % pairs * 2 + blockIdx.x % 2) * QUADS;
    for (int first = QUADS * part / parts; first < end; first += width) {
        const int i = first + place;
        float4 total = {};
        for (int j = team; i < end && j < parts; j += 9 * teams) {
            float4 four[9];
            #pragma unroll
            for (int k = 0; k < 9; ++k)
                four[k] = j + k * teams < parts
                    ? __ldcg(workspace + (size_t)(j + k * teams) * pairs * 2 * QUADS + i)
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
            write_four(total, i / 128, i % 128, C, share.tile, M, N);
        }
        __syncthreads();
    }
}

static __device__ unsigned arrived;

// A and B are there for their types, which matbench gives to the tensor maps.
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(256, 1)
bf16_split_k(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
             const __nv_bfloat16 *A, const __nv_bfloat16 *B, float *C, float4 *workspace, int M,
             int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring(shared, 0);
    ring.set_up(1);
    if (threadIdx.x >= 128)
        consume(C, workspace, ring, M, N, K);
    else if (threadIdx.x == 0)
        produce_shares(A_map, B_map, ring, M, N, K);
    if (parts_of(M, N, K) > 1) {
        __syncthreads();
        if (threadIdx.x == 0)
            synchronize_grid(arrived);
        __syncthreads();
        add_up(C, workspace, (float4 *)shared, M, N, K);
    }
}
