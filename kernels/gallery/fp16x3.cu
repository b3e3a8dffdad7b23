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

#include <cuda_fp16.h>
#include <cstdint>

#ifndef BN
#define BN 256
#endif
#ifndef TOTAL_WORDS
#define TOTAL_WORDS 1
#endif
#define BM 128
#define BK 32                        // terms of a step
#define A_BYTES (BM * 128)           // a row of 128 bytes holds 32 big parts, then the small ones
#define B_BYTES (BN * 128)
#define STAGE (A_BYTES + B_BYTES)
#define STAGES (196608 / STAGE)
#define BAND 8                       // pairs of rows of tiles

// Rounded up to pairs of steps.
static __device__ __forceinline__ int steps_of(int K) { return (K + 2 * BK - 1) / (2 * BK) * 2; }

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

// Splits A, or B with its columns as rows. For each tile of ROWS and each step, the parts become
// rows of 128 bytes. The index of each 16 bytes is XORed with the row's index modulo 8, so that
// eight rows lie in different banks. Beyond the matrix there are zeros. A warp takes 32 rows at a
// time, a lane four of them; the next warp takes what follows in memory.
template <int ROWS, bool IS_A>
static __device__ __forceinline__ void split_all(const float *from, int rows, int tiles, int K,
                                                 char *to)
{
    const int quarter = threadIdx.x % 32 / 8, steps = steps_of(K);
    const int groups = tiles * (ROWS / 32), warps = gridDim.x * (blockDim.x / 32);
    #pragma unroll 1
    for (int job = (blockIdx.x * blockDim.x + threadIdx.x) / 32; job < groups * steps;
         job += warps) {
        const int step = IS_A ? job % steps : job / groups;
        const int first = (IS_A ? job / steps : job % groups) * 32 + threadIdx.x % 8;
        float x[4][8];
        #pragma unroll
        for (int i = 0; i < 32; ++i) {
            const int row = first + i / 8 * 8, k = step * BK + quarter * 8 + i % 8;
            const float *const at = from + (IS_A ? (size_t)row * K + k : (size_t)k * rows + row);
            x[i / 8][i % 8] = row < rows && k < K ? __ldg(at) : 0.0f;
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = first + i * 8;
            const size_t tile = (size_t)(row / ROWS) * steps + step;
            char *const place = to + (tile * ROWS + row % ROWS) * 128;
            uint4 big, small;
            split(x[i][0], x[i][1], big.x, small.x);
            split(x[i][2], x[i][3], big.y, small.y);
            split(x[i][4], x[i][5], big.z, small.z);
            split(x[i][6], x[i][7], big.w, small.w);
            *(uint4 *)(place + (quarter ^ (row % 8)) * 16) = big;
            *(uint4 *)(place + ((quarter + 4) ^ (row % 8)) * 16) = small;
        }
    }
}

static __device__ unsigned arrived;

// Waits for all blocks, which must all be resident. Whatever `arrived` was, its uppermost bit
// changes when the last block arrives, so it need not be reset.
static __device__ __forceinline__ void meet_all_blocks()
{
    __threadfence();
    const unsigned before = atomicAdd(&arrived, blockIdx.x ? 1 : 0x80000000u - (gridDim.x - 1));
    unsigned now = before;
    for (int tries = 0; (before ^ now) < 0x80000000u; ++tries) {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(&arrived) : "memory");
        if (tries > 1 << 22)
            __trap();
    }
}

// Makes ordinary stores visible to the copy engine.
static __device__ __forceinline__ void fence_for_copies()
{
    asm volatile("fence.proxy.async;" ::: "memory");
}

// -- Barriers in shared memory -------------------------------------------------------------------

static __device__ __forceinline__ void expect_arrivals(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

// Arrives, and announces the bytes that must arrive too.
static __device__ __forceinline__ void arrive_and_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

// The warp arrives once at the same barrier in each block of the cluster.
static __device__ __forceinline__ void arrive_in_both(unsigned barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 < 2)
        asm volatile("{\n"
                     ".reg .b32 there;\n"
                     "mapa.shared::cluster.u32 there, %0, %1;\n"
                     "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                     "}" :: "r"(barrier), "r"(threadIdx.x % 32) : "memory");
}

