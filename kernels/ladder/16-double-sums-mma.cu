// /// matbench
// name = "double-sums-mma"
// summary = "float32 in and out, products and sums in double on tensor cores"
// group = "ladder"
// previous = "double-sums"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [64]
// BN = [64, 128]
// BK = [32]
// STAGES = [4]
// [tune]
// BM = [32, 64, 128]
// BN = [32, 64, 128]
// BK = [32, 64]
// STAGES = [2, 3, 4, 5]
// [launch]
// where = ["BM % 32 == 0", "BN % 32 == 0", "BM * BN <= 8192", "STAGES >= 2",
//          "BK % 32 == 0", "8 * BK % BN == 0", "8 * BK % BM == 0", "BM * BN % (32 * BK) == 0",
//          "4 * STAGES * BK * (BM + BN) <= max_shared_bytes_per_block"]
// block = ["BM * BN // 32"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "4 * STAGES * BK * (BM + BN)"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / 32 + 1 / 32)"
// ///

// Adds: tensor cores, which multiply doubles twice as fast as the ordinary units.
// Predicted: at most 65 TFLOP/s at n = 4096: 128 multiply-adds of doubles per cycle and multiprocessor
//   are 66.9 TFLOP/s, and the slowest has 32 tiles of 64×64, where 31.03 are the average. At n =
//   1000, at most 60: 256 tiles for 132 multiprocessors, and K rounded up to 1,024.
// Measured: 47.9 TFLOP/s at n = 1000, 153% of cuBLAS (H200)
//   62.0 TFLOP/s at n = 4096, 121% of cuBLAS (H200)
//   51.4 TFLOP/s at 8192x64x8192, 123% of cuBLAS (H200)
//
// As in double-sums, the product of two floats is exact in double, and the sum is rounded to float
// once. Nothing is truncated: for doubles the tensor cores round as the ordinary units do. So
// except for very rare near-ties C is the float nearest to the exact result.
//
// One instruction, mma.sync, multiplies 16×16 by 16×8 doubles for a whole warp. The warp's 32×32
// elements of C take eight of them per 16 k, and a multiprocessor 128 cycles. Meanwhile it
//
// - fetches 4 KB of float32 from shared memory, a quarter of what that delivers;
// - converts 1,024 floats, 16 per cycle: half of the time. With larger warp tiles it converts less,
//   but they were slower: they leave fewer registers for converting early.
//
// So neither is the limit if both happen while earlier products are computed. What a warp
// multiplies is converted one fragment of A ahead; what it converts is fetched one fragment ahead
// of that, across the barrier too. With tiles of 64×64 two blocks share a multiprocessor: while one
// starts or writes its result, the other multiplies.
//
// The order of k is free as long as it is the same in A and B, and so is the order of columns. Each
// lane takes four neighbouring k of a row of A and four neighbouring columns of B: 16-byte fetches.

#ifndef BM
#define BM 64
#define BN 64
#define BK 32
#define STAGES 4
#endif
#define ACROSS (BN / 32)                // warps
#define THREADS (BM / 32 * ACROSS * 32)
#define DEPTH 16                        // k of an instruction
#define SLICES (BK / DEPTH)
#define BAND 8                          // rows of tiles in a band
#define A_SIZE (BM * BK)                // floats
#define STAGE (A_SIZE + BK * BN)

// Where A's element (row, k) and B's (k, column) are in a stage. A quarter of a warp fetches groups
// of four floats from two rows of A, or from rows 0, 4, 8 and 12 of B. The groups within a row are
// permuted so that the eight are in different banks.
static __device__ __forceinline__ int place_of_a(int row, int k)
{
    return row * BK + (k ^ row % 2 * 16);
}

static __device__ __forceinline__ int place_of_b(int k, int column)
{
    return A_SIZE + k * BN + (column ^ k / 4 % 4 * 8);
}

// Starts to copy one or four floats to shared memory; writes zeros if not `wanted`.
template <int COUNT>
static __device__ __forceinline__ void copy(unsigned to, const float *from, bool wanted)
{
    const int bytes = wanted ? 4 * COUNT : 0;
    if (COUNT == 4)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                     :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

// Makes the compiler recompute what depends on `value`, such as the distances between rows, instead
// of keeping it in registers that the loop needs for the sums.
static __device__ __forceinline__ void work_out_anew(int &value) { asm volatile("" : "+r"(value)); }

// The copies since the last call form a group; the wait is until at most OTHERS are in flight.
static __device__ __forceinline__ void end_group() { asm volatile("cp.async.commit_group;"); }

template <int OTHERS>
static __device__ __forceinline__ void wait_for_groups()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(OTHERS) : "memory");
}

