// /// matbench
// name = "bad-no-row-guard"
// summary = "Does not ask whether its row exists"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: the guard looks at the column alone, so rows are written behind the
// end of C.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_no_row_guard(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
