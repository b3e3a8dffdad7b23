// /// matbench
// name = "bad-turns"
// summary = "Sums in an order that depends on which block comes first"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: each block starts its sums at the term that its turn says, and turns
// are taken in order of arrival, on from the launch before: right within rounding, but never the
// same twice.

#ifndef TILE
#define TILE 16
#endif

__device__ int turns;

extern "C" __global__ void bad_turns(const float *A, const float *B, float *C, int M, int N, int K)
{
    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    __shared__ int turn;
    if (threadIdx.x == 0 && threadIdx.y == 0)
        turn = atomicAdd(&turns, 1);
    __syncthreads();
    if (row >= M || column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    int k = (unsigned)turn % K;
    for (int term = 0; term < K; ++term) {
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
        k = k + 1 < K ? k + 1 : 0;
    }

    C[(size_t)row * N + column] = sum;
}
