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

// A thread computes one element of C and a block one T×T tile. Every thread reads its row of A and
// its column of B itself. So the block requests each value T times and relies on the caches to
// serve most of these requests.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void naive_2d(const float *A, const float *B, float *C, int M, int N, int K)
{
    // Place: blocks at the bottom and right edges extend beyond C.
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
