// /// matbench
// name = "bad-staged-one-short"
// summary = "Stages all but the row's last element"
// [sweep]
// THREADS = [256]
// [launch]
// where = ["K * 4 <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// shared_bytes = "K * 4"
// ///

// The mistake, in shared-row: the loop that stages the row ends one element early, and shared
// memory nobody wrote is read.

extern "C" __global__ void bad_staged_one_short(const float *A, const float *B, float *C,
                                                int M, int N, int K)
{
    extern __shared__ float staged[];

    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        // Stage: the threads copy the row together.
        for (int k = threadIdx.x; k < K - 1; k += blockDim.x)
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
