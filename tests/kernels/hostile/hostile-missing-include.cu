// /// matbench
// name = "hostile-missing-include"
// summary = "Does not compile: an included file is missing"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The file that it includes does not exist.

#ifndef TILE
#define TILE 16
#endif

#include "no_such_file.h"

extern "C" __global__ void hostile_missing_include(const float *A, const float *B, float *C,
                                                   int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
