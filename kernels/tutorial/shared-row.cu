// /// matbench
// name = "shared-row"
// summary = "One block per row, with A's row staged in shared memory"
// previous = "block-1d"
// [sweep]
// THREADS = [256]
// [tune]
// THREADS = [64, 128, 256, 512, 1024]
// [launch]
// where = ["THREADS <= max_threads_per_block", "K * 4 <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// shared_bytes = "K * 4"
// [model]
// global_loads = "M * K + M * N * K"
// ///

// As in block-1d, a block computes a row of C and a thread every blockDim.x-th element of it. But
// the block first copies its row of A to shared memory, whose size is set at launch. The row is
// read once from global memory, and N times from shared memory.

extern "C" __global__ void shared_row(const float *A, const float *B, float *C, int M, int N, int K)
{
    extern __shared__ float staged[];

    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        // Stage: the threads copy the row together.
        for (int k = threadIdx.x; k < K; k += blockDim.x)
            staged[k] = A[(size_t)row * K + k];
        __syncthreads();

        // Multiply: only B is still read from global memory.
        for (int column = threadIdx.x; column < N; column += blockDim.x) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += staged[k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
        __syncthreads();  // nobody stages the next row while somebody still reads this one
    }
}
