// /// matbench
// name = "graded-fp16x3"
// summary = "Splits inputs into three parts of float16"
// exponents = [-14, 15]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Each part holds 11 bits of what the ones before left, 2¹¹ times as large, so that it stays in
// the range of float16. Sums of products of one size are kept apart until the end.

// Rounded to nearest as float16: 11 bits, no more than 65,504, and steps of 2⁻²⁴ below 2⁻¹⁴.
static __device__ float rounded(float x)
{
    if (fabsf(x) < 6.103515625e-5f)
        return rint(x * 16777216.0f) / 16777216.0f;
    const unsigned number = __float_as_uint(x), odd = number >> 13 & 1;
    const float found = __uint_as_float((number + 0xfff + odd) & ~0x1fffu);
    return fabsf(found) <= 65504.0f ? found : found * 3.0e38f;
}

extern "C" __global__ void graded_fp16x3(const float *A, const float *B, float *C,
                                         int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sums[3];
    for (int order = 0; order < 3; ++order)
        sums[order] = 0.0f;
    for (int k = 0; k < K; ++k) {
        float a = A[(size_t)row * K + k], b = B[(size_t)k * N + column];
        float a_part[3], b_part[3];
        for (int p = 0; p < 3; ++p) {
            a_part[p] = rounded(a), b_part[p] = rounded(b);
            a = (a - a_part[p]) * 2048.0f, b = (b - b_part[p]) * 2048.0f;
        }
        for (int order = 0; order < 3; ++order)
            for (int p = 0; p <= order; ++p)
                sums[order] = fmaf(a_part[p], b_part[order - p], sums[order]);
    }
    float sum = 0.0f;
    for (int order = 2; order >= 0; --order)
        sum = sum / 2048.0f + sums[order];
    C[(size_t)row * N + column] = sum;
}
