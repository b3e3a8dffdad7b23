// /// matbench
// name = "bad-row-behind-the-end"
// summary = "Walks one row too far"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// ///

// The mistake, in block-1d: the walk over the rows ends after row M, where the last one is M - 1.

extern "C" __global__ void bad_row_behind_the_end(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    for (int row = blockIdx.x; row <= M; row += gridDim.x) {
        for (int column = threadIdx.x; column < N; column += blockDim.x) {
            // Multiply: all threads of the block read the same row of A.
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
    }
}
