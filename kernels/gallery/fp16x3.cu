// /// matbench
// name = "fp16x3"
// summary = "float32 accuracy from float16 tensor cores: two parts per number, one scaled"
// group = "gallery"
// previous = "tf32x3"
// requires = ["cuda", "sm_90a"]
// error_constant = 8.0
// exponents = [-12, 15]
// args = ["A", "B", "C", "workspace", "M", "N", "K"]
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
// workspace_bytes = "(ceil_div(M, 256) * 256 + ceil_div(N, BN) * BN) * ceil_div(K, 64) * 256"
// [model]
// global_loads = "M * K + K * N + M * N * K / BN + M * N * K / 256"
// global_stores = "M * K + K * N + M * N"
// tensor_operations = "6 * M * N * K"
// arithmetic = "3 float16"
// ///

// Adds: float16 parts in place of TF32 parts. Tensor cores multiply them at twice the rate, but
//   splitting takes more instructions. So A, too, is split only once per launch.
// Predicted: for n = 4096, 386 us for 4.1e11 operations if the tensor cores never wait (1.98 GHz),
//   and 62 us to read 134 MB and write 134 MB of parts: at most 307 TFLOP/s. If they multiply as
//   fast as for cuBLAS with float16 inputs, 235.
// Measured: 200 TFLOP/s at n = 4096, 392% of cuBLAS (H200)
//   215 TFLOP/s at n = 8192, 421% of cuBLAS (H200)
//
// float16 has 11 bits like TF32, but a small exponent range: for a number below 1/8 the small part
// would lose bits. So the small part is multiplied by 2¹¹ before it is rounded (H. Ootomo and
// R. Yokota, arXiv 2203.03341):
//
//     x = big + small · 2⁻¹¹      a·b = big·big + 2⁻¹¹ · (big·small + small·big)
//
// The small products are summed first. That sum is multiplied by 2⁻¹¹, which is exact, and the big
// products are added to it, 32 terms (K) at a time: as many as there are in a row of 128 bytes.
//
// PACKING. Both matrices are read, written as parts, and read again. If M or N is small, that takes
// longer than the products.
//
// TOTAL_WORDS. With 2, a total has a second word for what its last addition rounded away, which is
// added with the next sum (W. Kahan). There are enough registers for that only if BN = 64.
//
// RANGE. Correct for absolute values from 2⁻¹² to 65,504, float16's largest; larger values become
// infinite. Smaller values keep an absolute, not a relative, precision of 2⁻³⁶. That is as good as
// float32 if larger values are in the same sum, but not if a whole row or column is tiny. Scale
// such inputs first, or use tf32x3.

#include "hopper.cuh"
#include <cuda_fp16.h>

#ifndef BN
#define BN 256
#endif
#ifndef TOTAL_WORDS
#define TOTAL_WORDS 1
#endif
#define BM 128
#define BK 64                        // terms of a step
#define PIECES (BN / 64)
#define A_BOX (BM * 128)             // 32 columns of A
#define B_HALF (BN * 128)            // the big parts of a step, or the small ones
#define STAGE (2 * A_BOX + 2 * B_HALF)
#define STAGES (196608 / STAGE)
#define BAND 8                       // pairs of rows of tiles

static __device__ __forceinline__ int steps_of(int K) { return (K + BK - 1) / BK; }

// -- Splitting -----------------------------------------------------------------------------------

// Splits two values at a time, the first into the lower halves.
static __device__ __forceinline__ void split(float x, float y, unsigned &big, unsigned &small)
{
    const __half2 rounded = __floats2half2_rn(x, y);
    const __half2 rest = __floats2half2_rn((x - __low2float(rounded)) * 2048.0f,
                                           (y - __high2float(rounded)) * 2048.0f);
    big = *(const unsigned *)&rounded;
    small = *(const unsigned *)&rest;
}

