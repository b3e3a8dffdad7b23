// /// matbench
// name = "bad-no-barrier-after-staging"
// summary = "Reads the row before it is staged"
// [sweep]
// THREADS = [1024]
// [launch]
// where = ["THREADS <= max_threads_per_block", "K * 4 <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// shared_bytes = "K * 4"
// ///

// The mistake, in shared-row: no barrier stands between staging the row and reading it. It is
// staged from its far end, so that what is read first is staged last.

extern "C" __global__ void bad_no_barrier_after_staging(const float *A, const float *B, float *C,
                                                        int M, int N, int K)
{
    extern __shared__ float staged[];

    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        // Stage: the threads copy the row together.
        for (int k = threadIdx.x; k < K; k += blockDim.x)
            staged[K - 1 - k] = A[(size_t)row * K + K - 1 - k];

        // Multiply: only B still comes from global memory.
        for (int column = threadIdx.x; column < N; column += blockDim.x) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += staged[k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
        __syncthreads();  // nobody stages the next row while somebody still reads this one
    }
}
