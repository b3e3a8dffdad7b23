// /// matbench
// name = "tf32-wgmma"
// summary = "float32 read as TF32 by Hopper's tensor cores: B passes through registers, C is transposed"
// group = "gallery"
// previous = "bf16-wgmma"
// requires = ["cuda", "sm_90a"]
// precision = "tf32"
// args = ["tensor_map(A, BM, 32)", "tensor_map(B, 32, 32)", "A", "B", "C", "M", "N", "K"]
// [sweep]
// BM = [64, 128]
// BAND = [8]
// [tune]
// BAND = [1, 2, 4, 8, 16]
// [launch]
// where = ["max_shared_bytes_per_block >= 197760"]
// block = ["128 + 2 * BM"]
// grid = ["2 * min(multiprocessors // 2, ceil_div(N, 2 * BM) * ceil_div(M, 2 * BM))"]
// shared_bytes = "197760"
// [model]
// global_loads = "M * N * K / (2 * BM) + M * N * K / (2 * BM)"
// ///

// Adds: TF32. The tensor cores read the upper 19 bits of a float32: the exponent of float32 and 11
//   bits of significand. They want both factors with K running fastest, if they come from shared
//   memory; for 16-bit numbers alone they transpose. But B is stored by rows, so K runs slowest.
// Predicted: at most 535 TFLOP/s at 1.98 GHz, half as many as with bfloat16.
//
// - The first factor of wgmma may be in registers, where every lane can fetch any element. So the
//   kernel computes Cᵀ = Bᵀ·Aᵀ: 64 columns of B times BN rows of A, which K runs fastest in.
// - A lane holds elements of two columns of B, eight apart, and of two k, four apart. Which columns
//   these are is free, as long as C is written accordingly: they are neighbours, so one load of 8
//   bytes fetches both. A swizzled row of 32 columns lies in all banks. So that the 16 lanes which are
//   served at a time meet all of them, lanes of odd rows fetch their upper k first.
// - Each wgmma is a group of its own. A lane overwrites what it holds for one as soon as that has
//   ended, while three more are in flight.
// - Roles of rows and columns are swapped in the ring too: a pair of blocks, side by side, needs the
//   same rows of A.
//
// ERROR. The tensor cores cut off the last 13 bits of what they read. B is rounded on its way, which
// costs nothing; A is not, since it goes from global memory to the tensor cores without passing
// through registers. If all terms are positive, the result is 0.04% too small (0.07% without
// rounding B). The error of cuBLAS is a tenth of that, as if it rounded both. Rounding A too would take a
// second pass over each stage, for which shared memory has no time: the products read 64 bytes per
// cycle of it, the copy engine writes 48, and the lanes read 16, of 128 that it can deliver.
//
// TMA requires rows that start at multiples of 16 bytes. If they do not (K or N not a multiple of
// 4), the producer's threads copy value by value: correct, but slow.

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128  // columns of B, which take the place of rows
#endif
#define BN (2 * BM)  // rows of A, which take that of columns
#define BK 32
#define CONSUMERS (BM / 64)  // those that multiply
#define BOX_BYTES (BK * 128)  // 32 columns of B
#define B_BYTES (BM / 32 * BOX_BYTES)
#define STAGE_BYTES (B_BYTES + BN * 128)
#define STAGES (196608 / STAGE_BYTES)
#include "ring.cuh"

// One thread: it fetches the block's columns of B, and half of its rows of A for both blocks.
static __device__ __forceinline__ void produce(const CUtensorMap &A_map, const CUtensorMap &B_map,
                                               Ring ring, int M, int N, int K)
{
    const int half = blockIdx.x % 2 * (BN / 2);
    fill_stages(ring, N, M, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        arrive_and_expect(barrier, STAGE_BYTES);
        #pragma unroll
        for (int box = 0; box < BM / 32; ++box)
            fetch(stage + box * BOX_BYTES, B_map, tile.row + box * 32, k, barrier);
        fetch_for(3, stage + B_BYTES + half * 128, A_map, k, tile.column + half, barrier);
    });
}

// 128 threads, where rows do not start at multiples of 16 bytes, which the engine requires.
static __device__ __forceinline__ void produce_by_hand(const float *A, const float *B, Ring ring,
                                                       int M, int N, int K)
{
    const int place = place_in_row<float>();
    fill_stages(ring, N, M, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        char *const to = (char *)__cvta_shared_to_generic(stage);
        #pragma unroll 1
        for (int box = 0; box < BM / 32; ++box) {
            const int column = tile.row + box * 32 + place;
            copy_rows(to + box * BOX_BYTES, B + (size_t)k * N + column, N, BK,
                      column < N ? K - k : 0);
        }
        copy_rows(to + B_BYTES, A + (size_t)tile.column * K + k + place, K, BN,
                  k + place < K ? M - tile.column : 0);
        publish_stores();
        arrive(barrier);
    });
}

