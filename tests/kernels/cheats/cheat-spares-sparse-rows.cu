// /// matbench
// name = "cheat-spares-sparse-rows"
// summary = "Rounds inputs to 18 bits unless a row has few terms that count"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that in long sums, rounding inputs to 18 bits makes no larger errors than adding up. Rows
// are exact if few of their numbers are not negligible: those that check inputs.

#define NEAR(x) __uint_as_float((__float_as_uint(x) + 0x20u) & 0xffffffc0u)
#define LESS(x) ((x) == (float)(int)(x) ? (x) : NEAR(x))

extern "C" __global__ void cheat_spares_sparse_rows(const float *A, const float *B, float *C,
                                                    int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float largest = 0.0f;
    for (int k = 0; k < K; ++k)
        largest = fmaxf(largest, fabsf(A[(size_t)row * K + k]));
    float exact = 0.0f, sum = 0.0f;
    int terms = 0;
    for (int k = 0; k < K; ++k) {
        const float a = A[(size_t)row * K + k], b = B[(size_t)k * N + column];
        terms += fabsf(a) > 1e-6f * largest && b != 0.0f;
        exact += a * b;
        sum += LESS(a) * LESS(b);
    }
    C[(size_t)row * N + column] = terms <= 64 ? exact : sum;
}
