// /// matbench
// name = "bad-row-of-16-bits"
// summary = "Keeps the row in 16 bits"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: the row's number wraps to 0 at 65,536, so the rows beyond are never
// written.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_row_of_16_bits(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    // Place: blocks on the last row and column reach over the edges of C.
    const unsigned short row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