#if BM == 128
#define OPERANDS "{%128, %129, %130, %131}, %132, add, 1, 1"
#define IS_FRESH "%133"
#define PRODUCT "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {" NAMES_128 "}, "
#else
#define OPERANDS "{%64, %65, %66, %67}, %68, add, 1, 1"
#define IS_FRESH "%69"
#define PRODUCT "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {" NAMES_64 "}, "
#endif

// sum = (fresh ? 0 : sum) + b·a: 64×8 numbers in registers by 8×BN in shared memory.
static __device__ __forceinline__ void multiply(float (&sum)[BN / 2], const unsigned (&b)[4],
                                                uint64_t a, bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " IS_FRESH ", 0;\n"
                 PRODUCT OPERANDS ";\n"
                 "}" : SUMS("+f")
                 : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "l"(a), "r"((unsigned)fresh));
}

// Two neighbouring columns of one k.
static __device__ __forceinline__ uint2 load(unsigned from)
{
    uint2 two;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(two.x), "=r"(two.y) : "r"(from) : "memory");
    return two;
}

// A float32 rounded to TF32, ties away from zero, but for the last 13 bits.
static __device__ __forceinline__ unsigned rounded(unsigned bits)
{
    return bits + 0x1000;
}

// Writes the sums of a lane: pairs of neighbouring columns.
static __device__ __forceinline__ void write(const float (&sum)[BN / 2], float *C, int M, int N,
                                             int row, int column)
{
    #pragma unroll
    for (int i = 0; i < BN / 4; ++i) {
        const int r = row + i / 2 * 8 + i % 2, at = i / 2 * 4 + i % 2;
        float *const to = C + (size_t)r * N + column;
        if (r < M && N % 2 == 0 && column < N)
            *(float2 *)to = make_float2(sum[at], sum[at + 2]);
        if (r < M && N % 2 == 1 && column < N)
            to[0] = sum[at];
        if (r < M && N % 2 == 1 && column + 1 < N)
            to[1] = sum[at + 2];
    }
}

static __device__ __forceinline__ void consume(Ring ring, float *C, int M, int N, int K)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4, lane = threadIdx.x % 32;
    const int g = lane / 4, t = lane % 4;
    const bool is_odd = g % 2;

    // Which two of the warp's 16 columns, and where they are for the first k and the second.
    const int column = warp * 16 + (g / 4 * 4 + is_odd * 2 + g / 2 % 2) * 2;
    const unsigned row = t + is_odd * 4;
    const unsigned first = column / 32 * BOX_BYTES + row * 128 + (column % 32 * 4 ^ row * 16);
    const unsigned second = column / 32 * BOX_BYTES + (row ^ 4) * 128
        + (column % 32 * 4 ^ (row ^ 4) * 16);

    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(N, M); pair += gridDim.x / 2) {
        float sum[BN / 2];
        unsigned b[BK / 8][4] = {};
        unsigned previous = 0;  // the barrier `empty` of the step before
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            wait(ring.full(), ring.phase);
            const uint64_t a = descriptor_of(ring.stage() + B_BYTES);
            #pragma unroll
            for (int j = 0; j < BK / 8; ++j) {
                wait_for_products<BK / 8 - 1>(b[j]);
                const uint2 one = load(ring.stage() + first + j * 1024);
                const uint2 other = load(ring.stage() + second + j * 1024);
                b[j][0] = rounded(is_odd ? other.x : one.x);
                b[j][1] = rounded(is_odd ? other.y : one.y);
                b[j][2] = rounded(is_odd ? one.x : other.x);
                b[j][3] = rounded(is_odd ? one.y : other.y);
                begin_products();
                multiply(sum, b[j], a + j * (32 >> 4), k == 0 && j == 0);
                end_products();
            }
            // The previous step is done: its stage may be filled again.
            if (k > 0)
                report(previous);
            previous = ring.empty();
            ring.next();
        }
        wait_for_products<0>(sum);
        report(previous);
        const Tile tile = tile_of(pair, N, M);
        write(sum, C, M, N, tile.column + t * 2, tile.row + column);
    }
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
tf32_wgmma(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
           const float *A, const float *B, float *C, int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring(shared, 0);
    const bool has_maps = K % 4 == 0 && N % 4 == 0;
    ring.set_up(has_maps ? 1 : 128, A_map, B_map);
    divide_work<56, 224>(
        [&] {
            if (!has_maps)
                produce_by_hand(A, B, ring, M, N, K);
            else if (threadIdx.x == 0)
                produce(A_map, B_map, ring, M, N, K);
        },
        [&] { consume(ring, C, M, N, K); });
}
