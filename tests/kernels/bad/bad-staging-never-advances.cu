// /// matbench
// name = "bad-staging-never-advances"
// summary = "The staging loop advances the wrong variable"
// [sweep]
// THREADS = [256]
// [launch]
// where = ["K * 4 <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// shared_bytes = "K * 4"
// ///

// The mistake, in shared-row: the loop that stages the row advances another variable than the one
// it stages by; it would never end, were it not for a bound that gives up after a hundred
// thousand. Only the row's first blockDim.x elements are staged.

extern "C" __global__ void bad_staging_never_advances(const float *A, const float *B, float *C,
                                                      int M, int N, int K)
{
    extern __shared__ float staged[];

    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        // Stage: the threads copy the row together.
        int other = 0;
        for (int k = threadIdx.x; k < K && other < 100000; other += blockDim.x)
            staged[k] = A[(size_t)row * K + k];
        __syncthreads();

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
