// Inputs of the reversal, and the comparison of its result. Its one vector stands for both of
// `dot_inputs`.

#include "vectors.cuh"

static __device__ unsigned word_at(size_t key, size_t i, unsigned bits, int vary)
{
    return vary ? bits ^ (unsigned)drawn(key, i + 100) : bits;
}

extern "C" __global__ void reverse_inputs(const unsigned *A, const unsigned *B, size_t key, size_t N,
                                          int most, int vary, unsigned *a, unsigned *b, unsigned *C,
                                          size_t C_words, unsigned poison)
{
    for (STRIDED(i, N))
        a[i] = word_at(key, i, A[i], vary);
    for (STRIDED(i, C_words))
        C[i] = poison;
}

extern "C" __global__ void reverse_compare(const unsigned *A, size_t key, size_t N, int vary,
                                           const unsigned *C, size_t *partial)
{
    size_t wrong = 0, first = NONE;
    for (STRIDED(i, N))
        if (C[N - 1 - i] != word_at(key, i, A[i], vary)) {
            ++wrong;
            if (N - 1 - i < first) first = N - 1 - i;
        }
    REPORT(partial, wrong, first, 0.0)
}
