// /// matbench
// name = "tiled"
// summary = "One element per thread from T×T tiles in shared memory"
// previous = "naive-2d"
// [sweep]
// TILE = [8, 16, 32]
// [launch]
// where = ["TILE * TILE <= max_threads_per_block"]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// [model]
// global_loads = "2 * M * N * K / TILE"
// ///

// Adds: tiles in shared memory, which a block loads once and uses T times.
// Predicted: at most 8.4 TFLOP/s: 2 cycles of shared memory for each multiply-add of a warp.
//
// A block computes one T×T tile of C. A tile of A moves right along K while a tile of B moves down.
// The block stages both in shared memory, where each value is read T times instead of T times from
// global memory.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void tiled(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int column = blockIdx.x * TILE + tx;
    const float *a_row = A + (size_t)row * K, *b_column = B + column;
    float sum = 0.0f;

    for (int start = 0; start < K; start += TILE) {
        // Stage: one value of each tile per thread, zero beyond the edges.
        a[ty][tx] = row < M && start + tx < K ? a_row[start + tx] : 0.0f;
        b[ty][tx] = column < N && start + ty < K ? b_column[(size_t)(start + ty) * N] : 0.0f;
        __syncthreads();

        // Multiply: row ty of one tile with column tx of the other.
        for (int k = 0; k < TILE; ++k)
            sum += a[ty][k] * b[k][tx];
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
