// /// matbench
// name = "bad-modifies-a"
// summary = "Clears A once it is staged"
// [sweep]
// THREADS = [256]
// [launch]
// where = ["K * 4 <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// shared_bytes = "K * 4"
// ///

// The mistake, in shared-row: A's row is set to zero as soon as it is staged.

extern "C" __global__ void bad_modifies_a(float *A, const float *B, float *C, int M, int N, int K)
{
    extern __shared__ float staged[];

    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        // Stage: the threads copy the row together.
        for (int k = threadIdx.x; k < K; k += blockDim.x) {
            staged[k] = A[(size_t)row * K + k];
            A[(size_t)row * K + k] = 0.0f;
        }
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
