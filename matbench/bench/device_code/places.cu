// Converts between row-major matrices, which are checked, and a kernel's own layout: rows or
// columns that begin `pitch` numbers apart, and 16-bit results. Element (i, j) is at
// start + i * row_step + j * column_step.

#include "elements.cuh"
#include "words.cuh"

// Copies a matrix to its place, or with `back` from there.
extern "C" __global__ void place(word *matrix, size_t rows, size_t columns, word *own, size_t start,
                                 size_t row_step, size_t column_step, unsigned back)
{
    for (STRIDED(at, rows * columns)) {
        word *there = own + start + at / columns * row_step + at % columns * column_step;
        if (back)
            matrix[at] = *there;
        else
            *there = matrix[at];
    }
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

// The same for results of float16 or bfloat16. Unwritten elements stay recognisable: `unwritten` as
// float32 is `narrow` in 16 bits.
extern "C" __global__ void place_narrow(unsigned *matrix, size_t rows, size_t columns,
                                        unsigned short *own, size_t start, size_t row_step,
                                        size_t column_step, unsigned back, unsigned unwritten,
                                        unsigned narrow)
{
    for (STRIDED(at, rows * columns)) {
        unsigned short *there = own + start + at / columns * row_step + at % columns * column_step;
        unsigned short bits = back ? *there : (unsigned short)(matrix[at] >> 16);
        unsigned wide = (unsigned)bits << 16;
#if FLOAT16
        float value;
        if (!back)
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(__uint_as_float(matrix[at])));
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        wide = __float_as_uint(value);
#endif
        if (back)
            matrix[at] = bits == (unsigned short)narrow ? unwritten : wide;
        else
            *there = matrix[at] == unwritten ? (unsigned short)narrow : bits;
    }
}

#endif