// A lane's share of 16 rows of A: k = 4 t to 4 t + 3 in rows g and g + 8.
struct OfA { float4 top, bottom; };

static __device__ __forceinline__ void fetch(OfA &to, const float *from)
{
    to.top = *(const float4 *)from;
    to.bottom = *(const float4 *)(from + 8 * BK);
}

// Of 32 columns of B: columns 4 g to 4 g + 3 of the same k.
struct OfB { float4 row[4]; };

static __device__ __forceinline__ void fetch(OfB &to, const float *from)
{
    #pragma unroll
    for (int p = 0; p < 4; ++p)
        to.row[p] = *(const float4 *)(from + p * BN);
}

// Converts a float. Left to itself the compiler converts late, when a product already waits for it.
static __device__ __forceinline__ double wide(float value)
{
    double result;
    asm volatile("cvt.f64.f32 %0, %1;" : "=d"(result) : "f"(value));
    return result;
}

static __device__ __forceinline__ void convert(double (&to)[8], const OfA &from)
{
    to[0] = wide(from.top.x), to[1] = wide(from.bottom.x);
    to[2] = wide(from.top.y), to[3] = wide(from.bottom.y);
    to[4] = wide(from.top.z), to[5] = wide(from.bottom.z);
    to[6] = wide(from.top.w), to[7] = wide(from.bottom.w);
}

// The fragment of every fourth column, from the j-th on.
static __device__ __forceinline__ void convert(double (&to)[4], const OfB &from, int j)
{
    #pragma unroll
    for (int p = 0; p < 4; ++p)
        to[p] = wide(j == 0 ? from.row[p].x : j == 1 ? from.row[p].y
                   : j == 2 ? from.row[p].z : from.row[p].w);
}

// sum += a·b: 16×16 by 16×8.
static __device__ __forceinline__ void multiply(double (&sum)[4], const double (&a)[8],
                                                const double (&b)[4])
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, "
                 "{%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]),
                   "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
    #pragma unroll
    for (int p = 0; p < 8; ++p)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
                     "{%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(sum[p % 2 * 2]), "+d"(sum[p % 2 * 2 + 1]) : "d"(a[p]), "d"(b[p / 2]));
#endif
}

