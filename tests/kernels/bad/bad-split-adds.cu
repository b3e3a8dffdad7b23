// /// matbench
// name = "bad-split-adds"
// summary = "Several blocks add to one element without atomicAdd"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)", 2]
// ///

// The mistake, in naive-2d: a block stores the sum of one half of the terms, and another adds the
// rest, which is right if they happen to run one after the other.

extern "C" __global__ void bad_split_adds(const float *A, const float *B, float *C,
                                          int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    float sum = 0.0f;
    for (int k = blockIdx.z; k < K; k += 2)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    if (blockIdx.z > 0)
        sum += C[(size_t)row * N + column];
    C[(size_t)row * N + column] = sum;
}
