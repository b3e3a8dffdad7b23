// How programs that look at matrices go over their elements, and the type of C's.

// C as float32 or float64.
#ifndef DOUBLE_C
#define DOUBLE_C 0
#endif
#if DOUBLE_C
typedef double real;
#else
typedef float real;
#endif

// A thread's elements, of all threads of the launch: for (STRIDED(i, count)).
#define STRIDED(i, count)                                                     \
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count);    \
    i += (size_t)gridDim.x * blockDim.x

