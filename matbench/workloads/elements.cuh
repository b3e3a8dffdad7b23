// The type of C's elements, the loop over the elements of matrices, and what blocks report.

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

#define THREADS 256

// Thread 0 then has what all threads of the block had: `add` adds to this thread's what thread `i`
// has. In two steps of 16: on a CPU each barrier costs more than the additions.
#define REDUCE(add)                                                            \
    for (int left = THREADS / 16; left > 0; left /= 16) {                      \
        __syncthreads();                                                       \
        if (threadIdx.x < left)                                                \
            for (int i = threadIdx.x + left; i < 16 * left; i += left) {       \
                add;                                                           \
            }                                                                  \
    }

// A count, the least place, and a sum; `also` reduces more.
#define TOTALS(wrong, first, excess, also)                                     \
    __shared__ size_t counts[THREADS], firsts[THREADS];                        \
    __shared__ double excesses[THREADS];                                       \
    counts[threadIdx.x] = wrong;                                               \
    firsts[threadIdx.x] = first;                                               \
    excesses[threadIdx.x] = excess;                                            \
    REDUCE(counts[threadIdx.x] += counts[i];                                   \
           excesses[threadIdx.x] += excesses[i];                               \
           if (firsts[i] < firsts[threadIdx.x]) firsts[threadIdx.x] = firsts[i]; also)

// Each block's number of wrong elements, the first of them, and the excess of all errors together,
// to be added up by `seal`.
#define REPORT(partial, wrong, first, excess)                                  \
    TOTALS(wrong, first, excess, )                                             \
    if (threadIdx.x == 0) {                                                    \
        partial[3 * (size_t)blockIdx.x] = counts[0];                           \
        partial[3 * (size_t)blockIdx.x + 1] = firsts[0];                       \
        partial[3 * (size_t)blockIdx.x + 2] = __double_as_longlong(excesses[0]); \
    }

#define NONE ((size_t)-1)
