// /// matbench
// name = "tf32x3"
// summary = "float32 accuracy from TF32 tensor cores: two parts per number, three products"
// group = "gallery"
// previous = "pipelined"
// requires = ["cuda", "sm_90a"]
// error_constant = 8.0
// args = ["tensor_map(A, 128, 16)", "A", "B", "C", "workspace", "M", "N", "K"]
// [sweep]
// BN = [64, 256]
// [tune]
// BN = [64, 128, 192, 256]
// [launch]
// where = ["BN % 64 == 0", "BN <= 256", "max_shared_bytes_per_block >= 197760"]
// block = [384]
// grid = ["multiprocessors // 2 * 2"]
// shared_bytes = "197760"
// workspace_bytes = """(ceil_div(K, 32) * 256
//                      * (ceil_div(N, BN) * BN + (K % 4 > 0) * ceil_div(M, 256) * 128))"""
// [model]
// global_loads = "K * N + M * N * K / BN + M * N * K / 128"
// global_stores = "2 * K * N + M * N"
// tensor_operations = "6 * M * N * K"
// arithmetic = "3 tf32"
// ///

// Adds: tensor cores. Each float32 is split into two TF32 parts, and three products of parts
//   replace one product. Nearly all of the code is new.
// Predicted: for n = 4096, 772 us for 4.1e11 operations if the tensor cores never wait (1.98 GHz),
//   and 47 us to read the 67 MB of B and write 134 MB of parts: at most 168 TFLOP/s. If they
//   multiply as fast as for cuBLAS with TF32 inputs, 132.
// Measured: 133 TFLOP/s at n = 4096, 261% of cuBLAS (H200)
//   128 TFLOP/s at n = 8192, 251% of cuBLAS (H200)
//
// The method is that of H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor
// Cores while surpassing the FP32 theoretical peak performance", 2022, arXiv 2203.03341.
//
// SPLITTING. Tensor cores read only 11 bits of each number's significand. So each value is split
// into two TF32 numbers, x = big + small: big is x rounded to 11 bits, and small is the rest, cut
// to 11 bits. Together they hold 23 of float32's 24 bits. Then
//
//     a·b = big·big + big·small + small·big + (small·small, up to 2⁻²² of a·b: omitted)
//
// SUMMING. A tensor core truncates when it adds: it cuts off the bits that do not fit, always
// towards zero, and in a long sum those errors accumulate. So it sums only 16 terms (K) at a time,
// starting from zero, and each such sum is added to the total by an ordinary, rounded addition.
//
// PACKING. wgmma can take its first factor from registers, but its second only from shared memory,
// for TF32 with K running fastest. B is not stored like that. If each block transposed and split
// what it needs, that would be done M / 128 times. So all blocks first split B once and write the
// parts to the workspace, laid out as the tensor cores read them. Then they meet, and from there on
// one thread per block fetches whole tiles with the copy engine. A is fetched as it is and split on
// its way to registers, which takes few instructions. If M is small, packing takes longer than the
// products.
//
// ROLES. There is one block per multiprocessor, and it computes one tile of 128×BN after the other.
// - Two warpgroups of four warps are consumers, with 64×BN elements each. While the tensor cores
//   compute one sum of 64×64, the consumer adds the one before to its total.
// - One thread of a third warpgroup, the producer, keeps a ring of stages in shared memory full.
// The two blocks of a cluster, one below the other, need the same columns of B: each fetches half
// of them for both.
//
// RANGE. Correct for all finite numbers below 2¹²⁷ whose products do not underflow: 2⁻²⁴ of a value
// must still be a float32. An infinity becomes NaN.
//
// ERROR. The split loses up to 2⁻²³ of either factor, and the omitted product is up to 2⁻²² of a
// product. Each product may therefore be off by eight times 2⁻²⁴ before it is added, which is
// error_constant. The tensor core's last addition cuts off up to 2⁻²³ more. In a sum such errors
// average out, and the total has a sixteenth as many additions to round as a plain float32 sum.

#include <cuda.h>
#include <cstdint>

