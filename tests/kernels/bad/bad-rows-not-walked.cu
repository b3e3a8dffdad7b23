// /// matbench
// name = "bad-rows-not-walked"
// summary = "A block computes one row and stops"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(M, 16)"]
// ///

// The mistake, in block-1d: the grid has at most 16 blocks, and a block does not go on to the rows
// beyond them.

extern "C" __global__ void bad_rows_not_walked(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    const int row = blockIdx.x;
    if (row < M) {
        for (int column = threadIdx.x; column < N; column += blockDim.x) {
            // Multiply: all threads of the block read the same row of A.
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
    }
}
