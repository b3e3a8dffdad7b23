// /// matbench
// name = "graded-apart"
// summary = "Eight sums, added as a block reduces them: halves apart first"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// A reduction in shared memory adds element i + 4 to i, then i + 2, then i + 1.

extern "C" __global__ void graded_apart(const float *A, const float *B, float *C,
                                        int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sums[8];
    for (int i = 0; i < 8; ++i)
        sums[i] = 0.0f;
    for (int k = 0; k < K; ++k)
        sums[k % 8] = fmaf(A[(size_t)row * K + k], B[(size_t)k * N + column], sums[k % 8]);
    for (int half = 4; half > 0; half /= 2)
        for (int i = 0; i < half; ++i)
            sums[i] += sums[i + half];
    C[(size_t)row * N + column] = sums[0];
}
