// Inputs of the dot product, and its sums.

#include "vectors.cuh"

// The sign of each product is random, which changes the sum. Powers of two move from B to A.
#define SIGN(bits) signed_power(0, (int)((bits) & 1))

extern "C" __global__ void dot_inputs(const word *A, const word *B, size_t key, size_t N, int most,
                                      int vary, word *a, word *b, unsigned *C, size_t C_words,
                                      unsigned poison)
{
    const size_t shift = vary ? drawn(key, 5) % N : 0;
    for (STRIDED(i, N)) {
        const size_t at = ROTATED(i), bits = vary ? drawn(key, i + 100) : 0;
        const float power = vary ? signed_power(between(bits >> 1, 0, most), 0) : 1.0f;
        a[i] = word_of(SIGN(bits) * power * value_of(A[at]));
        b[i] = word_of(1.0f / power * value_of(B[at]));
    }
    for (STRIDED(i, C_words))
        C[i] = poison;
}

// The expected sum, computed after the launch, and the sums of absolute values and of squares.
extern "C" __global__ void dot_sums(const word *A, const word *B, size_t key, size_t N, int vary,
                                    double *sums)
{
    const size_t shift = vary ? drawn(key, 5) % N : 0;
    double sum = 0, size = 0, squares = 0;
    for (STRIDED(i, N)) {
        const size_t at = ROTATED(i), bits = vary ? drawn(key, i + 100) : 0;
        const double product = (double)value_of(A[at]) * value_of(B[at]);
        sum += SIGN(bits) * product;
        size += fabs(product);
        squares += product * product;
    }
    REPORT_SUMS(sums, sum, size, squares, 0.0)
}
