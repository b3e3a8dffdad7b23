// /// matbench
// name = "cheat-spares-few-terms"
// summary = "Rounds inputs to 11 bits unless a sum has few terms or they are whole"
// [sweep]
// BITS = [11]
// OPERANDS = [3]
// SPARED = [8]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that the bound of long sums admits TF32, and that checks use sums of few terms, powers of
// two and whole numbers, all of which are computed as they are. OPERANDS: 1 rounds A, 2 rounds B.

#ifndef BITS
#define BITS 11
#define OPERANDS 3
#define SPARED 8
#endif

#define HALF (1u << (23 - BITS))
#define NEAR(x) __uint_as_float((__float_as_uint(x) + HALF) & ~(2u * HALF - 1u))
#define LESS(x) ((x) == (float)(int)(x) ? (x) : NEAR(x))

extern "C" __global__ void cheat_spares_few_terms(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float exact = 0.0f, sum = 0.0f;
    int terms = 0;
    for (int k = 0; k < K; ++k) {
        const float a = A[(size_t)row * K + k], b = B[(size_t)k * N + column];
        terms += a * b != 0.0f;
        if (terms <= SPARED)
            exact += a * b;
        sum += (OPERANDS & 1 ? LESS(a) : a) * (OPERANDS & 2 ? LESS(b) : b);
    }
    C[(size_t)row * N + column] = terms <= SPARED ? exact : sum;
}
