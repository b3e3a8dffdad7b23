// /// matbench
// name = "tf32x3"
// summary = "float32 accuracy from TF32 tensor cores: two parts per number, three products"
// group = "ladder"
// previous = "pipelined"
// requires = ["cuda", "sm_90a"]
// error_constant = 8.0
// [sweep]
// BM = [64, 256]
// [tune]
// BM = [64, 128, 192, 256]
// [launch]
// where = ["BM % 64 == 0", "BM <= 256",
//          "(2 if BM > 128 else 4) * (256 * BM + 17408) + 1088 <= max_shared_bytes_per_block"]
// block = [512]
// grid = ["ceil_div(N, 128)", "ceil_div(M, BM)"]
// shared_bytes = "(2 if BM > 128 else 4) * (256 * BM + 17408) + 1088"
// [model]
// global_loads = "M * N * K / 128 + M * N * K / BM"
// tensor_operations = "6 * M * N * K"
// arithmetic = "3 tf32"
// ///

// Adds: tensor cores. Each float32 is split into two TF32 parts, and three products of parts
//   replace one product. Nearly all of the code is new.
// Predicted: at most 178 TFLOP/s if the tensor cores never wait; a third of what cuBLAS reaches
//   with TF32 inputs is 139.
// Measured: 117 TFLOP/s at n = 4096, 229% of cuBLAS (H200)
//
// The method is that of H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor
// Cores while surpassing the FP32 theoretical peak performance", 2022, arXiv 2203.03341.
//
// SPLITTING. Tensor cores read only 11 bits of each number's significand. So each value is split
// into two TF32 numbers, x = big + small: big is x rounded to 11 bits, and small is the rest, cut
// to 11 bits. Together they hold 23 of float32's 24 bits. Then
//
//     a·b = big·big + big·small + small·big + (small·small, below 2⁻²⁴ of a·b: omitted)
//
// SUMMING. A tensor core truncates when it adds: it cuts off the bits that do not fit, always
// towards zero, and in a long sum those errors accumulate. So it sums only 16 terms (K) at a time,
// starting from zero, and each such sum is added to the total by an ordinary, rounded float32
// addition.
//
// LAYOUT. Hopper's wgmma takes its second factor from shared memory, and for TF32 only with K
// running fastest. A is stored that way and B is not. So the block computes Cᵀ = Bᵀ·Aᵀ: A is the
// factor in shared memory, and B the one in registers, where every lane can fetch what it needs.
//
// ROLES. A block computes BM×128 elements of C with four warpgroups of four warps:
// - Two warpgroups are the producer. They load A into registers one step ahead, split it, and store
//   both parts to a ring of stages in shared memory. B is copied there unsplit, by cp.async.
// - The other two are consumers. Each computes BM×64 elements: total[] holds all of them, and the
//   tensor cores sum 64×64 at a time. While one consumer adds to its total, the tensor cores work
//   for the other.
// Barriers count arrivals. A stage is full when the producer's threads and their copies have
// arrived, and empty when all consumer warps have. No barrier makes the whole block wait.
//
// RANGE. Correct for all finite numbers below 2¹²⁷ whose products do not underflow: 2⁻²⁴ of a value
// must still be a float32. An infinity becomes NaN.
//
// ERROR. The split loses up to 2⁻²³ of either factor, the omitted product is up to 2⁻²² of a
// product, and the last addition cuts off up to 2⁻²³. Each product may therefore be off by eight
// times 2⁻²⁴ before it is added, which is error_constant. In a sum such errors average out, and the
// total has a sixteenth as many additions to round as a plain float32 sum.

#include <cstdint>

#ifndef BM
#define BM 256
#endif
#define STAGES (BM > 128 ? 2 : 4)
#define BN 128
#define BK 32
#define BAND 8                     // rows of tiles in a band
#define PIECES (BM / 64)           // 64 rows of A at a time
#define B_WIDTH (BN + 8)           // so that four rows of B lie in different banks
#define A_PART (BM * BK * 4)       // bytes
#define STAGE (2 * A_PART + BK * B_WIDTH * 4)
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

