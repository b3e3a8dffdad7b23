// /// matbench
// name = "register-banks"
// summary = "Sums and factors in different register banks, by an order that the compiler keeps"
// group = "ladder"
// previous = "copy-engine"
// requires = ["cuda", "sm_90a"]
// args = ["tensor_map(A, 128, 8)", "tensor_map(B, 8, 256)", "A", "B", "C", "M", "N", "K"]
// [sweep]
// STAGES = [8]
// [tune]
// STAGES = [3, 4, 6, 8, 12, 16]
// [launch]
// where = ["STAGES >= 2", "STAGES * 12304 + 16384 <= max_shared_bytes_per_block"]
// block = [384]
// grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
// shared_bytes = "STAGES * 12304 + 16384"
// [model]
// global_loads = "M * N * K / 256 + M * N * K / 128"
// shared_loads = "M * N * K * (1 / 16 + 1 / 8)"
// ///

// Adds: sums that lie in other register banks than the values of B that they are added up from.
// Predicted: at most 60 TFLOP/s: 93.2% of the loop's instructions are multiply-adds, each reads one
//   register per bank, and 512 tiles fill 3.88 of 4 rounds.
//
// A multiply-add reads three registers, and the register file has two banks, even and odd. If a
// row's products reuse the value of A, each still reads one of B and a sum: one cycle if they are
// in different banks, two if not. The four values of a fetch lie in registers 4i .. 4i + 3, so that
// B's even columns are in even registers. The sums should therefore be the other way round. Sums
// that are stored 16 bytes at a time also lie in registers 4i .. 4i + 3. Here each pair is stored
// to shared memory in reverse order (write_sums), and put right when it is stored to C.
//
// Left to itself the compiler spoils the banks: it computes products in the order in which fetches
// arrive, and moves sums from register to register. keep_order() prevents that.

#include <cuda.h>
#include "helpers.cuh"

#ifndef STAGES
#define STAGES 8
#endif
#define BM 128
#define BN 256
#define BK 8
#define WARPS 8  // that multiply: 2×4, 64×64 elements each
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

__device__ __forceinline__ void consume(char *shared, unsigned ring, unsigned full, float *C,
                                        int M, int N, int K)
{
    const Consumer at(ring, A_BYTES, shared + STAGES * (STAGE + 16));
    float4 a[8];     // four k of each row
    float b[2][16];  // for this k and for the next
    unsigned stage = 0, barrier = full, phase = 0;
    wait(barrier, phase);
    #pragma unroll
    for (int i = 0; i < 8; ++i)
        a[i] = load(at.a_low + 256 * i);
    load_row(b[0], at.b);

    float sum[8][16] = {};
    #pragma unroll 1
    for (int left = (K + BK - 1) / BK; left > 0; --left) {
        unsigned a_next = at.a_high + stage, b_next = at.b + stage;
        #pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == BK - 1) {  // the last k's values have been fetched
                __syncwarp();
                if (at.lane == 0)
                    arrive(barrier + 8 * STAGES);  // empty
                stage += STAGE, barrier += 8;
                if (stage == STAGES * STAGE)
                    stage = 0, barrier -= 8 * STAGES, phase ^= 1;
                wait(barrier, phase);
                a_next = at.a_low + stage, b_next = at.b + stage - B_BYTES;  // k + 1 is BK
            }
            load_row(b[1 - k % 2], b_next + (k + 1) * 4 * BN);
            if (k % 2 == 0)  // often enough, and it takes an issue slot
                keep_order();
            multiply(sum, a, b[k % 2], k, a_next);
        }
    }
    write_sums(sum, at.draft, at.down, at.across, C, blockIdx.y * BM + at.m,
               blockIdx.x * BN + at.n, M, N, false);
}

extern "C" __global__ void __launch_bounds__(384, 1)
register_banks(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
               const float *A, const float *B, float *C, int M, int N, int K)
{
    // A ring of stages, two barriers per stage, then the drafts.
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
        consume(shared, ring, full, C, M, N, K);
    }
}
