// /// matbench
// name = "bad-grid-one-row-short"
// summary = "Launches one row of tiles too few"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "max(1, M // TILE)"]
// ///

// The mistake, in naive-2d: the grid has M/T rows of blocks, rounded down, and so leaves the last
// rows out.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_grid_one_row_short(const float *A, const float *B, float *C,
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
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