#ifndef BN
#define BN 256
#endif
#define BM 128
#define BK 16                        // terms of a step
#define A_BYTES (BM * BK * 4)        // of a stage
#define B_BYTES (BN * 128)           // a row of 128 bytes holds 16 big parts, then the small ones
#define STAGE (A_BYTES + B_BYTES)
#define STAGES (196608 / STAGE)
#define BAND 8                       // pairs of rows of tiles

// Rounded up to pairs of steps.
static __device__ __forceinline__ int steps_of(int K) { return (K + 2 * BK - 1) / (2 * BK) * 2; }

// -- Splitting -----------------------------------------------------------------------------------

// `big` is rounded to nearest, ties away from zero. The rest has 12 bits; the last is cut off.
static __device__ __forceinline__ void split(float x, unsigned &big, unsigned &small)
{
    big = (__float_as_uint(x) + 0x1000) & 0xffffe000;
    small = __float_as_uint(x - __uint_as_float(big)) & 0xffffe000;
}

// Splits B. For each tile and step, BN columns become rows of 128 bytes. The index of each 16 bytes
// is XORed with the row's index modulo 8, so that eight rows lie in different banks. Beyond the
// matrix there are zeros. A warp takes 32 columns at a time, a lane four of them.
static __device__ __forceinline__ void split_B(const float *B, int N, int K, char *to)
{
    const int quarter = threadIdx.x % 32 / 8, steps = steps_of(K);
    const int groups = (N + BN - 1) / BN * (BN / 32), warps = gridDim.x * (blockDim.x / 32);
    #pragma unroll 1
    for (int job = (blockIdx.x * blockDim.x + threadIdx.x) / 32; job < groups * steps;
         job += warps) {
        const int step = job / groups, first = job % groups * 32 + threadIdx.x % 8;
        float x[4][4];
        #pragma unroll
        for (int i = 0; i < 16; ++i) {
            const int column = first + i / 4 * 8, k = step * BK + i % 4 * 4 + quarter;
            x[i / 4][i % 4] = column < N && k < K ? __ldg(B + (size_t)k * N + column) : 0.0f;
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int column = first + i * 8;
            char *const row = to + ((size_t)(column / BN * steps + step) * BN + column % BN) * 128;
            uint4 big, small;
            split(x[i][0], big.x, small.x);
            split(x[i][1], big.y, small.y);
            split(x[i][2], big.z, small.z);
            split(x[i][3], big.w, small.w);
            *(uint4 *)(row + (quarter ^ (column % 8)) * 16) = big;
            *(uint4 *)(row + ((quarter + 4) ^ (column % 8)) * 16) = small;
        }
    }
}

// Where 16 bytes of a row of A are in shared memory: as a tensor map delivers them.
static __device__ __forceinline__ int place_in_A(int row, int sixteen)
{
    return row * BK * 4 + (sixteen ^ (row / 2 % 4)) * 16;
}

