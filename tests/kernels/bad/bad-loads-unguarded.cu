// /// matbench
// name = "bad-loads-unguarded"
// summary = "Loads its tiles without asking where the matrices end"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in tiled: both tiles are loaded without a guard, so values from beyond the edges
// are mixed in: only multiples of the tile are right.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_loads_unguarded(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int column = blockIdx.x * TILE + tx;
    float sum = 0.0f;

    for (int start = 0; start < K; start += TILE) {
        // Stage: one value of each tile per thread.
        a[ty][tx] = A[(size_t)row * K + start + tx];
        b[ty][tx] = B[(size_t)(start + ty) * N + column];
        __syncthreads();

        // Multiply: row ty of one tile with column tx of the other.
        for (int k = 0; k < TILE; ++k)
            sum += a[ty][k] * b[k][tx];
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
