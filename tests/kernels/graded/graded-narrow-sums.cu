// /// matbench
// name = "graded-narrow-sums"
// summary = "Rounds each partial sum to 11 bits"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// As sums in float16 would be, but with the exponents of float.

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

extern "C" __global__ void graded_narrow_sums(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum = rounded(fmaf(A[(size_t)row * K + k], B[(size_t)k * N + column], sum), 11);
    C[(size_t)row * N + column] = sum;
}
