// /// matbench
// name = "bad-first-row-left-out"
// summary = "Starts with the second row"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// ///

// The mistake, in block-1d: the walk over the rows starts one row too far down.

extern "C" __global__ void bad_first_row_left_out(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    for (int row = blockIdx.x + 1; row < M; row += gridDim.x) {
        for (int column = threadIdx.x; column < N; column += blockDim.x) {
            // Multiply: all threads of the block read the same row of A.
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
    }
}
