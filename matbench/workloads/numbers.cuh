// A number as it is stored: a word of WORD_BYTES bytes, or of 4 if that is not defined.
#if WORD_BYTES == 1
typedef unsigned char word;
#elif WORD_BYTES == 2
typedef unsigned short word;
#elif WORD_BYTES == 8
typedef size_t word;
#else
typedef unsigned word;
#endif

// Its value is float32 if no other type is defined.
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
