// /// matbench
// name = "bad-block-shape-swapped"
// summary = "The block is as wide as C is high"
// [launch]
// where = ["M * N <= max_threads_per_block", "M <= max_block_x", "N <= max_block_y"]
// block = ["M", "N"]
// grid = [1]
// ///

// The mistake, in single-block: the block has M threads across and N down.

extern "C" __global__ void bad_block_shape_swapped(const float *A, const float *B, float *C,
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
