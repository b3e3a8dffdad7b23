// /// matbench
// name = "fp16x3"
// summary = "float32 accuracy from float16 tensor cores: two parts per number, one scaled"
// group = "ladder"
// previous = "tf32x3"
// requires = ["cuda", "sm_90a"]
// error_constant = 8.0
// exponents = [-12, 15]
// [sweep]
// BM = [64, 256]
// [tune]
// BM = [64, 128, 192, 256]
// [launch]
// where = ["BM % 64 == 0", "BM <= 256",
//          "4 * (128 * BM + 17408) + 1088 <= max_shared_bytes_per_block"]
// block = [512]
// grid = ["ceil_div(N, 128)", "ceil_div(M, BM)"]
// shared_bytes = "4 * (128 * BM + 17408) + 1088"
// [model]
// global_loads = "M * N * K / 128 + M * N * K / BM"
// tensor_operations = "6 * M * N * K"
// arithmetic = "3 float16"
// ///

// Adds: float16 parts in place of TF32 parts. Tensor cores multiply them at twice the rate.
// Predicted: at most 357 TFLOP/s if the tensor cores never wait; a third of what cuBLAS reaches
//   with float16 inputs is 263.
// Measured: 158 TFLOP/s at n = 4096, 310% of cuBLAS (H200)
//
// float16 has 11 bits like TF32, but a small exponent range: for a number below 1/8 the small part
// would lose bits. So the small part is multiplied by 2¹¹ before it is rounded (H. Ootomo and
// R. Yokota, arXiv 2203.03341):
//
//     x = big + small · 2⁻¹¹      a·b = big·big + 2⁻¹¹ · (big·small + small·big)
//
// The small products are summed first. That sum is multiplied by 2⁻¹¹, which is exact, and the big
// products are added to it, 32 terms (K) at a time. A row of A in shared memory is 128 bytes long
// as in tf32x3: its 32 big parts, then the 32 small ones.
//
// RANGE. Correct for absolute values from 2⁻¹² to 65,504, float16's largest; larger values become
// infinite. Smaller values keep an absolute, not a relative, precision of 2⁻³⁶. That is as good as
// float32 if larger values are in the same sum, but not if a whole row or column is tiny. Scale
// such inputs first, or use tf32x3.

#include <cuda_fp16.h>
#include <cstdint>

#ifndef BM
#define BM 256
#endif
#define STAGES 4
#define BN 128
#define BK 32
#define BAND 8                     // rows of tiles in a band
#define PIECES (BM / 64)           // 64 rows of A at a time
#define B_WIDTH (BN + 4)           // so that every second row of B lies in different banks
#define A_BYTES (BM * BK * 4)      // a row holds its 32 big parts, then the small ones
#define STAGE (A_BYTES + 17408)    // B's 32 rows of 132 floats, to the next multiple of 1,024
#define A_FETCHES (BM / 32)        // of four values, by each thread of the producer

// -- Barriers in shared memory -------------------------------------------------------------------

static __device__ __forceinline__ void expect_arrivals(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Arrives when all copies that this thread has started are complete.
static __device__ __forceinline__ void arrive_after_copies(unsigned barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(barrier) : "memory");
}

// Waits for the end of the barrier's even (0) or odd (1) phase.
static __device__ __forceinline__ void wait(unsigned barrier, unsigned phase)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" :: "r"(barrier), "r"(phase) : "memory");
}

// -- Tensor cores --------------------------------------------------------------------------------

// Two values at a time, the first in the lower half.
static __device__ __forceinline__ void split(float x, float y, unsigned &big, unsigned &small)
{
    const __half2 rounded = __floats2half2_rn(x, y);
    const __half2 rest = __floats2half2_rn((x - __low2float(rounded)) * 2048.0f,
                                           (y - __high2float(rounded)) * 2048.0f);
    big = *(const unsigned *)&rounded;
    small = *(const unsigned *)&rest;
}

// Describes contiguous rows of 128 bytes, K running fastest. The index of each 16 bytes in its row
// is XORed with the row's index modulo 8, so that eight rows lie in different banks.
static __device__ __forceinline__ uint64_t rows_at(unsigned address)
{
    return (uint64_t)(address >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32
        | (uint64_t)1 << 62;
}

#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])

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
                 : FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24), FOUR(28)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((unsigned)fresh));
}

// Makes what was written to registers visible to the products that follow.
static __device__ __forceinline__ void begin_products(unsigned (&a)[2][4], unsigned (&b)[2][4],
                                                      float (&sum)[32])
{
    #pragma unroll
    for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(sum[i]) :: "memory");
    #pragma unroll
    for (int i = 0; i < 8; ++i)
        asm volatile("" : "+r"(a[i / 4][i % 4]), "+r"(b[i / 4][i % 4]) :: "memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void end_products(float (&sum)[32])
{
    asm volatile("wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;"
                 : FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24), FOUR(28)
                 :: "memory");
}

// -- Tiles ---------------------------------------------------------------------------------------

