// Inputs of the sum of cubes, and its sums.

static __device__ int digit_of(size_t key, size_t i, int digit, int vary)
{
    return vary ? (digit + (int)(drawn(key, i + 100) % 10)) % 10 : digit;
}

extern "C" __global__ void cubes_inputs(const int *A, size_t key, size_t N, int vary, int *a,
                                        unsigned *C, size_t C_words, unsigned poison)
{
    for (STRIDED(i, N))
        a[i] = digit_of(key, i, A[i], vary);
    for (STRIDED(i, C_words))
        C[i] = poison;
}

extern "C" __global__ void cubes_inputs_changed(const int *A, size_t key, size_t N, int vary,
                                                const int *a, size_t *partial)
{
    size_t wrong = 0;
    for (STRIDED(i, N))
        wrong += a[i] != digit_of(key, i, A[i], vary);
    REPORT(partial, wrong, wrong ? 0 : NONE, 0.0)
}

extern "C" __global__ void cubes_sums(const int *A, size_t key, size_t N, int vary, double *sums)
{
    double sum = 0;
    for (STRIDED(i, N)) {
        const int digit = digit_of(key, i, A[i], vary);
        sum += digit * digit * digit;
    }
    REPORT_SUMS(sums, sum, 0.0, 0.0, 0.0)
}
