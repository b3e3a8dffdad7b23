// /// matbench
// name = "double-mma"
// summary = "float64 on tensor cores: mma.sync on fragments that are fetched one slice ahead"
// group = "blas"
// previous = "pipelined"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [128]
// BN = [128]
// BK = [16]
// STAGES = [4]
// [tune]
// BM = [64, 128]
// BN = [64, 128]
// BK = [16, 32]
// STAGES = [2, 3, 4, 5, 6]
// [launch]
// where = ["BM % 64 == 0", "BN % 32 == 0", "BK % 16 == 0", "STAGES >= 2", "BM * BN <= 16384",
//          "8 * STAGES * (BM * (BK + 8) + BK * (BN + 2)) <= max_shared_bytes_per_block"]
// block = ["BM * BN // 64"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "8 * STAGES * (BM * (BK + 8) + BK * (BN + 2))"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / 32 + 1 / 64)"
// ///

// The tensor cores of data-centre GPUs also multiply doubles, twice as fast as the ordinary units,
// and with the same rounding: nothing is truncated, so the result is as accurate as any other order
// of summation.
//
// One instruction, mma.sync, multiplies 16×8 by 8×8 elements for a whole warp. Its factors are in
// registers, distributed over the lanes: with g = lane / 4 and t = lane % 4, a lane has A's
// elements (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4), B's (t, g) and (t + 4, g), and four
// sums, two neighbours in row g and two in row g + 8. On sm_80 the same takes four instructions of
// 8×4 by 4×8.
//
// Each warp computes 64×32 elements of C: 64 sums per lane, half of its registers. Copies fill a
// ring of STAGES pairs of tiles. The tensor cores must not wait for shared memory either, so a warp
// fetches the next eight k while it multiplies the current ones, and crosses to the next pair of
// tiles in the same way. When the last products of a tile start, it is no longer read, so a single
// barrier there frees it and opens the next.
//
// On an H200 at n = 4096 this is 0.97 times as fast as cuBLAS.
//
// A warp fetches doubles as two halves of 16 lanes, four values of g by four of t. Rows of BK + 4
// and of BN + 4 doubles put all 16 into different pairs of banks.

#ifndef BM
#define BM 128
#define BN 128
#define BK 16
#define STAGES 4
#endif
#ifndef WM
#define WM 32
#define WN 64
#define DEPTH 8                 // k that a warp fetches at a time
#endif
#define ACROSS (BN / WN)        // warps
#define THREADS (BM / WM * ACROSS * 32)
#define DOWN (WM / 8)           // fragments of A in a warp's tile
#define WIDE (WN / 16)          // and of B
#define SLICES (BK / DEPTH)
#define BAND 8                  // rows of tiles in a band
#define A_WIDTH (BK + 8)
#define B_WIDTH (BN + 2)
#define A_SIZE (BM * A_WIDTH)   // doubles
#define STAGE (A_SIZE + BK * B_WIDTH)

// Starts to copy one or two doubles to shared memory; writes zeros if not `wanted`.
template <int COUNT>
static __device__ __forceinline__ void copy(unsigned to, const double *from, bool wanted)
{
    const int bytes = wanted ? 8 * COUNT : 0;
    if (COUNT == 2)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                     :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

// Makes the compiler compute what depends on `value` again, such as the distances of rows, instead
// of keeping it in registers throughout the loop, which are needed for the sums.
static __device__ __forceinline__ void work_out_anew(int &value) { asm volatile("" : "+r"(value)); }

// The copies since the last call form a group; the wait is until at most OTHERS are in flight.
static __device__ __forceinline__ void end_group() { asm volatile("cp.async.commit_group;"); }

template <int OTHERS>
static __device__ __forceinline__ void wait_for_groups()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(OTHERS) : "memory");
}

// A lane's share of DEPTH k, two neighbours of each row of A and of B at a time.
struct Fragments { double a[DOWN][DEPTH / 4], b[WIDE][DEPTH / 2]; };

static __device__ __forceinline__ void fetch(Fragments &to, const double *a, const double *b)
{
    #pragma unroll
    for (int j = 0; j < WIDE; ++j)
        #pragma unroll
        for (int p = 0; p < DEPTH / 4; ++p) {
            const double2 two = *(const double2 *)(b + (p / 2 * 8 + p % 2) * B_WIDTH + j * 16);
            to.b[j][p * 2] = two.x, to.b[j][p * 2 + 1] = two.y;
        }
    #pragma unroll
    for (int i = 0; i < DOWN; ++i)
        #pragma unroll
        for (int p = 0; p < DEPTH / 8; ++p) {
            const double2 two = *(const double2 *)(a + i * 8 * A_WIDTH + p * 8);
            to.a[i][p * 2] = two.x, to.a[i][p * 2 + 1] = two.y;
        }
}

// sum += a·b: 16×8 by 8×8.
static __device__ __forceinline__ void multiply(double (&sum)[4], const double (&a)[DEPTH / 4],
                                                const double (&b)[DEPTH / 2])
{
#if __CUDA_ARCH__ >= 900 && DEPTH == 16
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, "
                 "{%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]), "d"(b[4]), "d"(b[5]), "d"(b[6]),
                   "d"(b[7]), "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]));
#elif __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]), "d"(a[0]), "d"(a[1]));
#else
    #pragma unroll
    for (int p = 0; p < DEPTH / 2; ++p)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
                     "{%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(sum[p % 2 * 2]), "+d"(sum[p % 2 * 2 + 1]) : "d"(b[p]), "d"(a[p / 2]));
#endif
}

