// /// matbench
// name = "graded-every-fourth"
// summary = "Four sums of every fourth term, added pairwise"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// As four accumulators, or the lanes of a vector, do.

extern "C" __global__ void graded_every_fourth(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k = 0; k < K; ++k)
        sums[k % 4] = fmaf(A[(size_t)row * K + k], B[(size_t)k * N + column], sums[k % 4]);
    C[(size_t)row * N + column] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
