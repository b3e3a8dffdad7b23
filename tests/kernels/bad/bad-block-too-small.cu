// /// matbench
// name = "bad-block-too-small"
// summary = "One block of 8×8 threads for any C"
// [launch]
// block = ["min(N, 8)", "min(M, 8)"]
// grid = [1]
// ///

// The mistake, in single-block: the block has at most 8×8 threads, and a thread computes one
// element only.

extern "C" __global__ void bad_block_too_small(const float *A, const float *B, float *C,
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
