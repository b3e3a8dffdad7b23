// Makes new inputs for every timed launch, and verifies its result.
//
// Inputs are derived from uploaded ones by changes that are exact in floating point and whose
// effect on the result is known: rows, columns and terms are permuted, change signs and are
// multiplied by powers of two. All randomness follows from a key, new for each launch, so that the
// comparison can repeat it.

#include "draws.cuh"
#include "elements.cuh"
#include "words.cuh"

#define CHUNK 1024

// An input's numbers are float32 if no other type is defined.
#if INT8
typedef signed char whole;
#else
typedef int whole;
#endif
#if FLOAT64 || INT32
typedef double number;
#else
typedef float number;
#endif

// +2^exponent or -2^exponent.
static __device__ float signed_power(int exponent, int negative)
{
    return __uint_as_float((unsigned)(exponent + 127) << 23 | (unsigned)negative << 31);
}

// An 8-bit floating-point number has FRACTION_BITS bits of fraction; its exponent is BIAS too large.
#if E4M3
#define FRACTION_BITS 3
#else
#define FRACTION_BITS 2
#endif
#define BIAS ((1 << (6 - FRACTION_BITS)) - 1)

static __device__ number value_of(word bits)
{
#if INT8 || INT32
    return (number)(whole)bits;
#elif E4M3 || E5M2
    const int exponent = bits >> FRACTION_BITS & ((1 << (7 - FRACTION_BITS)) - 1);
    const int fraction = bits & ((1 << FRACTION_BITS) - 1);
    const int whole = exponent ? fraction + (1 << FRACTION_BITS) : fraction;
    const int scale = (exponent ? exponent : 1) - BIAS - FRACTION_BITS;
    return (float)whole * signed_power(scale, bits >> 7);
#elif FLOAT64
    return __longlong_as_double(bits);
#elif FLOAT16
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#elif BFLOAT16
    return __uint_as_float((unsigned)bits << 16);
#else
    return __uint_as_float(bits);
#endif
}

// Exact: changes of inputs need no rounding.
static __device__ word word_of(number value)
{
#if INT8 || INT32
    return (word)(whole)value;
#elif E4M3 || E5M2
    const unsigned bits = __float_as_uint(value);
    const int exponent = (int)(bits >> 23 & 255) - 127 + BIAS;
    const unsigned sign = bits >> 31 << 7;
    if (exponent <= 0) // in units of the smallest number
        return (word)(sign | (unsigned)(fabsf(value) * signed_power(BIAS + FRACTION_BITS - 1, 0)));
    const unsigned fraction = bits >> (23 - FRACTION_BITS) & ((1u << FRACTION_BITS) - 1);
    return (word)(sign | (unsigned)exponent << FRACTION_BITS | fraction);
#elif FLOAT64
    return __double_as_longlong(value);
#elif FLOAT16
    word bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#elif BFLOAT16
    return (word)(__float_as_uint(value) >> 16);
#else
    return __float_as_uint(value);
#endif
}

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
        if (back) {
            R[at] = saved[j];
            continue;
        }
        saved[j] = R[at];
        const double other =
            scale_at(scales_B, scaled, term, j, scaled_terms, scaled_columns, (int)columns);
        const double rest = alpha * value * other * value_of(B[term * columns + j]);
        R[at] = __double_as_longlong(__longlong_as_double(R[at] ^ mask) - rest) ^ mask;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (!back) saved[columns] = *place;
        *place = back ? (word)saved[columns] : 0;
    }
}