// Copies A to tiles laid out in the same way, if its rows do not start at multiples of 16 bytes,
// which a tensor map requires.
static __device__ __forceinline__ void copy_A(const float *A, int M, int K, char *to)
{
    const int steps = steps_of(K), fours = steps * (BK / 4);
    const size_t count = (size_t)(M + 2 * BM - 1) / (2 * BM) * (2 * BM) * fours;
    #pragma unroll 2
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const int row = i / fours, k = i % fours * 4;
        float x[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            x[j] = row < M && k + j < K ? __ldg(A + (size_t)row * K + k + j) : 0.0f;
        char *const tile = to + (size_t)(row / BM * steps + k / BK) * A_BYTES;
        *(float4 *)(tile + place_in_A(row % BM, k % BK / 4)) = make_float4(x[0], x[1], x[2], x[3]);
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

// Fetches a box of the matrix.
static __device__ __forceinline__ void fetch(unsigned to, const CUtensorMap &map, int column,
                                             int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

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

static __device__ __forceinline__ void produce(const CUtensorMap &A_map, const char *A_copy,
                                               const char *B_parts, int M, int N, int K,
                                               unsigned ring, unsigned full, unsigned empty)
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
            if (K % 4 == 0)
                fetch(stage, A_map, step * BK, tile.row * BM, barrier);
            else
                fetch(stage, A_copy + (size_t)a * A_BYTES, A_BYTES, barrier);
            fetch_for_both(stage + A_BYTES + half, B_parts + (size_t)b * B_BYTES + half,
                           B_BYTES / 2, barrier);
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    }
}

// -- Consumers -----------------------------------------------------------------------------------

struct Parts { unsigned big[2][4], small[2][4]; };  // of 16 rows, for two products

// Splits what this lane multiplies: of two rows the terms 4i to 4i+3, where i is the lane modulo 4.
// A product takes two of the four. split_B puts B's terms into the same order.
static __device__ __forceinline__ void load(Parts &a, unsigned from)
{
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        float4 x;
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                     : "r"(from + i * place_in_A(8, 0)) : "memory");
        split(x.x, a.big[0][i], a.small[0][i]);
        split(x.y, a.big[0][i + 2], a.small[0][i + 2]);
        split(x.z, a.big[1][i], a.small[1][i]);
        split(x.w, a.big[1][i + 2], a.small[1][i + 2]);
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

// sum = (fresh ? 0 : sum) + a·b: 64×8 by 8×64.
static __device__ __forceinline__ void multiply(float (&sum)[32], const unsigned (&a)[4],
                                                uint64_t b, bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, add, 1, 1;\n"
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
    const int steps = steps_of(K), row = warp * 16 + lane / 4;
    const unsigned a_at = ring + place_in_A(row, lane % 4);
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        float total[BN / 64][32], sum[2][32];
        #pragma unroll
        for (int i = 0; i < BN / 2; ++i)
            total[i / 32][i % 32] = 0.0f;

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

                // The small products first: while the sum is small, little is truncated.
                begin_products(a);
                #pragma unroll
                for (int j = 0; j < 2; ++j) {
                    multiply(now, a.small[j], b_big + 2 * j, j == 0);
                    multiply(now, a.big[j], b_small + 2 * j, false);
                }
                #pragma unroll
                for (int j = 0; j < 2; ++j)
                    multiply(now, a.big[j], b_big + 2 * j, false);
                end_products();

                wait_for_products<1>(before);
                if (piece == BN / 64 - 1) {
                    used = empty + 8 * slot;
                    if (++slot == STAGES)
                        slot = 0, phase ^= 1;
                    if (half == 0 || step + 2 < steps) {
                        wait(full + 8 * slot, phase);
                        load(parts[1 - half], a_at + slot * STAGE);
                    }
                }
                if (i > 0 || step > 0) {
                    if (piece == 0)
                        arrive_in_both(done);
                    #pragma unroll
                    for (int j = 0; j < 32; ++j)
                        total[(i + BN / 64 - 1) % (BN / 64)][j] += before[j];
                }
            }
        wait_for_products<0>(sum[1]);
        arrive_in_both(used);
        #pragma unroll
        for (int j = 0; j < 32; ++j)
            total[BN / 64 - 1][j] += sum[1][j];

        const Tile tile = tile_of(pair, M, N);
        write(total, C, M, N, tile.row * BM + row, tile.column * BN + lane % 4 * 2);
    }
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(384, 1)
tf32x3(const CUtensorMap __grid_constant__ A_map, const float *A, const float *B, float *C,
       char *workspace, int M, int N, int K)
{
    // The ring of stages starts at a multiple of 1,024 bytes. Two barriers per stage follow it.
    extern __shared__ char shared[];
    const unsigned ring = ((unsigned)__cvta_generic_to_shared(shared) + 1023) / 1024 * 1024;
    const unsigned full = ring + STAGES * STAGE, empty = full + 8 * STAGES;
    char *const A_copy = workspace + (size_t)((N + BN - 1) / BN) * steps_of(K) * B_BYTES;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            expect_arrivals(full + 8 * stage, 1);
            expect_arrivals(empty + 8 * stage, 16);  // eight warps in each of two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    split_B(B, N, K, workspace);
    if (K % 4 != 0)
        copy_A(A, M, K, A_copy);
    fence_for_copies();
    synchronize_cluster();

    // Registers move from the producer's threads to those that multiply.
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) {
            meet_all_blocks();
            fence_for_copies();
            produce(A_map, A_copy, workspace, M, N, K, ring, full, empty);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume(C, M, N, K, ring, full, empty);
    }

    // No block exits while the other may still send to it or report empty stages.
    __syncwarp();
    synchronize_cluster();
}
