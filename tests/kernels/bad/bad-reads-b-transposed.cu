// /// matbench
// name = "bad-reads-b-transposed"
// summary = "Reads B column by column"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: B is read as if it were stored by columns.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_reads_b_transposed(const float *A, const float *B, float *C,
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
        sum += A[(size_t)row * K + k] * B[(size_t)column * K + k];

    C[(size_t)row * N + column] = sum;
}
