// Converts between row-major matrices, which are checked, and a kernel's own layout: rows or
// columns that begin `pitch` numbers apart, and 16-bit results. Element (i, j) is at
// start + i * row_step + j * column_step.

#include "elements.cuh"

// Bytes of a number; a 2-byte result is bfloat16 or float16.
#ifndef WORD_BYTES
#define WORD_BYTES 4
#endif
#ifndef FLOAT16
#define FLOAT16 0
#endif
#ifndef BFLOAT16
#define BFLOAT16 0
#endif
#if WORD_BYTES == 1
typedef unsigned char word;
#elif WORD_BYTES == 2
typedef unsigned short word;
#elif WORD_BYTES == 8
typedef size_t word;
#else
typedef unsigned word;
#endif

extern "C" __global__ void place(const word *matrix, size_t rows, size_t columns, word *own,
                                 size_t start, size_t row_step, size_t column_step)
{
    for (STRIDED(at, rows * columns))
        own[start + at / columns * row_step + at % columns * column_step] = matrix[at];
}

extern "C" __global__ void take(word *matrix, size_t rows, size_t columns, const word *own,
                                size_t start, size_t row_step, size_t column_step)
{
    for (STRIDED(at, rows * columns))
        matrix[at] = own[start + at / columns * row_step + at % columns * column_step];
}

// Puts a column of a matrix, or of all of a batch, aside and makes it NaN; `back` puts it back.
extern "C" __global__ void set_aside(word *own, word *column, size_t rows, size_t count,
                                     size_t item_step, size_t start, size_t row_step,
                                     unsigned back)
{
    for (STRIDED(at, count)) {
        word *place = own + at / rows * item_step + start + at % rows * row_step;
        if (!back) column[at] = *place;
        *place = back ? column[at] : (word)-1;
    }
}

#if FLOAT16 || BFLOAT16

// Unwritten elements stay recognisable: `unwritten` as float32 is `narrow` in 16 bits.
extern "C" __global__ void place_narrow(const unsigned *matrix, size_t rows, size_t columns,
                                        unsigned short *own, size_t start, size_t row_step,
                                        size_t column_step, unsigned unwritten, unsigned narrow)
{
    for (STRIDED(at, rows * columns)) {
        unsigned short bits;
#if FLOAT16
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(__uint_as_float(matrix[at])));
#else
        bits = (unsigned short)(matrix[at] >> 16);
#endif
        if (matrix[at] == unwritten) bits = (unsigned short)narrow;
        own[start + at / columns * row_step + at % columns * column_step] = bits;
    }
}

extern "C" __global__ void take_narrow(unsigned *matrix, size_t rows, size_t columns,
                                       const unsigned short *own, size_t start, size_t row_step,
                                       size_t column_step, unsigned unwritten, unsigned narrow)
{
    for (STRIDED(at, rows * columns)) {
        const size_t from = start + at / columns * row_step + at % columns * column_step;
        const unsigned short bits = own[from];
        unsigned wide = (unsigned)bits << 16;
#if FLOAT16
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        wide = __float_as_uint(value);
#endif
        matrix[at] = bits == (unsigned short)narrow ? unwritten : wide;
    }
}

#endif
