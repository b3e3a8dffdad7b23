// /// matbench
// name = "naive-2d"
// summary = "One thread per element in T×T blocks, without shared memory"
// previous = "single-block"
// [sweep]
// TILE = [8, 16, 32]
// [launch]
// where = ["TILE * TILE <= max_threads_per_block"]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// [model]
// global_loads = "2 * M * N * K"
// ///

// A thread computes one element of C and a block one T×T tile of it. Every thread fetches its row
// of A and its column of B for itself: the block asks for each value T times over, and leaves it
// to the caches that most of these requests go no further.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void naive_2d(const float *A, const float *B, float *C, int M, int N, int K)
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
