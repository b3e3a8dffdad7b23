// /// matbench
// name = "graded-double-double"
// summary = "Sums as an unevaluated pair of doubles"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Knuth's two-sum keeps what each addition rounds away; the pair has about 106 bits.

extern "C" __global__ void graded_double_double(const float *A, const float *B, float *C,
                                                int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    double high = 0.0, low = 0.0;
    for (int k = 0; k < K; ++k) {
        const double term = (double)A[(size_t)row * K + k] * B[(size_t)k * N + column];
        const double sum = high + term, moved = sum - high;
        const double lost = (high - (sum - moved)) + (term - moved) + low;
        high = sum + lost;
        low = lost - (high - sum);
    }
    C[(size_t)row * N + column] = (float)(high + low);
}
