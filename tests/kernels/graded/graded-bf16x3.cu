// /// matbench
// name = "graded-bf16x3"
// summary = "Splits inputs into three parts of bfloat16, and multiplies six pairs"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// The three parts hold all 24 bits. Products of the smallest parts are left out.

// Rounded to nearest with so many significant bits.
static __device__ float rounded(float x, int bits)
{
    const unsigned dropped = 24 - bits, number = __float_as_uint(x);
    if ((number >> 23 & 255) == 255)
        return x;
    const unsigned odd = number >> dropped & 1;
    const unsigned sum = number + ((1u << (dropped - 1)) - 1) + odd;
    return __uint_as_float(sum & ~((1u << dropped) - 1));
}

extern "C" __global__ void graded_bf16x3(const float *A, const float *B, float *C,
                                         int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        float a = A[(size_t)row * K + k], b = B[(size_t)k * N + column];
        float a_part[3], b_part[3];
        for (int p = 0; p < 3; ++p) {
            a_part[p] = rounded(a, 8), b_part[p] = rounded(b, 8);
            a -= a_part[p], b -= b_part[p];
        }
        for (int order = 2; order >= 0; --order)
            for (int p = 0; p <= order; ++p)
                sum = fmaf(a_part[p], b_part[order - p], sum);
    }
    C[(size_t)row * N + column] = sum;
}
