// /// matbench
// name = "graded-in-reverse"
// summary = "Adds the last term first"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// One term after another, from the last.

extern "C" __global__ void graded_in_reverse(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = K - 1; k >= 0; --k)
        sum = fmaf(A[(size_t)row * K + k], B[(size_t)k * N + column], sum);
    C[(size_t)row * N + column] = sum;
}
