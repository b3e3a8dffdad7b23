// /// matbench
// name = "graded-tf32"
// summary = "Rounds inputs to TF32: 11 significant bits"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// As tensor cores read floats, but sums are rounded to nearest.

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

extern "C" __global__ void graded_tf32(const float *A, const float *B, float *C,
                                       int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum = fmaf(rounded(A[(size_t)row * K + k], 11), rounded(B[(size_t)k * N + column], 11), sum);
    C[(size_t)row * N + column] = sum;
}
