// Converts between row-major matrices, which are checked, and a kernel's own layout: rows or
// columns that begin `pitch` numbers apart, and 16-bit results. Element (i, j) is at
// start + i * row_step + j * column_step.

#include "elements.cuh"
#include "numbers.cuh"

// What is checked: 16-bit results as float32, all else as it is.
#if FLOAT16 || BFLOAT16
typedef unsigned checked;
#else
typedef word checked;
#endif

// Copies a matrix to its place, or with `back` from there. Unwritten elements stay recognisable:
// `unwritten` as float32 is `narrow` in 16 bits.
extern "C" __global__ void place(checked *matrix, size_t rows, size_t columns, word *own,
                                 size_t start, size_t row_step, size_t column_step, unsigned back,
                                 unsigned unwritten, unsigned narrow)
{
    for (STRIDED(at, rows * columns)) {
        word *there = own + start + at / columns * row_step + at % columns * column_step;
#if FLOAT16 || BFLOAT16
        if (back)
            matrix[at] = *there == narrow ? unwritten : __float_as_uint(value_of(*there));
        else
            *there = matrix[at] == unwritten ? narrow : word_of(__uint_as_float(matrix[at]));
#else
        if (back)
            matrix[at] = *there;
        else
            *there = matrix[at];
#endif
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
