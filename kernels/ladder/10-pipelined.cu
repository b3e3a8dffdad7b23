// /// matbench
// name = "pipelined"
// summary = "Warp tiles, with values fetched one k ahead: the loop hardly waits"
// group = "ladder"
// previous = "warp-tiled"
// requires = ["cuda", "sm_80"]
// [sweep]
// BM = [128]
// BN = [128, 256]
// BK = [8]
// WM = [64]
// WN = [64]
// TM = [8]
// TN = [16]
// STAGES = [4]
// [tune]
// BM = [64, 128, 256]
// BN = [64, 128, 256]
// BK = [8, 16, 32]
// WM = [32, 64, 128]
// WN = [32, 64, 128]
// TM = [4, 8, 16]
// TN = [4, 8, 16]
// STAGES = [3, 4, 5, 6]
// [launch]
// where = ["TM % 4 == 0", "TN % 4 == 0", "TM * TN <= 128", "WM % (2 * TM) == 0",
//          "WN % (2 * TN) == 0", "WM // TM * (WN // TN) == 32", "BM % WM == 0", "BN % WN == 0",
//          "BK % 8 == 0", "STAGES >= 2", "32 * (BM // WM) * (BN // WN) <= max_threads_per_block",
//          "BM % (4 * (BM // WM) * (BN // WN)) == 0",
//          "128 * (BM // WM) * (BN // WN) % BN == 0",
//          "BK * BN % (128 * (BM // WM) * (BN // WN)) == 0",
//          "32 * (BM // WM) * (BN // WN) * (TM * TN + 2 * TM + 2 * TN + 40) <= 65536",
//          "4 * STAGES * BK * (BM + 4 + BN) <= max_shared_bytes_per_block"]
// block = ["32 * (BM // WM) * (BN // WN)"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "4 * STAGES * BK * (BM + 4 + BN)"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / TN + 1 / TM)"
// ///

// Adds: fetches from shared memory one k ahead, across the barrier too, and 8×16 elements per
//   thread: hardly anything in the loop waits.
// Predicted: at most 60 TFLOP/s: 92.5% of the instructions are multiply-adds, shared memory is 38%
//   busy, and 512 tiles on 132 multiprocessors fill 3.88 of 4 rounds.
// Measured: 51.0 TFLOP/s at n = 4096, 100% of cuBLAS (H200)
//
// Five changes to warp-tiled remove waiting from the loop:
//
// - The values for the next k are fetched from shared memory while this k is multiplied. At the
//   last k of a step these are the first values of the next step. The barrier therefore comes
//   before the last k's products, which hide both the barrier and the fetch.
// - The copies start in the middle of a step. Right after the barrier all warps fetch from shared
//   memory at once, and copies would compete with them.
// - Each thread keeps a pointer to every place it copies from. A pointer computed just before its
//   copy would have to wait until the previous copy has read the registers.
// - A step is only eight k, about 1,100 instructions. A loop twice as long does not fit in the
//   instruction cache closest to the schedulers, and they wait for instructions.
// - Products are computed from left to right in even rows and from right to left in odd rows. A
//   multiply-add reads three registers, and the register file has two banks (even and odd
//   registers) with one read per cycle each. A register that the previous instruction read in the
//   same operand position need not be read again.

#ifndef BM
#define BM 128
#define BN 256
#define BK 8
#define WM 64
#define WN 64
#define TM 8
#define TN 16
#define STAGES 4
#endif
#define WARPS ((BM / WM) * (BN / WN))
#define THREADS (32 * WARPS)
#define LM (WM / TM)  // rows of lanes in a warp
#define LN (WN / TN)  // and columns of them
#define A_WIDTH (BM + 4)
#define STAGE (BK * (A_WIDTH + BN))  // floats
#define A_ROWS (THREADS / 8)         // rows of A that the block copies at once
#define A_COPIES (BM / A_ROWS)
#define B_ROWS (THREADS / (BN / 4))
#define B_COPIES (BK / B_ROWS)

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

static __device__ __forceinline__ void end_of_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all but the newest STAGES - 2 groups have arrived, for every thread.
static __device__ __forceinline__ void wait_for_stage()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
    __syncthreads();
}

// COUNT values, in groups of four that lie 4 × LANES floats apart.
template <int COUNT, int LANES>
static __device__ __forceinline__ void fetch(float (&values)[COUNT], const float *from)
{
    #pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        const float4 four = *(const float4 *)(from + i * LANES);
        values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
    }
}

