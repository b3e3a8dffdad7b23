// /// matbench
// name = "warp-specialized"
// summary = "Four further warps only copy, the others only multiply"
// group = "ladder"
// previous = "pipelined"
// requires = ["cuda", "sm_90a"]
// [sweep]
// BN = [128, 256]
// STAGES = [8]
// [tune]
// BN = [128, 256]
// STAGES = [3, 4, 6, 8]
// [launch]
// where = ["BN % 128 == 0", "BN <= 256", "STAGES >= 2",
//          "STAGES * (32 * (132 + BN) + 16) <= max_shared_bytes_per_block"]
// block = ["BN + 128"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, 128)"]
// shared_bytes = "STAGES * (32 * (132 + BN) + 16)"
// [model]
// global_loads = "M * N * K / BN + M * N * K / 128"
// shared_loads = "M * N * K * (1 / 16 + 1 / 8)"
// ///

// Adds: warps that only copy, beside warps that only multiply, and barriers between the two.
// Predicted: at most 59 TFLOP/s: 91% of the instructions are multiply-adds, and 512 tiles on 132
//   multiprocessors fill 3.88 of 4 rounds.
//
// Four further warps, the producers, keep a ring of stages full. The warps that multiply, the
// consumers, start no copies, keep no pointers for them and meet at no barrier for all.
// - Of a stage's two barriers `full` counts the producers whose copies have come, and `empty` the
//   consuming warps that have fetched its last values. When all have, the next phase begins.
// - Producers leave registers to consumers (setmaxnreg): 128 threads keep 56, and 256 have 224.

#include "helpers.cuh"

#ifndef BN
#define BN 256
#define STAGES 8
#endif
#define BM 128
#define BK 8
#define WM 64
#define WN 64
#define TM 8
#define TN 16
#define WARPS (BM / WM * (BN / WN))  // that multiply
#define PRODUCERS 128                // threads that copy
#define LM (WM / TM)  // rows of lanes in a warp
#define LN (WN / TN)  // and columns of them
#define A_WIDTH (BM + 4)
#define A_BYTES (4 * BK * A_WIDTH)
#define B_BYTES (4 * BK * BN)
#define STAGE (A_BYTES + B_BYTES)
#define A_ROWS (PRODUCERS / 8)         // rows of A that the producers copy at once
#define B_ROWS (PRODUCERS / (BN / 4))  // and of B
#define A_COPIES (BM / A_ROWS)
#define B_COPIES (BK / B_ROWS)

template <bool ALIGNED>  // the rows of B start at multiples of 16 bytes
__device__ __forceinline__ void produce(const float *A, const float *B, int M, int N, int K,
                                        unsigned ring, unsigned full, unsigned empty)
{
    const int thread = threadIdx.x % PRODUCERS;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    // What this thread copies, as in pipelined.
    const int a_k = thread % 8, a_row = thread / 8;
    const int b_k = thread / (BN / 4), b_column = thread % (BN / 4) * (ALIGNED ? 4 : 1);
    const unsigned a_to = ring + 4 * (a_k * A_WIDTH + a_row);
    const unsigned b_to = ring + A_BYTES + 4 * (b_k * BN + b_column);
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
            copy<4>(a_to + to + 4 * (i * A_ROWS), a_from[i],
                    a_wanted[i] && (terms == BK || a_k < terms));
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            #pragma unroll
            for (int j = 0; j < (ALIGNED ? 1 : 4); ++j)
                copy<ALIGNED ? 16 : 4>(b_to + to + 4 * (i * B_ROWS * BN + j * (BN / 4)),
                                       b_from[i] + j * (BN / 4),
                                       b_wanted[j] && (terms == BK || b_k + i * B_ROWS < terms));
    };
    auto move_on = [&](int terms) {
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            a_from[i] += terms;
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            b_from[i] += terms * (long long)N;
    };

    // First the short step, then full ones.
    const int steps = (K + BK - 1) / BK, ragged = K - (steps - 1) * BK;
    copy_stage(0, ragged);
    arrive_when_copied(full);
    move_on(ragged);
    unsigned slot = 1, phase = 1;  // at first every stage is empty, and no wait takes time
    #pragma unroll 1
    for (int left = steps - 1; left > 0; --left) {
        wait(empty + 8 * slot, phase);
        copy_stage(slot * STAGE, BK);
        arrive_when_copied(full + 8 * slot);
        move_on(BK);
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }
    wait(empty + 8 * slot, phase);  // consumers look one stage ahead
    arrive(full + 8 * slot);
}

template <bool ALIGNED>
__device__ __forceinline__ void consume(const float *tiles, unsigned full, float *C,
                                        int M, int N, int K)
{
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int across = lane % 2 + lane / 4 % (LN / 2) * 2;
    const int down = lane / 2 % 2 + lane / 4 / (LN / 2) * 2;
    const int m = warp / (BN / WN) * WM + down * 4;
    const int n = warp % (BN / WN) * WN + across * 4;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    float sum[TM][TN] = {};
    const char *const a_tile = (const char *)(tiles + m);
    const char *const b_tile = (const char *)(tiles + BK * A_WIDTH + n);
    float a[2][TM], b[2][TN];  // for this k and for the next
    unsigned stage = 0, barrier = full, phase = 0;
    wait(barrier, phase);
    fetch<LM>(a[0], (const float *)a_tile);
    fetch<LN>(b[0], (const float *)b_tile);
    #pragma unroll 1
    for (int left = (K + BK - 1) / BK; left > 0; --left) {
        const float *const a_stage = (const float *)(a_tile + stage);
        const float *const b_stage = (const float *)(b_tile + stage);
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            const int now = k % 2, next = 1 - now;
            if (k < BK - 1) {
                fetch<LM>(a[next], a_stage + (k + 1) * A_WIDTH);
                fetch<LN>(b[next], b_stage + (k + 1) * BN);
            } else {  // the last k's values have been fetched
                __syncwarp();
                if (lane == 0)
                    arrive(barrier + 8 * STAGES);  // empty
                stage += STAGE, barrier += 8;
                if (stage == STAGES * STAGE)
                    stage = 0, barrier -= 8 * STAGES, phase ^= 1;
                wait(barrier, phase);
                fetch<LM>(a[next], (const float *)(a_tile + stage));
                fetch<LN>(b[next], (const float *)(b_tile + stage));
            }
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sum[i][j] += a[now][i] * b[now][j];
                }
        }
    }
    store_sums<ALIGNED, LM, LN>(C, sum, first_row + m, first_column + n, M, N);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS + PRODUCERS, BN == 256 ? 1 : 2)
warp_specialized(const float *A, const float *B, float *C, int M, int N, int K)
{
    // A ring of stages, then two barriers per stage.
    extern __shared__ __align__(1024) char shared[];
    const unsigned ring = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned full = ring + STAGES * STAGE, empty = full + 8 * STAGES;
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    start_ring<STAGES>(full, empty, PRODUCERS, WARPS);
    // Registers move from the threads that move data to those that multiply.
    if (warp >= WARPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (N % 4 == 0)
            produce<true>(A, B, M, N, K, ring, full, empty);
        else
            produce<false>(A, B, M, N, K, ring, full, empty);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(BN == 256 ? 224 : 200));
        if (N % 4 == 0)
            consume<true>((const float *)shared, full, C, M, N, K);
        else
            consume<false>((const float *)shared, full, C, M, N, K);
    }
}
