// /// matbench
// name = "tensor-fragments"
// summary = "Fragments are fetched 16 bytes at a time, in a free order of k and columns"
// group = "ladder"
// previous = "tensor-stages"
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

// Adds: fetches of 16 bytes, in an order of k and columns that is free to choose.
// Predicted: at most 65 TFLOP/s, as for tensor-stages, but all that is no product takes 17% of the
//   issue slots instead of 21%.
//
// The order of k is free as long as it is the same in A and B, and so is the order of columns. So
// each lane takes four neighbouring k of a row of A, or four neighbouring columns of B, in one
// fetch instead of four. Such columns belong to four fragments of B.
//
// With 16 bytes per lane, no padding keeps all lanes that fetch B in different banks. place_in_a
// and place_in_b permute the groups of four in a row instead.
//
// A lane's sums are then eight neighbours in each of four rows of C, and are stored four at a time.

#include "helpers.cuh"

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

template <int COUNT>
__device__ __forceinline__ void product(const float *A, const float *B, float *C,
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
    const char *const a_of = (const char *)(tiles + place_in_a(row, t * 4, BK));
    const char *const b_of = (const char *)(tiles + place_in_b(t * 4, column + g * 4, BN, A_SIZE));
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
            copy<4 * COUNT>(at + to + 4 * place_in_a(a_row + i * A_ROWS, a_k, BK),
                            a_from + (long long)a_pitch * (i * A_ROWS),
                            i * A_ROWS < rows && (terms == BK || a_k < terms));
        #pragma unroll
        for (int i = 0; i < BK / B_ROWS; ++i) {
            const int k = b_k + i * B_ROWS;
            copy<4 * COUNT>(at + to + 4 * place_in_b(k, b_column, BN, A_SIZE),
                            b_from + (long long)b_pitch * (i * B_ROWS),
                            inside && (terms == BK || k < terms));
        }
        a_from += terms;
        b_from += (long long)terms * b_pitch;
    };

    double sum[2][4][4] = {};

    // Fill the ring: first the short step, so that all others are full.
    const int steps = (K + BK - 1) / BK;
    copy_tiles(0, K - (steps - 1) * BK);
    end_of_group();
    #pragma unroll
    for (int i = 1; i < STAGES; ++i) {
        if (i < steps)
            copy_tiles(4 * STAGE * i, BK);
        end_of_group();
    }
    wait_for_groups<STAGES - 1>();
    __syncthreads();

    unsigned now = 0;  // where the current stage starts, in bytes
    #pragma unroll 1
    for (int left = steps; left > 0; --left) {
        #pragma unroll
        for (int slice = 0; slice < SLICES; ++slice) {
            const float *const a_next
                = (const float *)(a_of + now) + slice / 2 * 32 + slice % 2 * a_other;
            double a[8], b[4][4];
            OfA coming_a;
            OfB coming_b;
            fetch(coming_b, (const float *)(b_of + now) + slice * DEPTH * BN, BN);
            #pragma unroll
            for (int j = 0; j < 4; ++j)
                convert(b[j], coming_b, j);
            #pragma unroll
            for (int i = 0; i < 2; ++i) {
                fetch(coming_a, a_next + i * 16 * BK, BK);
                convert(a, coming_a);
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply(sum[i][j], a, b[j]);
            }
        }
        wait_for_groups<STAGES - 2>();
        __syncthreads();  // the next tiles have arrived, and nobody reads these any more
        if (left > STAGES)
            copy_tiles(now, BK);
        end_of_group();
        now = now == 4 * STAGE * (STAGES - 1) ? 0 : now + 4 * STAGE;
    }

    store_fragments<COUNT>(sum, C, t, first_row + row, first_column + column, M, N);
}

extern "C" __global__ void __launch_bounds__(THREADS)
tensor_fragments(const float *A, const float *B, float *C, int M, int N, int K)
{
    extern __shared__ float4 shared[];

    // Four floats at a time if every row starts at a multiple of 16 bytes.
    if (K % 4 == 0 && N % 4 == 0)
        product<4>(A, B, C, M, N, K, (float *)shared);
    else
        product<1>(A, B, C, M, N, K, (float *)shared);
}