// Splits B, with its columns as rows, or copies A. For each tile of ROWS and each step there are two
// boxes with rows of 128 bytes: B's big parts and its small ones, or 32 columns of A and the next 32.
// The index of each 16 bytes is XORed with the row's index modulo 8, so that eight rows lie in
// different banks. Beyond the matrix there are zeros. A warp takes 32 rows and 32 terms at a time, a
// lane four rows; the next warp takes what follows in memory.
template <int ROWS, bool IS_A>
static __device__ __forceinline__ void pack(const float *from, int rows, int tiles, int K, char *to)
{
    const int quarter = threadIdx.x % 32 / 8, halves = 2 * steps_of(K);
    const int groups = tiles * (ROWS / 32), warps = gridDim.x * (blockDim.x / 32);
    #pragma unroll 1
    for (int job = (blockIdx.x * blockDim.x + threadIdx.x) / 32; job < groups * halves;
         job += warps) {
        const int half = IS_A ? job % halves : job / groups;
        const int first = (IS_A ? job / halves : job % groups) * 32 + threadIdx.x % 8;
        float x[4][8];
        #pragma unroll
        for (int i = 0; i < 32; ++i) {
            // B's terms are in the order in which lanes load A's: see load_A.
            const int term = IS_A ? quarter * 8 + i % 8
                : quarter / 2 * 16 + i % 8 / 2 * 4 + quarter % 2 * 2 + i % 2;
            const int row = first + i / 8 * 8, k = half * 32 + term;
            const float *const at = from + (IS_A ? (size_t)row * K + k : (size_t)k * rows + row);
            x[i / 8][i % 8] = row < rows && k < K ? __ldg(at) : 0.0f;
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = first + i * 8, place = half % 2 * 4 + quarter;
            char *const boxes = to + ((size_t)(row / ROWS) * halves + half / 2 * 2) * (ROWS * 128);
            char *const big = boxes + row % ROWS * 128, *const small = big + ROWS * 128;
            if (IS_A) {
                float4 *const in = (float4 *)(half % 2 ? small : big);
                in[quarter * 2 ^ row % 8] = *(const float4 *)&x[i][0];
                in[quarter * 2 + 1 ^ row % 8] = *(const float4 *)&x[i][4];
            } else {
                uint4 *const b = (uint4 *)big + (place ^ row % 8);
                uint4 *const s = (uint4 *)small + (place ^ row % 8);
                uint4 one, two;
                split(x[i][0], x[i][1], one.x, two.x);
                split(x[i][2], x[i][3], one.y, two.y);
                split(x[i][4], x[i][5], one.z, two.z);
                split(x[i][6], x[i][7], one.w, two.w);
                *b = one, *s = two;
            }
        }
    }
}

static __device__ unsigned arrived;

// Makes ordinary stores visible to the copy engine.
static __device__ __forceinline__ void fence_for_copies()
{
    asm volatile("fence.proxy.async;" ::: "memory");
}

// -- Tiles ---------------------------------------------------------------------------------------

// A cluster has a pair of tiles, one below the other; this block has the upper or the lower one.
struct Tile { int row, column; };  // in tiles

static __device__ __forceinline__ int pairs_of_tiles(int M, int N)
{
    return (M + 2 * BM - 1) / (2 * BM) * ((N + BN - 1) / BN);
}

// Pairs that are computed at the same time are in a band of BAND rows of pairs, so they share rows
// of A and columns of B in the L2 cache.
static __device__ __forceinline__ Tile tile_of(int pair, int M, int N)
{
    const int down = (M + 2 * BM - 1) / (2 * BM), across = (N + BN - 1) / BN;
    const int band = pair / (BAND * across), place = pair % (BAND * across);
    const int height = min(BAND, down - band * BAND);
    return {(band * BAND + place % height) * 2 + (int)blockIdx.x % 2, place / height};
}

// -- Producer ------------------------------------------------------------------------------------

static __device__ __forceinline__ void produce(const CUtensorMap &A_map, const char *A_copy,
                                               const char *B_parts, int M, int N, int K,
                                               unsigned ring, unsigned full, unsigned empty)
{
    const int half = blockIdx.x % 2 * B_HALF, steps = steps_of(K);
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        const Tile tile = tile_of(pair, M, N);
        #pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            const unsigned stage = ring + slot * STAGE, barrier = full + 8 * slot;
            const char *const a = A_copy + (size_t)(tile.row * steps + step) * 2 * A_BOX;
            const char *const b = B_parts + (size_t)(tile.column * steps + step) * 2 * B_HALF;
            wait(empty + 8 * slot, phase ^ 1);
            arrive_and_expect(barrier, STAGE);
            if (K % 4 == 0) {
                fetch(stage, A_map, step * BK, tile.row * BM, barrier);
                fetch(stage + A_BOX, A_map, step * BK + 32, tile.row * BM, barrier);
            } else {
                fetch(stage, a, 2 * A_BOX, barrier);
            }
            fetch_for(3, stage + 2 * A_BOX + half, b + half, B_HALF, barrier);
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    }
}

// -- Consumers -----------------------------------------------------------------------------------

struct Parts { unsigned big[4], small[4]; };  // of 16 rows and 16 terms

// The row of A in place of row `i` of a product. Rows that lie in the same banks, four apart, are
// loaded at the same time, as each lane takes 16 bytes of one half of a row.
static __device__ __forceinline__ int row_of(int i) { return i % 2 * 4 + i / 2; }

// Splits what this lane multiplies: four terms of two rows, two for each half of a product's terms.
static __device__ __forceinline__ void load_A(Parts &a, unsigned from)
{
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        float4 x;
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(from + i * 1024)
                     : "memory");
        split(x.x, x.y, a.big[i], a.small[i]);
        split(x.z, x.w, a.big[i + 2], a.small[i + 2]);
    }
}

// sum = (fresh ? 0 : sum) + a·b: 64×16 by 16×64.
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

// total += sum · factor.
static __device__ __forceinline__ void add(float (&total)[32], float (&rest)[32],
                                           const float (&sum)[32], float factor)
{
    #pragma unroll
    for (int i = 0; i < 32; ++i) {
        const float old = total[i];
        if (TOTAL_WORDS == 1) {
            total[i] = fmaf(sum[i], factor, old);
        } else {
            const float more = fmaf(sum[i], factor, rest[i]);
            total[i] += more;
            rest[i] = more - (total[i] - old);
        }
        change(total[i]);  // computed here, before the tensor cores write to `sum` again
    }
}

