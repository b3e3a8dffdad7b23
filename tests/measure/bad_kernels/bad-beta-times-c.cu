// /// matbench
// name = "bad-beta-times-c"
// summary = "Reads C although its factor is zero"
// args = ["A", "B", "C", "M", "N", "K", "0.0"]
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: C is multiplied by beta = 0 instead of being left unread, and zero
// times NaN is NaN.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_beta_times_c(const float *A, const float *B, float *C,
                                            int M, int N, int K, float beta)
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

    C[(size_t)row * N + column] = sum + beta * C[(size_t)row * N + column];
}
