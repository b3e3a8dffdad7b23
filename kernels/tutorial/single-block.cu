// /// matbench
// name = "single-block"
// summary = "All of C in one block, one element per thread"
// [launch]
// where = ["M * N <= max_threads_per_block", "N <= max_block_x", "M <= max_block_y"]
// block = ["N", "M"]
// grid = [1]
// [model]
// global_loads = "2 * M * N * K"
// ///

// The simplest kernel: one block with the shape of C, in which each thread computes the element at
// its own two indices. So C can be no larger than a block, and the launch uses a single
// multiprocessor.

extern "C" __global__ void single_block(const float *A, const float *B, float *C,
                                        int M, int N, int K)
{
    const int row = threadIdx.y;
    const int column = threadIdx.x;
    if (row >= M || column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
