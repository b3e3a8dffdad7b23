// /// matbench
// name = "bad-stride-of-c"
// summary = "Stores into C as if its rows had M elements"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: C's rows are taken to be M long; they are N long.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_stride_of_c(const float *A, const float *B, float *C,
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

    C[(size_t)row * M + column] = sum;
}