struct Tile { int row, column; };

// The tile of this block. Blocks that run at the same time have tiles in a band of BAND rows of
// tiles, so they share rows of A and columns of B in the L2 cache. That saves time and energy.
static __device__ __forceinline__ Tile tile_of_block()
{
    const int block = blockIdx.y * gridDim.x + blockIdx.x, whole = BAND * gridDim.x;
    const int band = block / whole, place = block % whole;
    const int height = min(BAND, gridDim.y - band * BAND);
    return {(band * BAND + place % height) * BM, place / height * BN};
}

// -- Producer ------------------------------------------------------------------------------------

// Starts to copy 4 or 16 bytes to shared memory; writes zeros if not `wanted`.
template <int BYTES>
static __device__ __forceinline__ void copy(unsigned to, const float *from, bool wanted)
{
    const int bytes = wanted ? BYTES : 0;
    if (BYTES == 4)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                     :: "r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

// Loads four values of a row of A, of which `left` are inside it; the others become zeros.
template <bool ALIGNED>
static __device__ __forceinline__ float4 fetch(const float *from, int left)
{
    float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (ALIGNED)
        asm volatile("{\n"
                     ".reg .pred wanted;\n"
                     "setp.gt.s32 wanted, %4, 0;\n"
                     "@wanted ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%5];\n"
                     "}" : "+f"(four.x), "+f"(four.y), "+f"(four.z), "+f"(four.w)
                         : "r"(left), "l"(from));
    else {
        if (left > 0) four.x = __ldg(from);
        if (left > 1) four.y = __ldg(from + 1);
        if (left > 2) four.z = __ldg(from + 2);
        if (left > 3) four.w = __ldg(from + 3);
    }
    return four;
}

// Makes the compiler compute what depends on `value` again, such as the addresses of all rows,
// instead of keeping it in registers throughout the loop.
static __device__ __forceinline__ void work_out_anew(int &value) { asm volatile("" : "+r"(value)); }
static __device__ __forceinline__ void work_out_anew(size_t &value)
{
    asm volatile("" : "+l"(value));
}

static __device__ __forceinline__ void store(unsigned to, unsigned x, unsigned y)
{
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" :: "r"(to), "r"(x), "r"(y) : "memory");
}

template <bool ALIGNED>
static __device__ __forceinline__ void produce(const float *A, const float *B, int M, int N, int K,
                                               unsigned ring, unsigned full, unsigned empty)
{
    const Tile tile = tile_of_block();
    const int thread = threadIdx.x, first_row = tile.row, first_column = tile.column;
    const int steps = (K + BK - 1) / BK;

    // A: eight threads per row, every 32nd row. B: a warp per row, every eighth row; each lane
    // copies four adjacent columns at once, or four that lie 32 apart one by one.
    // The next eight threads take the fourth row from there, whose parts lie in the other banks.
    const int a_k = thread % 8 * 4, a_row = thread / 8 % 2 * 4 + thread / 16 % 4 + thread / 64 * 8;
    const unsigned a_to = a_row * 128 + ((thread % 8 / 2) ^ (a_row % 8)) * 16 + thread % 2 * 8;
    const int b_k = thread / 32, b_column = thread % 32 * (ALIGNED ? 4 : 1);
    const unsigned b_to = A_BYTES + 4 * (b_k * B_WIDTH + b_column);
    const float *a_from = A + (size_t)(first_row + a_row) * K + a_k;
    const float *b_from = B + (size_t)b_k * N + first_column + b_column;

    float4 next[A_FETCHES];
    #pragma unroll
    for (int i = 0; i < A_FETCHES; ++i)
        next[i] = fetch<ALIGNED>(a_from + (size_t)(i * 32) * K,
                                 first_row + a_row + i * 32 < M ? K - a_k : 0);

    int slot = 0;
    unsigned phase = 0;
    #pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        const unsigned stage = ring + slot * STAGE;
        wait(empty + 8 * slot, phase ^ 1);
        const float *from = b_from + (size_t)(step * BK) * N;
        size_t width = 8 * (size_t)N;
        work_out_anew(width);
        #pragma unroll
        for (int i = 0; i < BK / 8; ++i) {
            const bool inside = step * BK + b_k + i * 8 < K;
            #pragma unroll
            for (int j = 0; j < (ALIGNED ? 1 : 4); ++j)
                copy<ALIGNED ? 16 : 4>(stage + b_to + 4 * (i * 8 * B_WIDTH + j * 32),
                                       from + j * 32,
                                       inside && first_column + b_column + j * 32 < N);
            from += width;
        }
        arrive_after_copies(full + 8 * slot);

        // Store this step's A to shared memory and load the next step's into registers.
        from = a_from + (size_t)(step + 1) * BK;
        const int left = K - (step + 1) * BK - a_k;
        int rows = M - first_row - a_row;
        width = 32 * (size_t)K;
        work_out_anew(rows), work_out_anew(width);
        #pragma unroll
        for (int i = 0; i < A_FETCHES; ++i) {
            unsigned big[2], small[2];
            split(next[i].x, next[i].y, big[0], small[0]);
            split(next[i].z, next[i].w, big[1], small[1]);
            const unsigned to = stage + a_to + i * 32 * 128;
            store(to, big[0], big[1]);
            store(to ^ 64, small[0], small[1]);
            next[i] = fetch<ALIGNED>(from, i * 32 < rows ? left : 0);
            from += width;
        }

        // Makes ordinary stores visible to the tensor cores.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        arrive(full + 8 * slot);
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }
}

