// /// matbench
// name = "graded-fixed-24"
// summary = "Fixed point: 24 bits below the largest of a row or column"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Integers of 24 bits, relative to the largest number of A's row or B's column; sums are exact.

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

extern "C" __global__ void graded_fixed_24(const float *A, const float *B, float *C,
                                           int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    const float above = largest(A + (size_t)row * K, K, 1), right = largest(B + column, K, N);
    long long sum = 0;
    for (int k = 0; k < K; ++k) {
        const double a = (double)A[(size_t)row * K + k] / above;
        const double b = (double)B[(size_t)k * N + column] / right;
        sum += (long long)rint(a * 16777216.0) * (long long)rint(b * 16777216.0);
    }
    // 2⁻⁴⁸, and back to the size of the row and the column.
    C[(size_t)row * N + column] = (float)((double)sum / 281474976710656.0 * above * right);
}
