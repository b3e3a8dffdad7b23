// /// matbench
// name = "kahan"
// summary = "T×T tiles with compensated summation: the error no longer grows with K"
// previous = "tiled"
// [sweep]
// TILE = [8, 16, 32]
// [launch]
// where = ["TILE * TILE <= max_threads_per_block"]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// [model]
// global_loads = "2 * M * N * K / TILE"
// ///

// As in tiled, a block computes one T×T tile of C and a thread one element. But a thread also keeps
// what each addition rounds away and returns it with the next term (W. Kahan, "Further remarks on
// reducing truncation errors", Comm. ACM 8, 1965). The error no longer grows with K; the cost is
// four additions per term instead of one.
//
// Algebraically the compensation is zero, so a compiler that may reorder float arithmetic removes
// it: never build this with --use_fast_math or -cl-fast-relaxed-math. Contraction to fused
// multiply-adds does no harm: the only product is the term's, and fused it enters unrounded, which
// is more accurate. The two lines that compute the lost part contain no product.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void kahan(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    float excess = 0.0f;  // the amount by which the last addition rounded up

    for (int start = 0; start < K; start += TILE) {
        // Stage: one value of each tile per thread, zero beyond the edges.
        a[ty][tx] = row < M && start + tx < K ? A[(size_t)row * K + start + tx] : 0.0f;
        b[ty][tx] = column < N && start + ty < K ? B[(size_t)(start + ty) * N + column] : 0.0f;
        __syncthreads();

        // Multiply: row ty of one tile with column tx of the other, each term less the excess.
        for (int k = 0; k < TILE; ++k) {
            const float term = a[ty][k] * b[k][tx] - excess;
            const float next = sum + term;
            excess = (next - sum) - term;
            sum = next;
        }
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
