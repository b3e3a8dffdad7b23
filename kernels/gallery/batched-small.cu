// /// matbench
// name = "batched-small"
// summary = "Many small products, one block each: alpha·A·B + beta·C for every item of a batch"
// group = "gallery"
// previous = "tiled"
// args = ["A", "B", "C", "M", "N", "K", "lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c",
//         "alpha", "beta"]
// batch = [64]
// [sweep]
// TILE = [8, 16, 32]
// [launch]
// where = ["TILE * TILE <= max_threads_per_block"]
// block = ["TILE", "TILE"]
// grid = ["batch"]
// [model]
// global_loads = "batch * K * (M * ceil_div(N, TILE) + N * ceil_div(M, TILE))"
// ///

// A product of 16×16 matrices keeps only one block busy, and not for long: launched one by one,
// small products leave most of a GPU idle and spend their time on launches. So they come in
// batches. The matrices of all products are in three arrays, those of product i at i times a
// stride, and one launch computes all of them. Each block takes one product. Blocks need nothing
// from each other, so with enough products every multiprocessor has work.
//
// A block computes the T×T tiles of its C one after the other, each as in tiled: correct for every
// size, and fast if C is a few tiles.
//
// The result is alpha·A·B + beta·C. In BLAS, C is not read if beta is 0: it may then hold anything,
// even NaN, and 0·NaN would be NaN.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void batched_small(const float *A, const float *B, float *C, int M, int N,
                                         int K, int lda, int ldb, int ldc, size_t stride_a,
                                         size_t stride_b, size_t stride_c, float alpha, float beta)
{
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const float *a_of = A + blockIdx.x * stride_a, *b_of = B + blockIdx.x * stride_b;
    float *c_of = C + blockIdx.x * stride_c;

    for (int first_row = 0; first_row < M; first_row += TILE)
        for (int first_column = 0; first_column < N; first_column += TILE) {
            const int row = first_row + ty, column = first_column + tx;
            float sum = 0.0f;

            for (int start = 0; start < K; start += TILE) {
                // Stage: one value of each tile per thread, zero beyond the edges.
                a[ty][tx] = row < M && start + tx < K ? a_of[(size_t)row * lda + start + tx] : 0.0f;
                b[ty][tx] = column < N && start + ty < K ? b_of[(size_t)(start + ty) * ldb + column]
                                                         : 0.0f;
                __syncthreads();

                // Multiply: row ty of one tile with column tx of the other.
                for (int k = 0; k < TILE; ++k)
                    sum += a[ty][k] * b[k][tx];
                __syncthreads();  // nobody overwrites a tile that somebody still reads
            }

            if (row < M && column < N) {
                float *c = &c_of[(size_t)row * ldc + column];
                *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;
            }
        }
}