static __device__ __forceinline__ void write(const float (&total)[PIECES][32], float *C, int M,
                                             int N, int row, int column)
{
    #pragma unroll
    for (int i = 0; i < BN / 4; ++i) {
        const int r = row + i % 2 * 8, c = column + i / 2 * 8;
        const float left = total[i / 16][i % 16 * 2], right = total[i / 16][i % 16 * 2 + 1];
        float *const to = C + (size_t)r * N + c;
        if (r < M && N % 2 == 0 && c < N)
            *(float2 *)to = make_float2(left, right);
        if (r < M && N % 2 == 1 && c < N)
            to[0] = left;
        if (r < M && N % 2 == 1 && c + 1 < N)
            to[1] = right;
    }
}

// The warp arrives once at the same barrier in each block of the cluster.
static __device__ __forceinline__ void arrive_in_both(unsigned barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 < 2)
        arrive_in(threadIdx.x % 32, barrier);
}

static __device__ __forceinline__ void consume(float *C, int M, int N, int K, unsigned ring,
                                               unsigned full, unsigned empty)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4, lane = threadIdx.x % 32;
    const int steps = steps_of(K), row = row_of(lane / 4);
    const unsigned a_at = ring + (warp * 16 + row) * 128 + (lane % 4 ^ row) * 16;
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        float total[PIECES][32], rest[PIECES][32], large[32], little[32];
        #pragma unroll
        for (int i = 0; i < BN / 2; ++i)
            total[i / 32][i % 32] = rest[i / 32][i % 32] = 0.0f;

        Parts a[BK / 16];
        unsigned used = 0;  // the barrier of the slot before
        #pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            wait_for_products<0>(little);
            if (step > 0)
                arrive_in_both(used);
            wait(full + 8 * slot, phase);
            #pragma unroll
            for (int piece = 0; piece < PIECES; ++piece) {
                const uint64_t b_big = rows_at(ring + slot * STAGE + 2 * A_BOX + piece * 64 * 128);
                const uint64_t b_small = b_big + (B_HALF >> 4);

                // Products are in flight at all times: the big ones while small ones are added ...
                if (piece > 0)
                    begin_products();
                #pragma unroll
                for (int j = 0; j < BK / 16; ++j) {
                    if (piece == 0) {
                        load_A(a[j], ((a_at + slot * STAGE) ^ (j % 2 * 64)) + j / 2 * A_BOX);
                        begin_products();
                    }
                    multiply(large, a[j].big, b_big + 2 * j, j == 0);
                }
                end_products();
                wait_for_products<1>(little);
                if (piece > 0 || step > 0)
                    add(total[(piece + PIECES - 1) % PIECES], rest[(piece + PIECES - 1) % PIECES],
                        little, 1.0f / 2048);

                // ... and vice versa.
                begin_products();
                #pragma unroll
                for (int j = 0; j < BK / 16; ++j) {
                    multiply(little, a[j].small, b_big + 2 * j, j == 0);
                    multiply(little, a[j].big, b_small + 2 * j, false);
                }
                end_products();
                wait_for_products<1>(large);
                add(total[piece], rest[piece], large, 1.0f);
            }
            used = empty + 8 * slot;
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
        wait_for_products<0>(little);
        arrive_in_both(used);
        add(total[PIECES - 1], rest[PIECES - 1], little, 1.0f / 2048);

        const Tile tile = tile_of(pair, M, N);
        write(total, C, M, N, tile.row * BM + warp * 16 + row, tile.column * BN + lane % 4 * 2);
    }
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(384, 1)
fp16x3(const CUtensorMap __grid_constant__ A_map, const float *A, const float *B, float *C,
       char *workspace, int M, int N, int K)
{
    // The ring of stages starts at a multiple of 1,024 bytes. Two barriers per stage follow it.
    extern __shared__ char shared[];
    const unsigned ring = ((unsigned)__cvta_generic_to_shared(shared) + 1023) / 1024 * 1024;
    const unsigned full = ring + STAGES * STAGE, empty = full + 8 * STAGES;
    const int down = (M + 2 * BM - 1) / (2 * BM) * 2, across = (N + BN - 1) / BN;
    char *const B_parts = workspace + (size_t)down * steps_of(K) * 2 * A_BOX;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            expect_arrivals(full + 8 * stage, 1);
            expect_arrivals(empty + 8 * stage, 16);  // eight warps in each of two blocks
        }
        publish_barriers();
    }
    if (K % 4 != 0)
        pack<BM, true>(A, M, down, K, workspace);
    pack<BN, false>(B, N, across, K, B_parts);
    fence_for_copies();
    __syncthreads();
    synchronize_cluster();

    // Registers move from the producer's threads to those that multiply.
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) {
            meet_all_blocks(arrived);
            fence_for_copies();
            produce(A_map, workspace, B_parts, M, N, K, ring, full, empty);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume(C, M, N, K, ring, full, empty);
    }

    // No block exits while the other may still send to it or report empty stages.
    __syncwarp();
    synchronize_cluster();
}