// -- Consumers -----------------------------------------------------------------------------------

static __device__ __forceinline__ void consume(float *C, int M, int N, int K, const char *tiles,
                                               unsigned ring, unsigned full, unsigned empty)
{
    // A warp has 16 columns of C: lane / 4 selects a pair of them, lane % 4 terms and row pairs.
    const int warp = threadIdx.x / 32 - 8, lane = threadIdx.x % 32;
    const int column = warp * 16 + lane / 4 * 2;
    const char *const b_at = tiles + A_BYTES + 4 * (lane % 4 * 2 * B_WIDTH + column);
    const int steps = (K + BK - 1) / BK;

    float total[PIECES][32];
    #pragma unroll
    for (int piece = 0; piece < PIECES; ++piece)
        #pragma unroll
        for (int i = 0; i < 32; ++i)
            total[piece][i] = 0.0f;

    int slot = 0;
    unsigned phase = 0;
    #pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        wait(full + 8 * slot, phase);

        // Bᵀ, split: per sixteen terms, two columns (registers 0 and 1) of two pairs (0 and 2).
        unsigned big[2][4], small[2][4];
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            const char *const from = b_at + slot * STAGE + 4 * (i * 8 * B_WIDTH);
            const float2 first = *(const float2 *)from;
            const float2 second = *(const float2 *)(from + 4 * B_WIDTH);
            split(first.x, second.x, big[i / 2][i % 2 * 2], small[i / 2][i % 2 * 2]);
            split(first.y, second.y, big[i / 2][i % 2 * 2 + 1], small[i / 2][i % 2 * 2 + 1]);
        }

        #pragma unroll
        for (int piece = 0; piece < PIECES; ++piece) {
            const uint64_t a_big = rows_at(ring + slot * STAGE + piece * 64 * 128);
            const uint64_t a_small = a_big + (64 >> 4);
            float sum[32];
            begin_products(big, small, sum);
            #pragma unroll
            for (int i = 0; i < 2; ++i) {
                multiply(sum, small[i], a_big + 2 * i, i == 0);
                multiply(sum, big[i], a_small + 2 * i, false);
            }
            end_products(sum);
            #pragma unroll
            for (int i = 0; i < 32; ++i)
                sum[i] *= 1.0f / 2048;

            begin_products(big, small, sum);
            #pragma unroll
            for (int i = 0; i < 2; ++i)
                multiply(sum, big[i], a_big + 2 * i, false);
            end_products(sum);
            #pragma unroll
            for (int i = 0; i < 32; ++i)
                total[piece][i] += sum[i];
        }

        __syncwarp();
        if (lane == 0)
            arrive(empty + 8 * slot);
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }

    const Tile tile = tile_of_block();
    const int c_column = tile.column + column;
    #pragma unroll
    for (int i = 0; i < PIECES * 16; ++i) {
        const int row = tile.row + i / 2 * 8 + lane % 4 * 2 + i % 2;
        const float left = total[i / 16][i % 16 / 2 * 4 + i % 2];
        const float right = total[i / 16][i % 16 / 2 * 4 + i % 2 + 2];
        float *const to = C + (size_t)row * N + c_column;
        if (row < M && N % 2 == 0 && c_column < N)
            *(float2 *)to = make_float2(left, right);
        if (row < M && N % 2 == 1 && c_column < N)
            to[0] = left;
        if (row < M && N % 2 == 1 && c_column + 1 < N)
            to[1] = right;
    }
}

extern "C" __global__ void __launch_bounds__(512, 1)
fp16x3(const float *A, const float *B, float *C, int M, int N, int K)
{
    // The ring of stages starts at a multiple of 1,024 bytes. Two barriers per stage follow it.
    extern __shared__ char shared[];
    const unsigned start = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned ring = (start + 1023) / 1024 * 1024;
    const unsigned full = ring + STAGES * STAGE, empty = full + 8 * STAGES;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            expect_arrivals(full + 8 * stage, 512);  // 256 threads, and the copies of each
            expect_arrivals(empty + 8 * stage, 8);   // of warps
        }
    }
    __syncthreads();

    // Registers move from the threads that move data to those that multiply.
    if (threadIdx.x < 256) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 64;");
        if (K % 4 == 0 && N % 4 == 0)
            produce<true>(A, B, M, N, K, ring, full, empty);
        else
            produce<false>(A, B, M, N, K, ring, full, empty);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 192;");
        consume(C, M, N, K, shared + (ring - start), ring, full, empty);
    }
}