// Waits for the end of the barrier's even (0) or odd (1) phase; traps instead of waiting for ever.
static __device__ __forceinline__ void wait(unsigned barrier, unsigned phase)
{
    unsigned done = 0;
    for (int tries = 0; !done; ++tries) {
        asm volatile("{\n"
                     ".reg .pred done;\n"
                     "mbarrier.try_wait.parity.shared.b64 done, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, done;\n"
                     "}" : "=r"(done) : "r"(barrier), "r"(phase) : "memory");
        if (tries > 1 << 23)
            __trap();
    }
}

static __device__ __forceinline__ void synchronize_cluster()
{
    asm volatile("barrier.cluster.arrive.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::: "memory");
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

static __device__ __forceinline__ void fetch(unsigned to, const char *from, unsigned bytes,
                                             unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

// Fetches to both blocks of the cluster, same place; each block's barrier counts its bytes.
static __device__ __forceinline__ void fetch_for_both(unsigned to, const char *from, unsigned bytes,
                                                      unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier), "h"((short)3) : "memory");
}

static __device__ __forceinline__ void produce(const char *A_parts, const char *B_parts, int M,
                                               int N, int K, unsigned ring, unsigned full,
                                               unsigned empty)
{
    const int half = blockIdx.x % 2 * (B_BYTES / 2), steps = steps_of(K);
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        const Tile tile = tile_of(pair, M, N);
        #pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            const unsigned stage = ring + slot * STAGE, barrier = full + 8 * slot;
            const int a = tile.row * steps + step, b = tile.column * steps + step;
            wait(empty + 8 * slot, phase ^ 1);
            arrive_and_expect(barrier, STAGE);
            fetch(stage, A_parts + (size_t)a * A_BYTES, A_BYTES, barrier);
            fetch_for_both(stage + A_BYTES + half, B_parts + (size_t)b * B_BYTES + half,
                           B_BYTES / 2, barrier);
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    }
}

// -- Consumers -----------------------------------------------------------------------------------

struct Parts { unsigned big[2][4], small[2][4]; };  // of 16 rows, for two products

static __device__ __forceinline__ void load(unsigned (&a)[4], unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(from) : "memory");
}

static __device__ __forceinline__ void load(Parts &a, unsigned from)
{
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        load(a.big[i], from ^ (i * 32));
        load(a.small[i], from ^ (64 + i * 32));
    }
}

// Describes rows of 128 bytes, packed as above. In a cluster the upper bits of an address name the
// block; in a descriptor they would mean something else, so they are removed.
static __device__ __forceinline__ uint64_t rows_at(unsigned address)
{
    return (uint64_t)(address % (1 << 18) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32
        | (uint64_t)1 << 62;
}

#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SUM FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24), FOUR(28)

// sum = (fresh ? 0 : sum) + a·b: 64×16 by 16×64.
static __device__ __forceinline__ void multiply(float (&sum)[32], const unsigned (&a)[4],
                                                uint64_t b, bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, add, 1, 1, 0;\n"
                 "}"
                 : SUM : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((unsigned)fresh));
}

