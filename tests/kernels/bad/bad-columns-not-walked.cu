// /// matbench
// name = "bad-columns-not-walked"
// summary = "A thread computes one column and stops"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// ///

// The mistake, in block-1d: a thread does not go on to the columns beyond the block's width.

extern "C" __global__ void bad_columns_not_walked(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        const int column = threadIdx.x;
        if (column < N) {
            // Multiply: all threads of the block read the same row of A.
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
    }
}
