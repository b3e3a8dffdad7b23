// /// matbench
// name = "graded-wrong-infinities"
// summary = "Gives NaN where infinity is due"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Splitting infinity into parts gives infinity minus infinity.

extern "C" __global__ void graded_wrong_infinities(const float *A, const float *B, float *C,
                                                   int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float a = A[(size_t)row * K + k], b = B[(size_t)k * N + column];
        const float high = __uint_as_float(__float_as_uint(a) & 0xfffff000u);
        sum = fmaf(a - high, b, fmaf(high, b, sum));
    }
    C[(size_t)row * N + column] = sum;
}
