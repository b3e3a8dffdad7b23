// /// matbench
// name = "bad-one-column-too-many"
// summary = "Computes a column beside the last one"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: the guard says > N where it must say >= N, so each row's first element
// is written over, and one element behind the end of C.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_one_column_too_many(const float *A, const float *B, float *C,
                                                   int M, int N, int K)
{
    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column > N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
