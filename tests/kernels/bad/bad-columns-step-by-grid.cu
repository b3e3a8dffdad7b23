// /// matbench
// name = "bad-columns-step-by-grid"
// summary = "Walks the columns by the grid's width"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// ///

// The mistake, in block-1d: a thread goes on by gridDim.x columns and not by blockDim.x, so
// columns between are never written.

extern "C" __global__ void bad_columns_step_by_grid(const float *A, const float *B, float *C,
                                                    int M, int N, int K)
{
    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        for (int column = threadIdx.x; column < N; column += gridDim.x) {
            // Multiply: all threads of the block read the same row of A.
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
    }
}
