// /// matbench
// name = "graded-fixed-48"
// summary = "Fixed point: 48 bits below the largest of a row or column"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Two integers of 24 bits for each number, relative to the largest of A's row or B's column.

// The power of two above the largest of a row or column.
static __device__ float largest(const float *X, int K, size_t step)
{
    float found = 0.0f;
    for (int k = 0; k < K; ++k)
        found = fmaxf(found, fabsf(X[k * step]));
    if (found == 0.0f)
        return 1.0f;
    // Exponents near either end stay within the range of floats.
    const int exponent = min(250, max(4, (int)(__float_as_uint(found) >> 23) + 1));
    return __uint_as_float((unsigned)exponent << 23);
}

extern "C" __global__ void graded_fixed_48(const float *A, const float *B, float *C,
                                           int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    const float above = largest(A + (size_t)row * K, K, 1), right = largest(B + column, K, N);
    long long high = 0, middle = 0, low = 0;
    for (int k = 0; k < K; ++k) {
        const double a = (double)A[(size_t)row * K + k] / above * 16777216.0;
        const double b = (double)B[(size_t)k * N + column] / right * 16777216.0;
        const double a_high = rint(a), b_high = rint(b);
        const long long a_low = (long long)rint((a - a_high) * 16777216.0);
        const long long b_low = (long long)rint((b - b_high) * 16777216.0);
        high += (long long)a_high * (long long)b_high;
        middle += (long long)a_high * b_low + a_low * (long long)b_high;
        low += a_low * b_low;
    }
    const double sum = (double)high + ((double)middle + (double)low / 16777216.0) / 16777216.0;
    C[(size_t)row * N + column] = (float)(sum / 281474976710656.0 * above * right);
}
