// /// matbench
// name = "bad-blocks-swapped"
// summary = "Takes its row from blockIdx.x"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in tiled: a block takes its rows from blockIdx.x and its columns from blockIdx.y,
// the grid being the other way round.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_blocks_swapped(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.x * TILE + ty;
    const int column = blockIdx.y * TILE + tx;
    float sum = 0.0f;

    for (int start = 0; start < K; start += TILE) {
        // Stage: one value of each tile per thread, zero beyond the edges.
        a[ty][tx] = row < M && start + tx < K ? A[(size_t)row * K + start + tx] : 0.0f;
        b[ty][tx] = column < N && start + ty < K ? B[(size_t)(start + ty) * N + column] : 0.0f;
        __syncthreads();

        // Multiply: row ty of one tile with column tx of the other.
        for (int k = 0; k < TILE; ++k)
            sum += a[ty][k] * b[k][tx];
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
