// /// matbench
// name = "bad-saturates"
// summary = "Holds B's values to the range from -1 to 1"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: values of B beyond 1 are cut down to 1, as a fixed-point format would.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_saturates(const float *A, const float *B, float *C,
                                         int M, int N, int K)
{
    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * fmaxf(-1.0f, fminf(1.0f, B[(size_t)k * N + column]));

    C[(size_t)row * N + column] = sum;
}