// Makes what was written to registers visible to the products that follow.
static __device__ __forceinline__ void begin_products(Parts &a)
{
    #pragma unroll
    for (int i = 0; i < 8; ++i)
        asm volatile("" : "+r"(a.big[i / 4][i % 4]), "+r"(a.small[i / 4][i % 4]) :: "memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void end_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most LATER groups of products are in flight.
template <int LATER>
static __device__ __forceinline__ void wait_for_products(float (&sum)[32])
{
    asm volatile("wgmma.wait_group.sync.aligned %32;" : SUM : "n"(LATER) : "memory");
}

static __device__ __forceinline__ void scale(float (&sum)[32])
{
    #pragma unroll
    for (int i = 0; i < 32; ++i)
        sum[i] *= 1.0f / 2048;
    // The product is computed here, before the tensor cores add to it.
    asm volatile("" : SUM);
}

static __device__ __forceinline__ void add(float (&total)[32], float (&rest)[32],
                                           const float (&sum)[32])
{
    #pragma unroll
    for (int i = 0; i < 32; ++i) {
        const float more = TOTAL_WORDS == 2 ? sum[i] + rest[i] : sum[i], old = total[i];
        total[i] += more;
        if (TOTAL_WORDS == 2)
            rest[i] = more - (total[i] - old);
    }
}

static __device__ __forceinline__ void write(const float (&total)[BN / 64][32], float *C, int M,
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

static __device__ __forceinline__ void consume(float *C, int M, int N, int K, unsigned ring,
                                               unsigned full, unsigned empty)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4, lane = threadIdx.x % 32;
    const int steps = steps_of(K);
    // Every eight lanes give the addresses of eight rows, 16 bytes each.
    const unsigned a_at = ring + (warp * 16 + lane % 16) * 128 + ((lane / 16) ^ (lane % 8)) * 16;
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        float total[BN / 64][32], rest[BN / 64][32], sum[2][32];
        #pragma unroll
        for (int i = 0; i < BN / 2; ++i)
            total[i / 32][i % 32] = rest[i / 32][i % 32] = 0.0f;

        Parts parts[2];
        wait(full + 8 * slot, phase);
        load(parts[0], a_at + slot * STAGE);
        unsigned used = 0;  // the barrier of the slot before
        #pragma unroll 1
        for (int step = 0; step < steps; step += 2)
            #pragma unroll
            for (int i = 0; i < BN / 32; ++i) {
                // The first half of these sums is for this step, the second for the next.
                const int half = i / (BN / 64), piece = i % (BN / 64);
                const uint64_t b_big = rows_at(ring + slot * STAGE + A_BYTES + piece * 64 * 128);
                const uint64_t b_small = b_big + (64 >> 4);
                float (&now)[32] = sum[i % 2], (&before)[32] = sum[(i + 1) % 2];
                Parts &a = parts[half];
                const unsigned done = used;

                begin_products(a);
                #pragma unroll
                for (int j = 0; j < 2; ++j) {
                    multiply(now, a.small[j], b_big + 2 * j, j == 0);
                    multiply(now, a.big[j], b_small + 2 * j, false);
                }
                end_products();

                wait_for_products<1>(before);
                const int last = (i + BN / 64 - 1) % (BN / 64);
                if (i > 0 || step > 0) {
                    if (piece == 0)
                        arrive_in_both(done);
                    add(total[last], rest[last], before);
                }

                wait_for_products<0>(now);
                scale(now);
                begin_products(a);
                #pragma unroll
                for (int j = 0; j < 2; ++j)
                    multiply(now, a.big[j], b_big + 2 * j, false);
                end_products();

                if (piece == BN / 64 - 1) {
                    used = empty + 8 * slot;
                    if (++slot == STAGES)
                        slot = 0, phase ^= 1;
                    if (half == 0 || step + 2 < steps) {
                        wait(full + 8 * slot, phase);
                        load(parts[1 - half], a_at + slot * STAGE);
                    }
                }
            }
        wait_for_products<0>(sum[1]);
        arrive_in_both(used);
        add(total[BN / 64 - 1], rest[BN / 64 - 1], sum[1]);

        const Tile tile = tile_of(pair, M, N);
        write(total, C, M, N, tile.row * BM + warp * 16 + lane / 4,
              tile.column * BN + lane % 4 * 2);
    }
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(384, 1)
fp16x3(const float *A, const float *B, float *C, char *workspace, int M, int N, int K)
{
    // The ring of stages starts at a multiple of 1,024 bytes. Two barriers per stage follow it.
    extern __shared__ char shared[];
    const unsigned ring = ((unsigned)__cvta_generic_to_shared(shared) + 1023) / 1024 * 1024;
    const unsigned full = ring + STAGES * STAGE, empty = full + 8 * STAGES;
    const int down = (M + 2 * BM - 1) / (2 * BM) * 2, across = (N + BN - 1) / BN;
    char *const B_parts = workspace + (size_t)down * steps_of(K) * A_BYTES;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            expect_arrivals(full + 8 * stage, 1);
            expect_arrivals(empty + 8 * stage, 16);  // eight warps in each of two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    split_all<BM, true>(A, M, down, K, workspace);
    split_all<BN, false>(B, N, across, K, B_parts);
    fence_for_copies();
    synchronize_cluster();

    // Registers move from the producer's threads to those that multiply.
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) {
            meet_all_blocks();
            fence_for_copies();
            produce(workspace, B_parts, M, N, K, ring, full, empty);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume(C, M, N, K, ring, full, empty);
    }

    // No block exits while the other may still send to it or report empty stages.
    __syncwarp();
    synchronize_cluster();
}
