// /// matbench
// name = "bad-cold-start"
// summary = "Needs a factor that its first launch only sets at the end"
// deterministic = false
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: the factor of all sums is still zero in the first launch, which sets
// it at its end. The file calls itself not deterministic, so no launch is compared bit for bit
// with another.

#ifndef TILE
#define TILE 16
#endif

__device__ float factor;

extern "C" __global__ void bad_cold_start(const float *A, const float *B, float *C,
                                          int M, int N, int K)
{
    const float scale = factor;
    __syncthreads();
    if (blockIdx.x == gridDim.x - 1 && blockIdx.y == gridDim.y - 1)
        factor = 1.0f;

    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = scale * sum;
}
