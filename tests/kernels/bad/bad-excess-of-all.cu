// /// matbench
// name = "bad-excess-of-all"
// summary = "Takes the whole last term for what was rounded away"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in kahan: the excess is the change of the sum without the term taken off, so each
// term is subtracted again with the next.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_excess_of_all(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    float excess = 0.0f;

    for (int start = 0; start < K; start += TILE) {
        // Stage: one value of each tile per thread, zero beyond the edges.
        a[ty][tx] = row < M && start + tx < K ? A[(size_t)row * K + start + tx] : 0.0f;
        b[ty][tx] = column < N && start + ty < K ? B[(size_t)(start + ty) * N + column] : 0.0f;
        __syncthreads();

        // Multiply: row ty of one tile with column tx of the other, each term less the excess.
        for (int k = 0; k < TILE; ++k) {
            const float term = a[ty][k] * b[k][tx] - excess;
            const float next = sum + term;
            excess = next - sum;
            sum = next;
        }
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