template <int COUNT>
static __device__ __forceinline__ void product(const double *A, const double *B, double *C,
                                               int M, int N, int K, double *tiles)
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
    const int row = warp / ACROSS * WM, column = warp % ACROSS * WN;
    const char *const a_of = (const char *)(tiles + (row + g) * A_WIDTH + t * 2);
    const char *const b_of = (const char *)(tiles + A_SIZE + t * 2 * B_WIDTH + column + g * 2);

    // What this thread copies: of A COUNT columns in every A_ROWS-th row, of B likewise.
    constexpr int A_ROWS = THREADS * COUNT / BK, B_ROWS = THREADS * COUNT / BN;
    const int a_k = thread * COUNT % BK, a_row = thread * COUNT / BK;
    const int b_k = thread * COUNT / BN, b_column = thread * COUNT % BN;
    const unsigned at = (unsigned)__cvta_generic_to_shared(tiles);
    const unsigned a_to = at + 8 * (a_row * A_WIDTH + a_k);
    const unsigned b_to = at + 8 * (A_SIZE + b_k * B_WIDTH + b_column);
    const double *a_from = A + (size_t)(first_row + a_row) * K + a_k;
    const double *b_from = B + (size_t)b_k * N + first_column + b_column;
    const int rows = M - first_row - a_row;
    const bool inside = first_column + b_column < N;

    // Starts to copy the next `terms` columns of A and rows of B to the stage at byte `to`.
    auto copy_tiles = [&](unsigned to, int terms) {
        int a_pitch = K, b_pitch = N;
        work_out_anew(a_pitch), work_out_anew(b_pitch);
        #pragma unroll
        for (int i = 0; i < BM / A_ROWS; ++i)
            copy<COUNT>(a_to + to + 8 * i * A_ROWS * A_WIDTH,
                        a_from + (long long)a_pitch * (i * A_ROWS),
                        i * A_ROWS < rows && (terms == BK || a_k < terms));
        #pragma unroll
        for (int i = 0; i < BK / B_ROWS; ++i)
            copy<COUNT>(b_to + to + 8 * i * B_ROWS * B_WIDTH,
                        b_from + (long long)b_pitch * (i * B_ROWS),
                        inside && (terms == BK || b_k + i * B_ROWS < terms));
        a_from += terms;
        b_from += (long long)terms * b_pitch;
    };

    double sum[DOWN][WIDE][4];
    #pragma unroll
    for (int i = 0; i < DOWN * WIDE * 4; ++i)
        sum[i / 4 / WIDE][i / 4 % WIDE][i % 4] = 0.0;

    // Fill the ring: first the short step, so that all others are full.
    const int steps = (K + BK - 1) / BK;
    copy_tiles(0, K - (steps - 1) * BK);
    end_group();
    #pragma unroll
    for (int i = 1; i < STAGES; ++i) {
        if (i < steps)
            copy_tiles(8 * STAGE * i, BK);
        end_group();
    }
    wait_for_groups<STAGES - 1>();
    __syncthreads();
    Fragments of[2];  // of this slice and the next, alternately
    fetch(of[0], (const double *)a_of, (const double *)b_of);

    unsigned now = 0;  // where the current stage starts, in bytes
    #pragma unroll 1
    for (int left = steps; left > 0; --left) {
        #pragma unroll
        for (int slice = 0; slice < SLICES; ++slice) {
            if (slice == SLICES - 1) {
                wait_for_groups<STAGES - 2>();
                __syncthreads();  // the next tiles have arrived, and nobody reads these any more
                if (left > STAGES)
                    copy_tiles(now, BK);
                end_group();
                now = now == 8 * STAGE * (STAGES - 1) ? 0 : now + 8 * STAGE;
            }
            const int next = (slice + 1) % SLICES * DEPTH;
            fetch(of[(slice + 1) % 2], (const double *)(a_of + now) + next,
                  (const double *)(b_of + now) + next * B_WIDTH);
            #pragma unroll
            for (int i = 0; i < DOWN; ++i)
                #pragma unroll
                for (int j = 0; j < WIDE; ++j)
                    multiply(sum[i][j], of[slice % 2].a[i], of[slice % 2].b[j]);
        }
    }

    #pragma unroll
    for (int i = 0; i < DOWN * 2; ++i) {
        const int c_row = first_row + row + i / 2 * 8 + t * 2 + i % 2;
        #pragma unroll
        for (int j = 0; j < WIDE; ++j) {
            const int c_column = first_column + column + j * 16 + g * 2;
            const double left = sum[i / 2][j][i % 2], right = sum[i / 2][j][i % 2 + 2];
            double *const to = C + (size_t)c_row * N + c_column;
            if (c_row < M && COUNT == 2 && c_column < N)
                *(double2 *)to = make_double2(left, right);
            if (c_row < M && COUNT == 1 && c_column < N)
                to[0] = left;
            if (c_row < M && COUNT == 1 && c_column + 1 < N)
                to[1] = right;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
double_mma(const double *A, const double *B, double *C, int M, int N, int K)
{
    extern __shared__ double2 shared[];

    // Two doubles at a time if every row starts at a multiple of 16 bytes.
    if (K % 2 == 0 && N % 2 == 0)
        product<2>(A, B, C, M, N, K, (double *)shared);
    else
        product<1>(A, B, C, M, N, K, (double *)shared);
}
