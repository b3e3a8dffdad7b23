// /// matbench
// name = "graded-four-at-once"
// summary = "Four terms at a time onto the running sum, truncated"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// As a tensor core: the products and the running sum are shifted to the largest exponent, cut off
// after 24 bits, and added as integers.

// The unit in the last of so many bits of a number of this size.
static __device__ double unit_of(double x, int bits)
{
    const long long exponent = __double_as_longlong(x) >> 52 & 2047;
    return __longlong_as_double((exponent - bits + 1) << 52);
}

extern "C" __global__ void graded_four_at_once(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float total = 0.0f;
    for (int start = 0; start < K; start += 4) {
        double terms[5];
        double most = fabs((double)total);
        terms[4] = total;
        for (int i = 0; i < 4; ++i) {
            const int k = start + i;
            terms[i] = k < K ? (double)A[(size_t)row * K + k] * B[(size_t)k * N + column] : 0.0;
            most = fmax(most, fabs(terms[i]));
        }
        if (most == 0.0)
            continue;
        double sum = 0.0;
        if (most <= 3.0e38) {
            const double unit = unit_of(most, 24);
            for (int i = 0; i < 5; ++i)
                sum += trunc(terms[i] / unit) * unit;
            // The sum of five may need more bits: cut them off, too.
            sum = sum == 0.0 ? 0.0 : trunc(sum / unit_of(sum, 24)) * unit_of(sum, 24);
        } else {
            for (int i = 0; i < 5; ++i)
                sum += terms[i];
        }
        total = (float)sum;
    }
    C[(size_t)row * N + column] = total;
}
