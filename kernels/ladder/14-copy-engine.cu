// /// matbench
// name = "copy-engine"
// summary = "The copy engine (TMA) keeps the ring of stages full, at the request of one thread"
// group = "ladder"
// previous = "untransposed"
// requires = ["cuda", "sm_90a"]
// args = ["tensor_map(A, 128, 8)", "tensor_map(B, 8, 256)", "A", "B", "C", "M", "N", "K"]
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

// Adds: copies by the copy engine (TMA) instead of by 128 threads.
// Predicted: at most 55 TFLOP/s: 93.9% of the instructions are multiply-adds, but many read two
//   registers from one bank, whose order is left to the compiler.
//
// One thread requests boxes of A and B from the copy engine: two instructions per stage, and no
// addresses, pointers or guards. The engine works them out from a description of the matrix, the
// tensor map. It writes a box row by row, so it cannot transpose A, but it can exchange the halves
// of a row as in untransposed: consumers do not change. It arrives at the barrier by bytes, of
// which the producer announces how many will come.
//
// It copies only matrices whose rows start at multiples of 16 bytes; others as before.

#include <cuda.h>
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
#define LM (WM / TM)  // rows of lanes in a warp
#define LN (WN / TN)  // and columns of them
#define A_BYTES (4 * BK * BM)
#define B_BYTES (4 * BK * BN)
#define STAGE (A_BYTES + B_BYTES)

// Calls fill(stage, barrier, k) for one step after the other.
template <typename Fill>
__device__ __forceinline__ void produce(int K, unsigned ring, unsigned full, unsigned empty,
                                        Fill fill)
{
    unsigned slot = 0, phase = 1;  // at first every stage is empty, and no wait takes time
    #pragma unroll 1
    for (int k = 0; k < K; k += BK) {
        wait(empty + 8 * slot, phase);
        fill(ring + slot * STAGE, full + 8 * slot, k);
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
copy_engine(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
            const float *A, const float *B, float *C, int M, int N, int K)
{
    // A ring of stages, then two barriers per stage.
    extern __shared__ __align__(1024) char shared[];
    const unsigned ring = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned full = ring + STAGES * STAGE, empty = full + 8 * STAGES;
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    const bool has_maps = K % 4 == 0 && N % 4 == 0;
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    start_ring<STAGES>(full, empty, has_maps ? 1 : 128, WARPS);
    // Registers move from the threads that move data to those that multiply.
    if (warp >= WARPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (!has_maps)
            produce(K, ring, full, empty, [&](unsigned stage, unsigned barrier, int k) {
                copy_boxes(A, B, M, N, K, stage, barrier, first_row, first_column, k);
            });
        else if (warp == WARPS)
            if (is_elected())
                produce(K, ring, full, empty, [&](unsigned stage, unsigned barrier, int k) {
                    arrive_and_expect(barrier, STAGE);
                    fetch_box(stage, A_map, k, first_row, barrier);
                    fetch_box(stage + A_BYTES, B_map, first_column, k, barrier);
                });
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        consume(warp, ring, full, C, M, N, K);
    }
}
