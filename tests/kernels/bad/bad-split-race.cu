// /// matbench
// name = "bad-split-race"
// summary = "Two blocks work on one element and do not wait for each other"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)", 2]
// ///

// The mistake, in naive-2d: one block stores the sum of most terms, another adds the rest to it,
// and nothing makes the second wait for the first.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_split_race(const float *A, const float *B, float *C,
                                          int M, int N, int K)
{
    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    // Multiply.
    const int quarter = K / 4;
    const int first = blockIdx.z == 0 ? 0 : quarter;
    const int end = blockIdx.z == 0 ? quarter : K;
    float sum = 0.0f;
    for (int k = first; k < end; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    if (blockIdx.z == 0)
        C[(size_t)row * N + column] += sum;  // wrong: only luck lets the other block be there first
    else
        C[(size_t)row * N + column] = sum;
}
