// /// matbench
// name = "untransposed"
// summary = "A's tile stays as it is stored: it is copied and fetched four k at a time"
// group = "ladder"
// previous = "warp-specialized"
// requires = ["cuda", "sm_90a"]
// [sweep]
// STAGES = [8]
// [tune]
// STAGES = [3, 4, 6, 8, 12, 16]
// [launch]
// where = ["STAGES >= 2", "STAGES * 12304 <= max_shared_bytes_per_block"]
// block = [384]
// grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
// shared_bytes = "STAGES * 12304"
// [model]
// global_loads = "M * N * K / 256 + M * N * K / 128"
// shared_loads = "M * N * K * (1 / 16 + 1 / 8)"
// ///

// Adds: a tile of A that is not transposed, with a swizzle instead of padding.
// Predicted: at most 55 TFLOP/s: 91% of the instructions are multiply-adds, but many read two
//   registers from one bank, whose order is left to the compiler. Less than warp-specialized, if
//   warps wait for them.
//
// A row of the tile is eight k, as in A, so it is copied 16 bytes at a time: two copies per thread
// instead of eight. A thread fetches four k of each of its rows at a time: as many fetches as
// before. A row's values are replaced as soon as the last product with them has started, so 32
// registers are enough. They leave no room for two blocks, so tiles are 128×256.
//
// - In rows 4 to 7 of every eight the halves of a row change places, so that no two of eight rows
//   that are fetched together lie in the same banks. The copy engine writes them like this, too.
// - Where rows do not start at multiples of 16 bytes, copy_boxes copies float by float.

#include "helpers.cuh"

#ifndef STAGES
#define STAGES 8
#endif
#define BM 128
#define BN 256
#define BK 8
#define WM 64
#define WN 64
#define TM 8
#define TN 16
#define WARPS (BM / WM * (BN / WN))  // that multiply
#define PRODUCERS 128                // threads that copy
#define LM (WM / TM)  // rows of lanes in a warp
#define LN (WN / TN)  // and columns of them
#define A_BYTES (4 * BK * BM)
#define B_BYTES (4 * BK * BN)
#define STAGE (A_BYTES + B_BYTES)
#define A_ROWS (PRODUCERS / (BK / 4))  // rows of A that the producers copy at once
#define B_ROWS (PRODUCERS / (BN / 4))  // and of B
#define A_COPIES (BM / A_ROWS)
#define B_COPIES (BK / B_ROWS)

__device__ __forceinline__ void produce(const float *A, const float *B, int M, int N, int K,
                                        unsigned ring, unsigned full, unsigned empty)
{
    const int thread = threadIdx.x % PRODUCERS;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const bool aligned = K % 4 == 0 && N % 4 == 0;  // rows start at multiples of 16 bytes
    // What this thread copies, four floats at a time.
    const int a_k = thread % 2 * 4, a_row = thread / 2;
    const int b_k = thread / (BN / 4), b_column = thread % (BN / 4) * 4;
    const unsigned a_to = ring + 4 * (a_row * BK + (a_k ^ a_row / 4 % 2 * 4));
    const unsigned b_to = ring + A_BYTES + 4 * (b_k * BN + b_column);
    const float *a_from[A_COPIES], *b_from[B_COPIES];
    bool a_wanted[A_COPIES], b_wanted = first_column + b_column < N;
    #pragma unroll
    for (int i = 0; i < A_COPIES; ++i) {
        const int row = first_row + a_row + i * A_ROWS;
        a_from[i] = A + (size_t)row * K + a_k;
        a_wanted[i] = row < M;
    }
    #pragma unroll
    for (int i = 0; i < B_COPIES; ++i)
        b_from[i] = B + (size_t)(b_k + i * B_ROWS) * N + first_column + b_column;

    // Starts to copy the next `terms` columns of A and rows of B to the stage at byte `to`.
    auto copy_stage = [&](unsigned to, int terms) {
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            copy<16>(a_to + to + 4 * (i * A_ROWS * BK), a_from[i],
                     a_wanted[i] && a_k < terms);
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            copy<16>(b_to + to + 4 * (i * B_ROWS * BN), b_from[i],
                     b_wanted && b_k + i * B_ROWS < terms);
    };
    auto move_on = [&](int terms) {
        #pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            a_from[i] += terms;
        #pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            b_from[i] += terms * (long long)N;
    };

    unsigned slot = 0, phase = 1;  // at first every stage is empty, and no wait takes time
    #pragma unroll 1
    for (int k = 0; k < K; k += BK) {
        wait(empty + 8 * slot, phase);
        if (aligned) {
            copy_stage(slot * STAGE, K - k);
            arrive_when_copied(full + 8 * slot);
            move_on(BK);
        } else
            copy_boxes(A, B, M, N, K, ring + slot * STAGE, full + 8 * slot, first_row,
                       first_column, k);
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }
    wait(empty + 8 * slot, phase);  // consumers look one stage ahead
    arrive(full + 8 * slot);
}

__device__ __forceinline__ void consume(int warp, unsigned ring, unsigned full, float *C,
                                        int M, int N, int K)
{
    const int lane = threadIdx.x % 32;
    const int across = lane % 2 + lane / 4 % (LN / 2) * 2;
    const int down = lane / 2 % 2 + lane / 4 / (LN / 2) * 2;
    const int m = warp / (BN / WN) * WM + down;  // and every eighth row of the warp
    const int n = warp % (BN / WN) * WN + across * 4;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const unsigned a_low = ring + m * 32 + down / 4 * 16, a_high = a_low ^ 16;
    const unsigned b_tile = ring + A_BYTES + 4 * n;
    float4 a[TM];    // four k of each row
    float b[2][TN];  // for this k and for the next
    unsigned stage = 0, barrier = full, phase = 0;
    wait(barrier, phase);
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        a[i] = load(a_low + 256 * i);
    load_row(b[0], b_tile);

    float sum[TM][TN] = {};
    #pragma unroll 1
    for (int left = (K + BK - 1) / BK; left > 0; --left) {
        unsigned a_next = a_high + stage, b_next = b_tile + stage;
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == BK - 1) {  // the last k's values have been fetched
                __syncwarp();
                if (lane == 0)
                    arrive(barrier + 8 * STAGES);  // empty
                stage += STAGE, barrier += 8;
                if (stage == STAGES * STAGE)
                    stage = 0, barrier -= 8 * STAGES, phase ^= 1;
                wait(barrier, phase);
                a_next = a_low + stage, b_next = b_tile + stage - B_BYTES;  // k + 1 is BK
            }
            load_row(b[1 - k % 2], b_next + (k + 1) * 4 * BN);
            #pragma unroll
            for (int i = 0; i < TM; ++i) {
                const float four[4] = {a[i].x, a[i].y, a[i].z, a[i].w};
                #pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 == 0 ? step : TN - 1 - step;
                    sum[i][j] += four[k % 4] * b[k % 2][j];
                }
                if (k % 4 == 3)
                    a[i] = load(a_next + 256 * i);
            }
        }
    }
    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + m + i * 8, column = first_column + n;
        #pragma unroll
        for (int j = 0; j < TN; j += 4)
            store4(C + (size_t)row * N, column + j * 4, row < M ? N : 0, N % 4 == 0,
                   make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]));
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
untransposed(const float *A, const float *B, float *C, int M, int N, int K)
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
        produce(A, B, M, N, K, ring, full, empty);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        consume(warp, ring, full, C, M, N, K);
    }
}
