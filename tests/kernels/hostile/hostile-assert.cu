// /// matbench
// name = "hostile-assert"
// summary = "Fails an assertion"
// requires = ["cuda"]
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The assertion that N is negative fails.

#ifndef TILE
#define TILE 16
#endif

#include <assert.h>

extern "C" __global__ void hostile_assert(const float *A, const float *B, float *C,
                                          int M, int N, int K)
{
    assert(N < 0);

    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
