// The loop over the elements of matrices, and the type of C's elements.

// The type of C's elements: float32, float64 or int32.
#ifndef DOUBLE_C
#define DOUBLE_C 0
#endif
#ifndef INT_C
#define INT_C 0
#endif
#if DOUBLE_C
typedef double real;
#elif INT_C
typedef int real;
#else
typedef float real;
#endif

// A grid-stride loop over a thread's share of the elements: for (STRIDED(i, count)).
#define STRIDED(i, count)                                                     \
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count);    \
    i += (size_t)gridDim.x * blockDim.x