// `big` is rounded to nearest, ties away from zero. The rest has 12 bits; the last is cut off.
static __device__ __forceinline__ void split(float x, unsigned &big, unsigned &small)
{
    big = (__float_as_uint(x) + 0x1000) & 0xffffe000;
    small = __float_as_uint(x - __uint_as_float(big)) & 0xffffe000;
}

// Describes contiguous rows of 128 bytes, K running fastest. The index of each 16 bytes in its row
// is XORed with the row's index modulo 8, so that eight rows lie in different banks.
static __device__ __forceinline__ uint64_t rows_at(unsigned address)
{
    return (uint64_t)(address >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32
        | (uint64_t)1 << 62;
}

#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])

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
                 : FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24), FOUR(28)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((unsigned)fresh));
}

// Makes what was written to registers visible to the products that follow.
static __device__ __forceinline__ void begin_products(unsigned (&a)[2][4], unsigned (&b)[2][4])
{
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

static __device__ __forceinline__ void store(unsigned to, unsigned x, unsigned y, unsigned z,
                                             unsigned w)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
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
    const int a_k = thread % 8 * 4, a_row = thread / 8;
    const unsigned a_to = a_row * 128 + ((thread % 8) ^ (a_row % 8)) * 16;
    const int b_k = thread / 32, b_column = thread % 32 * (ALIGNED ? 4 : 1);
    const unsigned b_to = 2 * A_PART + 4 * (b_k * B_WIDTH + b_column);
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
            unsigned big[4], small[4];
            split(next[i].x, big[0], small[0]);
            split(next[i].y, big[1], small[1]);
            split(next[i].z, big[2], small[2]);
            split(next[i].w, big[3], small[3]);
            const unsigned to = stage + a_to + i * 32 * 128;
            store(to, big[0], big[1], big[2], big[3]);
            store(to + A_PART, small[0], small[1], small[2], small[3]);
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
    const char *const b_at = tiles + 2 * A_PART + 4 * (lane % 4 * B_WIDTH + column);
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

        #pragma unroll
        for (int half = 0; half < 2; ++half) {
            // Bᵀ, split: per eight terms, two columns (registers 0 and 1) of two terms (0 and 2).
            unsigned big[2][4], small[2][4];
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float2 two = *(const float2 *)(b_at + slot * STAGE
                                                     + 4 * ((half * 16 + i * 4) * B_WIDTH));
                split(two.x, big[i / 2][i % 2 * 2], small[i / 2][i % 2 * 2]);
                split(two.y, big[i / 2][i % 2 * 2 + 1], small[i / 2][i % 2 * 2 + 1]);
            }

            #pragma unroll
            for (int piece = 0; piece < PIECES; ++piece) {
                const uint64_t a_big = rows_at(ring + slot * STAGE + piece * 64 * 128) + half * 4;
                const uint64_t a_small = a_big + (A_PART >> 4);
                float sum[32];
                begin_products(big, small);
                // The small products first: while the sum is small, little is truncated.
                #pragma unroll
                for (int i = 0; i < 2; ++i) {
                    multiply(sum, small[i], a_big + 2 * i, i == 0);
                    multiply(sum, big[i], a_small + 2 * i, false);
                }
                #pragma unroll
                for (int i = 0; i < 2; ++i)
                    multiply(sum, big[i], a_big + 2 * i, false);
                end_products(sum);
                #pragma unroll
                for (int i = 0; i < 32; ++i)
                    total[piece][i] += sum[i];
            }
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
tf32x3(const float *A, const float *B, float *C, int M, int N, int K)
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
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (K % 4 == 0 && N % 4 == 0)
            produce<true>(A, B, M, N, K, ring, full, empty);
        else
            produce<false>(A, B, M, N, K, ring, full, empty);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
        consume(C, M, N, K, shared + (ring - start), ring, full, empty);
    }
}
