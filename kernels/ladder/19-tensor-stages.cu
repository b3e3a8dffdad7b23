// /// matbench
// name = "tensor-stages"
// summary = "Tiles for the tensor cores come through a ring of stages; blocks share the L2 cache"
// group = "ladder"
// previous = "tensor-cores"
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
//          "4 * STAGES * (BM * (BK + 4) + BK * (BN + 8)) <= max_shared_bytes_per_block"]
// block = ["BM * BN // 32"]
// grid = ["ceil_div(N, BN)", "ceil_div(M, BM)"]
// shared_bytes = "4 * STAGES * (BM * (BK + 4) + BK * (BN + 8))"
// [model]
// global_loads = "M * N * K / BN + M * N * K / BM"
// shared_loads = "M * N * K * (1 / 32 + 1 / 32)"
// ///

// Adds: a ring of stages, and an order of blocks in which they share more of the L2 cache.
// Predicted: at most 65 TFLOP/s, as for tensor-cores, but all that is no product takes 21% of the
//   issue slots instead of 94%.
//
// In tensor-cores a block waits for its loads in every step, and most issue slots go to staging:
// each float takes an address, two comparisons, a load and a store. Here the tiles come by
// asynchronous copies, several steps ahead, as in multistage. Nothing is transposed, so A, too, is
// copied 16 bytes at a time if rows start at multiples of 16 bytes.
//
// If K is not a multiple of BK, the short step comes first, with zeros for what is missing.
//
// Fragments are fetched and converted as before, float by float, from rows with the same padding.

#include "helpers.cuh"

#ifndef BM
#define BM 64
#define BN 64
#define BK 32
#define STAGES 4
#endif
#define TM 2                            // fragments of A, in the 32 rows of a warp
#define TN 4                            // and of B, in its 32 columns
#define ACROSS (BN / 32)                // warps
#define THREADS (BM / 32 * ACROSS * 32)
#define BAND 8                          // rows of tiles in a band
#define A_WIDTH (BK + 4)
#define B_WIDTH (BN + 8)
#define A_SIZE (BM * A_WIDTH)           // floats
#define STAGE (A_SIZE + BK * B_WIDTH)

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
    const int m = warp / ACROSS * 32, n = warp % ACROSS * 32;
    const char *const a_of = (const char *)(tiles + (m + g) * A_WIDTH + t);
    const char *const b_of = (const char *)(tiles + A_SIZE + t * B_WIDTH + n + g);

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
            copy<4 * COUNT>(at + to + 4 * ((a_row + i * A_ROWS) * A_WIDTH + a_k),
                            a_from + (long long)a_pitch * (i * A_ROWS),
                            i * A_ROWS < rows && (terms == BK || a_k < terms));
        #pragma unroll
        for (int i = 0; i < BK / B_ROWS; ++i) {
            const int k = b_k + i * B_ROWS;
            copy<4 * COUNT>(at + to + 4 * (A_SIZE + k * B_WIDTH + b_column),
                            b_from + (long long)b_pitch * (i * B_ROWS),
                            inside && (terms == BK || k < terms));
        }
        a_from += terms;
        b_from += (long long)terms * b_pitch;
    };

    double sum[TM][TN][4] = {};

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
        // Multiply: each of TM fragments of A with each of TN of B.
        const float *const a = (const float *)(a_of + now), *const b = (const float *)(b_of + now);
        #pragma unroll
        for (int k = 0; k < BK; k += 16) {
            double down[8], across[TN][4];
            #pragma unroll
            for (int j = 0; j < TN; ++j)
                #pragma unroll
                for (int p = 0; p < 4; ++p)
                    across[j][p] = b[(k + p * 4) * B_WIDTH + j * 8];
            #pragma unroll
            for (int i = 0; i < TM; ++i) {
                #pragma unroll
                for (int p = 0; p < 8; ++p)
                    down[p] = a[(i * 16 + p % 2 * 8) * A_WIDTH + k + p / 2 * 4];
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    multiply(sum[i][j], down, across[j]);
            }
        }
        wait_for_groups<STAGES - 2>();
        __syncthreads();  // the next tiles have arrived, and nobody reads these any more
        if (left > STAGES)
            copy_tiles(now, BK);
        end_of_group();
        now = now == 4 * STAGE * (STAGES - 1) ? 0 : now + 4 * STAGE;
    }

    #pragma unroll
    for (int i = 0; i < 2 * TM; ++i) {
        const int row = first_row + m + i * 8 + g;
        #pragma unroll
        for (int j = 0; j < 2 * TN; ++j) {
            const int column = first_column + n + j / 2 * 8 + t * 2 + j % 2;
            if (row < M && column < N)
                C[(size_t)row * N + column] = (float)sum[i / 2][j / 2][i % 2 * 2 + j % 2];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
tensor_stages(const float *A, const float *B, float *C, int M, int N, int K)
{
    extern __shared__ float4 shared[];

    // Four floats at a time if every row starts at a multiple of 16 bytes.
    if (K % 4 == 0 && N % 4 == 0)
        product<4>(A, B, C, M, N, K, (float *)shared);
    else
        product<1>(A, B, C, M, N, K, (float *)shared);
}
