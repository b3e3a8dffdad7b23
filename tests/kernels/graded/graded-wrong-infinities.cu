// /// matbench
// name = "graded-wrong-infinities"
// summary = "Gives NaN where infinity is due"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// An error term that should be 0 is infinity minus infinity.

extern "C" __global__ void graded_wrong_infinities(const float *A, const float *B, float *C,
                                                   int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum = fmaf(A[(size_t)row * K + k], B[(size_t)k * N + column], sum);
    volatile float same = sum;
    C[(size_t)row * N + column] = sum + (same - sum);
}
