// /// matbench
// name = "graded-saturates"
// summary = "Gives the largest finite number where infinity is due"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// As an output stage that clamps.

extern "C" __global__ void graded_saturates(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum = fmaf(A[(size_t)row * K + k], B[(size_t)k * N + column], sum);
    if (sum > 3.4028234e38f)
        sum = 3.4028234e38f;
    if (sum < -3.4028234e38f)
        sum = -3.4028234e38f;
    C[(size_t)row * N + column] = sum;
}