template <int COUNT>
static __device__ __forceinline__ void product(const float *A, const float *B, float *C,
                                               int M, int N, int K, float *tiles)
{
    // Blocks that run at the same time have tiles in a band of BAND rows of tiles, so they share
    // rows of A and columns of B in the L2 cache.
    const int block = blockIdx.y * gridDim.x + blockIdx.x, whole = BAND * gridDim.x;
    const int band = block / whole, place = block % whole;
    const int height = min(BAND, gridDim.y - band * BAND);
    const int first_row = (band * BAND + place % height) * BM;
    const int first_column = place / height * BN;

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int g = lane / 4, t = lane % 4;
    const int row = warp / ACROSS * 32 + g, column = warp % ACROSS * 32;
    const char *const a_of = (const char *)(tiles + place_of_a(row, t * 4));
    const char *const b_of = (const char *)(tiles + place_of_b(t * 4, column + g * 4));
    const int a_other = g % 2 ? -DEPTH : DEPTH;  // to the other slice of the same 32 k

    // What this thread copies: of A COUNT columns in every A_ROWS-th row, of B likewise.
    constexpr int A_ROWS = THREADS * COUNT / BK, B_ROWS = THREADS * COUNT / BN;
    const int a_k = thread * COUNT % BK, a_row = thread * COUNT / BK;
    const int b_k = thread * COUNT / BN, b_column = thread * COUNT % BN;
    const unsigned at = (unsigned)__cvta_generic_to_shared(tiles);
    const float *a_from = A + (size_t)(first_row + a_row) * K + a_k;
    const float *b_from = B + (size_t)b_k * N + first_column + b_column;
    const int rows = M - first_row - a_row;
    const bool inside = first_column + b_column < N;

    // Starts to copy the next `terms` columns of A and rows of B to the stage at byte `to`.
    auto copy_tiles = [&](unsigned to, int terms) {
        int a_pitch = K, b_pitch = N;
        work_out_anew(a_pitch), work_out_anew(b_pitch);
        #pragma unroll
        for (int i = 0; i < BM / A_ROWS; ++i)
            copy<COUNT>(at + to + 4 * place_of_a(a_row + i * A_ROWS, a_k),
                        a_from + (long long)a_pitch * (i * A_ROWS),
                        i * A_ROWS < rows && (terms == BK || a_k < terms));
        #pragma unroll
        for (int i = 0; i < BK / B_ROWS; ++i) {
            const int k = b_k + i * B_ROWS;
            copy<COUNT>(at + to + 4 * place_of_b(k, b_column),
                        b_from + (long long)b_pitch * (i * B_ROWS),
                        inside && (terms == BK || k < terms));
        }
        a_from += terms;
        b_from += (long long)terms * b_pitch;
    };

    double sum[2][4][4];
    #pragma unroll
    for (int i = 0; i < 32; ++i)
        sum[i / 16][i / 4 % 4][i % 4] = 0.0;

    // Fill the ring: first the short step, so that all others are full.
    const int steps = (K + BK - 1) / BK;
    copy_tiles(0, K - (steps - 1) * BK);
    end_group();
    #pragma unroll
    for (int i = 1; i < STAGES; ++i) {
        if (i < steps)
            copy_tiles(4 * STAGE * i, BK);
        end_group();
    }
    wait_for_groups<STAGES - 1>();
    __syncthreads();

    double a[2][8], b[4][4];
    OfA coming_a;
    OfB coming_b;
    fetch(coming_a, (const float *)a_of);
    fetch(coming_b, (const float *)b_of);
    convert(a[0], coming_a);
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        convert(b[j], coming_b, j);
    fetch(coming_a, (const float *)a_of + 16 * BK);

    unsigned now = 0;  // where the current stage starts, in bytes
    #pragma unroll 1
    for (int left = steps; left > 0; --left) {
        #pragma unroll
        for (int slice = 0; slice < SLICES; ++slice) {
            const int after = (slice + 1) % SLICES;
            if (after == 0) {
                wait_for_groups<STAGES - 2>();
                __syncthreads();  // the next tiles have arrived, and nobody reads these any more
                if (left > STAGES)
                    copy_tiles(now, BK);
                end_group();
                now = now == 4 * STAGE * (STAGES - 1) ? 0 : now + 4 * STAGE;
            }
            const float *const next
                = (const float *)(a_of + now) + after / 2 * 32 + after % 2 * a_other;
            fetch(coming_b, (const float *)(b_of + now) + after * DEPTH * BN);
            #pragma unroll
            for (int i = 0; i < 2; ++i) {
                convert(a[1 - i], coming_a);
                fetch(coming_a, next + i * 16 * BK);
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    multiply(sum[i][j], a[i], b[j]);
                    if (i == 1)
                        convert(b[j], coming_b, j);
                }
            }
        }
    }

    // Four fragments of B had every fourth of 32 columns each, so a lane has eight neighbours.
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int c_row = first_row + row + i * 8;
        #pragma unroll
        for (int q = 0; q < 2; ++q) {
            const int c_column = first_column + column + t * 8 + q * 4, half = i % 2 * 2 + q;
            const float4 four = make_float4((float)sum[i / 2][0][half], (float)sum[i / 2][1][half],
                                            (float)sum[i / 2][2][half], (float)sum[i / 2][3][half]);
            float *const to = C + (size_t)c_row * N + c_column;
            if (c_row < M && COUNT == 4 && c_column < N)
                *(float4 *)to = four;
            if (c_row < M && COUNT == 1) {
                if (c_column + 0 < N) to[0] = four.x;
                if (c_column + 1 < N) to[1] = four.y;
                if (c_column + 2 < N) to[2] = four.z;
                if (c_column + 3 < N) to[3] = four.w;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
double_sums_mma(const float *A, const float *B, float *C, int M, int N, int K)
{
    extern __shared__ float4 shared[];

    // Four floats at a time if every row starts at a multiple of 16 bytes.
    if (K % 4 == 0 && N % 4 == 0)
        product<4>(A, B, C, M, N, K, (float *)shared);
    else
        product<1>(A, B, C, M, N, K, (float *)shared);
}
