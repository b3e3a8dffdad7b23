// /// matbench
// name = "double-mma"
// summary = "float64 on tensor cores: mma.sync on fragments that are fetched one slice ahead"
// group = "gallery"
// previous = "pipelined"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [128]
// BN = [64]
// BK = [16]
// STAGES = [3]
// [tune]
// BM = [64, 128]
// BN = [64, 128]
// BK = [16, 32]
// STAGES = [2, 3, 4, 5]
// [launch]
// where = ["BM % 64 == 0", "BN % 64 == 0", "BK % 16 == 0", "STAGES >= 2", "BM * BN <= 16384",
//          "BM * BN % (64 * BK) == 0", "32 * BK % BM == 0", "32 * BK % BN == 0",
//          "8 * STAGES * (BM * (BK + 8) + BK * (BN + 2)) <= max_shared_bytes_per_block"]
// block = ["BM * BN // 64"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "8 * STAGES * (BM * (BK + 8) + BK * (BN + 2))"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / 32 + 1 / 64)"
// ///

// Adds: doubles in place of floats, multiplied by tensor cores.
// Predicted: at most 65 TFLOP/s at n = 4096: an H200's tensor cores multiply and add 128 pairs of
//   doubles per cycle and multiprocessor, 66.9 TFLOP/s at 1.98 GHz; 2,048 tiles of 128×64 on 132
//   multiprocessors fill 15.5 of 16 rounds. Every 16 k of a tile take 1,024 cycles, in which shared
//   memory delivers 49 KB of 128 KB and the L2 cache 24 KB.
// Measured: 58.2 TFLOP/s at n = 4096 and 54.8 at n = 8192, in turns with cuBLAS 0.95 and 0.97 times
//   as fast (H200)
//
// The tensor cores of data-centre GPUs also multiply doubles, twice as fast as the ordinary units,
// and with the same rounding: nothing is truncated, so the result is as accurate as with any other
// order of summation.
//
// In repeated products at n = 8192 the card draws its 700 W, and the clock falls to 1.6 to 1.8 GHz.
// Then instructions that do not multiply cost time even while the tensor cores are busy, since they
// cost energy. Addresses that advance, instead of being computed anew from the step's number, need
// half as many.
//
// One instruction, mma.sync, multiplies 16×8 by 8×8 elements for a whole warp. Its factors are in
// registers, distributed over the lanes: with g = lane / 4 and t = lane % 4, a lane has the first
// factor's elements (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4), the second one's (t, g) and
// (t + 4, g), and four sums, two neighbours in row g and two in row g + 8. On sm_80 the same takes
// four instructions of 8×4 by 4×8.
//
// Fetches of 16 bytes bring two neighbours, which must be a lane's elements in this order. So the
// instruction computes Cᵀ = Bᵀ·Aᵀ: rows g and g + 8 of its first factor are two neighbouring
// columns of B, and t and t + 4 of its second two neighbouring k in a row of A. Which columns and k
// they are is free, as long as all agree. Rows of BK + 8 and BN + 2 doubles put what a quarter of a
// warp fetches into different banks.
//
// Each warp computes 32×64 elements of C: 64 sums per lane, half of its registers. Copies fill a
// ring of STAGES pairs of tiles. The tensor cores must not wait for shared memory either, so a warp
// fetches the next eight k while it multiplies the current ones, and crosses to the next pair of
// tiles in the same way. When the last products of a tile start, it is no longer read, so a single
// barrier there frees it and opens the next. Two blocks share a multiprocessor: while one waits or
// writes its result, the other multiplies.

#ifndef BM
#define BM 128
#define BN 64
#define BK 16
#define STAGES 3
#endif
#define WM 32                   // rows of C of a warp
#define WN 64                   // and columns
#define ACROSS (BN / WN)        // warps
#define THREADS (BM / WM * ACROSS * 32)
#define DOWN (WM / 8)           // fragments of A in a warp's tile
#define WIDE (WN / 16)          // and of B
#define SLICE 8                 // k that a warp fetches at a time
#define SLICES (BK / SLICE)
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

// A lane's share of eight k: of WM rows of A, and of WN columns of B.
struct Fragments { double a[DOWN][2], b[WIDE][4]; };

static __device__ __forceinline__ void fetch(Fragments &to, const char *a_at, const char *b_at)
{
    #pragma unroll
    for (int j = 0; j < WIDE; ++j)
        #pragma unroll
        for (int p = 0; p < 2; ++p) {
            const double2 two = *(const double2 *)((const double *)b_at + p * B_WIDTH + j * 16);
            to.b[j][p * 2] = two.x, to.b[j][p * 2 + 1] = two.y;
        }
    #pragma unroll
    for (int i = 0; i < DOWN; ++i) {
        const double2 two = *(const double2 *)((const double *)a_at + i * 8 * A_WIDTH);
        to.a[i][0] = two.x, to.a[i][1] = two.y;
    }
}

// sum += b·a: 16 columns of B by eight rows of A.
static __device__ __forceinline__ void multiply(double (&sum)[4], const double (&a)[2],
                                                const double (&b)[4])
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]), "d"(a[0]), "d"(a[1]));
#else
    #pragma unroll
    for (int p = 0; p < 4; ++p)
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

    // What this thread copies: COUNT columns of every A_ROWS-th row of A, and of B likewise.
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
    fetch(of[0], a_of, b_of);

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
            const int next = 8 * SLICE * ((slice + 1) % SLICES);
            fetch(of[(slice + 1) % 2], a_of + now + next, b_of + now + next * B_WIDTH);
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
