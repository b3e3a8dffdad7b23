// What the workloads of one dimension share.

#include "samples.cuh"

// The origin of element i: a rotation, because the order does not affect the sum.
#define ROTATED(i) ((i) + shift < N ? (i) + shift : (i) + shift - N)

#define SUMS 4

// Each block's sums of four numbers per thread.
#define REPORT_SUMS(sums, one, two, three, four)                               \
    __shared__ double parts[SUMS][THREADS];                                    \
    const double own[SUMS] = {one, two, three, four};                          \
    for (int s = 0; s < SUMS; ++s)                                             \
        parts[s][threadIdx.x] = own[s];                                        \
    REDUCE(for (int s = 0; s < SUMS; ++s) parts[s][threadIdx.x] += parts[s][i]) \
    if (threadIdx.x == 0)                                                      \
        for (int s = 0; s < SUMS; ++s)                                         \
            sums[SUMS * (size_t)blockIdx.x + s] = parts[s][0];

// Compares C, or the sum of its parts, one per block of the kernel. Launched as one block. The bound
// is as in `matrix_compare`, where T is the root of the sum of squares.
extern "C" __global__ void sum_compare(const unsigned *C, size_t C_words, int floats,
                                       const double *sums, int blocks, int typical, double of_S,
                                       double of_T, double added, size_t *partial)
{
    __shared__ double totals[SUMS];
    double found = 0, wanted = 0, size = 0, squares = 0;
    for (size_t i = threadIdx.x; i < C_words; i += THREADS)
        found += floats ? (double)__uint_as_float(C[i]) : (double)(int)C[i];
    for (int b = threadIdx.x; b < blocks; b += THREADS) {
        wanted += sums[SUMS * (size_t)b];
        size += sums[SUMS * (size_t)b + 1];
        squares += sums[SUMS * (size_t)b + 2];
    }
    REPORT_SUMS(totals, found, wanted, size, squares)
    if (threadIdx.x == 0) {
        const double total = floats ? (double)(float)totals[0] : totals[0];
        double allowed = of_S * totals[2];
        if (typical)
            allowed = fmin(allowed, LARGEST * of_T * sqrt(totals[3]) + added * totals[2]);
        const int right = fabs(total - totals[1]) <= allowed;
        partial[0] = right ? 0 : 1;
        partial[1] = right ? NONE : 0;
        partial[2] = 0;
    }
}
