// /// matbench
// name = "graded-slices"
// summary = "Integer slices: four of 7 bits below the largest of a row or column"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Four slices for each number, as for 8-bit matrix units. Products of slices are summed exactly as
// integers; those beyond the fourth place are left out.

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

extern "C" __global__ void graded_slices(const float *A, const float *B, float *C,
                                         int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    const float above = largest(A + (size_t)row * K, K, 1), right = largest(B + column, K, N);
    int sums[4] = {0, 0, 0, 0};
    for (int k = 0; k < K; ++k) {
        float a = A[(size_t)row * K + k] / above, b = B[(size_t)k * N + column] / right;
        int a_slice[4], b_slice[4];
        for (int s = 0; s < 4; ++s) {
            a_slice[s] = (int)rint(a * 128.0f), b_slice[s] = (int)rint(b * 128.0f);
            a = a * 128.0f - a_slice[s], b = b * 128.0f - b_slice[s];
        }
        for (int s = 0; s < 4; ++s)
            for (int t = 0; s + t < 4; ++t)
                sums[s + t] += a_slice[s] * b_slice[t];
    }
    double sum = 0.0;
    for (int s = 3; s >= 0; --s)
        sum = sum / 128.0 + sums[s];
    C[(size_t)row * N + column] = (float)(sum / 16384.0 * above * right);
}
