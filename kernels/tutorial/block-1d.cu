// /// matbench
// name = "block-1d"
// summary = "One block per row; its threads stride over the columns"
// previous = "thread-1d"
// [sweep]
// THREADS = [256]
// [tune]
// THREADS = [64, 128, 256, 512, 1024]
// [launch]
// where = ["THREADS <= max_threads_per_block"]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// [model]
// global_loads = "2 * M * N * K"
// ///

// A block computes one row of C, then continues with the row a whole grid further down. A thread
// computes every blockDim.x-th element of that row. So every grid size and block size is correct:
// they decide which thread computes what, never what is computed.

extern "C" __global__ void block_1d(const float *A, const float *B, float *C, int M, int N, int K)
{
    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        for (int column = threadIdx.x; column < N; column += blockDim.x) {
            // Multiply: all threads of the block read the same row of A.
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
    }
}
