// /// matbench
// name = "bad-rows-step-by-block"
// summary = "Walks the rows by the block's width"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(M, 16)"]
// ///

// The mistake, in block-1d: a block goes on by blockDim.x rows and not by gridDim.x, so most rows
// beyond the grid's 16 are never written.

extern "C" __global__ void bad_rows_step_by_block(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    for (int row = blockIdx.x; row < M; row += blockDim.x) {
        for (int column = threadIdx.x; column < N; column += blockDim.x) {
            // Multiply: all threads of the block read the same row of A.
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
    }
}
