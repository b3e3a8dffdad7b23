// Inputs of the sum of cubes, and its sums. Its one vector stands for both of `dot_inputs`.

#include "vectors.cuh"

static __device__ int digit_of(size_t key, size_t i, int digit, int vary)
{
    return vary ? (digit + (int)(drawn(key, i + 100) % 10)) % 10 : digit;
}

extern "C" __global__ void cubes_inputs(const int *A, const int *B, size_t key, size_t N,
                                        int most, int vary, int *a, int *b, unsigned *C, size_t C_words,
                                        unsigned poison)
{
    for (STRIDED(i, N))
        a[i] = digit_of(key, i, A[i], vary);
    for (STRIDED(i, C_words))
        C[i] = poison;
}

extern "C" __global__ void cubes_sums(const int *A, const int *B, size_t key, size_t N, int vary,
                                      double *sums)
{
    double sum = 0;
    for (STRIDED(i, N)) {
        const int digit = digit_of(key, i, A[i], vary);
        sum += digit * digit * digit;
    }
    REPORT_SUMS(sums, sum, 0.0, 0.0, 0.0)
}