// ALIGNED: the rows of B and C start at multiples of 16 bytes.
template <bool ALIGNED>
static __device__ __forceinline__ void product(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    extern __shared__ float4 shared[];
    float *const tiles = (float *)shared;
    const unsigned tiles_at = (unsigned)__cvta_generic_to_shared(tiles);

    // Place: warps divide the block's tile, lanes the warp's. Bit 0 of a lane's number counts
    // across, bit 1 down, as in warp-tiled.
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int across = lane % 2 + lane / 4 % (LN / 2) * 2;
    const int down = lane / 2 % 2 + lane / 4 / (LN / 2) * 2;
    const int m = warp / (BN / WN) * WM + down * 4;
    const int n = warp % (BN / WN) * WN + across * 4;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;

    // What this thread copies. Of A: column a_k of the step, in every A_ROWS-th row. Of B: four
    // columns in every B_ROWS-th row: adjacent if ALIGNED, so that one copy takes all four,
    // otherwise BN / 4 apart and copied one by one.
    const int a_k = thread % 8, a_row = thread / 8;
    const int b_k = thread / (BN / 4), b_column = thread % (BN / 4) * (ALIGNED ? 4 : 1);
    const unsigned a_to = tiles_at + 4 * (a_k * A_WIDTH + a_row);
    const unsigned b_to = tiles_at + 4 * (BK * A_WIDTH + b_k * BN + b_column);
    const float *a_from[A_COPIES], *b_from[B_COPIES];
    bool a_wanted[A_COPIES], b_wanted[4];
    #pragma unroll
    for (int i = 0; i < A_COPIES; ++i) {
        const int row = first_row + a_row + i * A_ROWS;
        a_from[i] = A + (size_t)row * K + a_k;
        a_wanted[i] = row < M;
    }
    #pragma unroll
    for (int i = 0; i < B_COPIES; ++i)
        b_from[i] = B + (size_t)(b_k + i * B_ROWS) * N + first_column + b_column;
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        b_wanted[j] = first_column + b_column + j * (BN / 4) < N;

    // Starts to copy the next `terms` columns of A and rows of B to the stage at byte `to`.
    auto copy_stage = [&](unsigned to, int terms) {
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            #pragma unroll
            for (int k = 0; k < BK; k += 8)
                copy<4>(a_to + to + 4 * (k * A_WIDTH + i * A_ROWS), a_from[i] + k,
                        a_wanted[i] && (terms == BK || a_k + k < terms));
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            #pragma unroll
            for (int j = 0; j < (ALIGNED ? 1 : 4); ++j)
                copy<ALIGNED ? 16 : 4>(b_to + to + 4 * (i * B_ROWS * BN + j * (BN / 4)),
                                       b_from[i] + j * (BN / 4),
                                       b_wanted[j] && (terms == BK || b_k + i * B_ROWS < terms));
        end_of_group();
    };

    // `full` is BK, since blockDim.z is always 1, but the compiler cannot know that. A pointer that
    // advances by an unknown step takes one multiply-add. With a constant step the compiler uses
    // two 32-bit additions, and may repeat the second one before every copy.
    const int full = BK * blockDim.z;
    auto move_on = [&](int terms) {
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            a_from[i] += terms == BK ? full : terms;
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            b_from[i] += terms * (long long)N;
    };

    // Fill the pipeline: first the short step, then full ones.
    const int steps = (K + BK - 1) / BK;
    const int ragged = K - (steps - 1) * BK;
    copy_stage(0, ragged);
    move_on(ragged);
    #pragma unroll
    for (int stage = 1; stage < STAGES - 1; ++stage) {
        if (stage < steps) {
            copy_stage(4 * STAGE * stage, BK);
            move_on(BK);
        } else
            end_of_group();
    }

    float sum[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            sum[i][j] = 0.0f;

    const char *const a_tile = (const char *)(tiles + m);
    const char *const b_tile = (const char *)(tiles + BK * A_WIDTH + n);
    float a[2][TM], b[2][TN];  // for this k and for the next
    unsigned current = 0, spare = 4 * STAGE * (STAGES - 1);  // stages, in bytes
    wait_for_stage();
    fetch<TM, LM>(a[0], (const float *)a_tile);
    fetch<TN, LN>(b[0], (const float *)b_tile);

    #pragma unroll 1
    for (int left = steps; left > 0; --left) {
        const float *const a_stage = (const float *)(a_tile + current);
        const float *const b_stage = (const float *)(b_tile + current);
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            const int now = k % 2, next = 1 - now;
            if (k < BK - 1) {
                fetch<TM, LM>(a[next], a_stage + (k + 1) * A_WIDTH);
                fetch<TN, LN>(b[next], b_stage + (k + 1) * BN);
            } else {
                wait_for_stage();
                spare = current;
                current = current == 4 * STAGE * (STAGES - 1) ? 0 : current + 4 * STAGE;
                fetch<TM, LM>(a[next], (const float *)(a_tile + current));
                fetch<TN, LN>(b[next], (const float *)(b_tile + current));
            }

            // The spare stage has been free since the barrier of the previous step.
            if (k == BK / 2) {
                if (left > STAGES - 1)
                    copy_stage(spare, BK);
                else
                    end_of_group();
            }

            // Back and forth: the last value of B in one row of products is the first in the next.
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sum[i][j] += a[now][i] * b[now][j];
                }
        }
        move_on(BK);
    }

    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + m + i / 4 * 4 * LM + i % 4;
        #pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int column = first_column + n + j * LN;
            float *const to = C + (size_t)row * N + column;
            if (ALIGNED && row < M && column < N)
                *(float4 *)to = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
            #pragma unroll
            for (int q = 0; q < 4; ++q)
                if (!ALIGNED && row < M && column + q < N)
                    to[q] = sum[i][j + q];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
pipelined(const float *A, const float *B, float *C, int M, int N, int K)
{
    if (N % 4 == 0)
        product<true>(A, B, C, M, N, K);
    else
        product<false>(A, B, C, M, N, K);
}
