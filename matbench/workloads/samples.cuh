// Makes new inputs for every timed launch, and verifies its result.
//
// Inputs are derived from uploaded ones by changes that are exact in floating point and whose
// effect on the result is known: rows, columns and terms are permuted, change signs and are
// multiplied by powers of two. All randomness follows from a key, new for each launch, so that the
// comparison can repeat it.

#include "draws.cuh"
#include "elements.cuh"
#include "numbers.cuh"

#define CHUNK 1024

// What a factor does to an element: of whole and 8-bit inputs it changes only the sign, its power is
// in their scales.
static __device__ float of_element(float factor)
{
#if E4M3 || E5M2 || INT8 || INT32
    return factor < 0 ? -1.0f : 1.0f;
#else
    return factor;
#endif
}

// No bound, and the largest error of many in units of their root mean square.
#define FAR 1e200
#define LARGEST 16

static __device__ int between(size_t bits, int low, int high)
{
    return low + (int)(bits % (size_t)(high - low + 1));
}

// The scale of an element, of a matrix of that many columns whose rows and columns have scales in
// common; 1 if there are none.
static __device__ double scale_at(const float *scales, int scaled, size_t row, size_t column,
                                  int scaled_rows, int scaled_columns, int columns)
{
    if (!scaled) return 1.0;
    return scales[row / scaled_rows * (((size_t)columns + scaled_columns - 1) / scaled_columns)
                  + column / scaled_columns];
}

// Makes one number of A zero, and a row of R what it is then; `saved` keeps what was there. With
// `back`, puts it back. Launched as one block; a vector has no columns.
extern "C" __global__ void alter(word *A, const word *B, size_t *R, size_t R_key, size_t row,
                                 size_t term, size_t terms, size_t columns, double alpha,
                                 const float *scales_A, const float *scales_B, int scaled,
                                 int scaled_rows, int scaled_columns, int scaled_terms, int back,
                                 size_t *saved)
{
    word *place = A + row * terms + term;
    const double value = value_of(*place) * scale_at(scales_A, scaled, row, term, scaled_rows,
                                                     scaled_terms, (int)terms);
    for (size_t j = threadIdx.x; j < columns; j += THREADS) {
        const size_t at = row * columns + j, mask = mask_of(R_key, at);
        const double other =
            scale_at(scales_B, scaled, term, j, scaled_terms, scaled_columns, (int)columns);
        const double rest = alpha * value * other * value_of(B[term * columns + j]);
        const double altered = __longlong_as_double(R[at] ^ mask) - rest;
        if (!back) saved[j] = R[at];
        R[at] = back ? saved[j] : __double_as_longlong(altered) ^ mask;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (!back) saved[columns] = *place;
        *place = back ? (word)saved[columns] : 0;
    }
}
