// Comparisons on the device: on the host they would take longer than the sweep.
//
// Each thread strides over the elements and writes its partial result to `partial`, one row of
// gridDim.x * blockDim.x numbers for each quantity; the host adds up the rows. Tests are written as
// `!(error <= bound)`, so that a NaN is always wrong.
//
// Expected results are masked in memory: every word is XORed with a random word that depends on a
// key and its index. Only the launches below receive the key. A kernel that finds the results
// cannot read them, and one that overwrites them fails.

// Words are compared bit by bit; those of 16-bit inputs have 16 bits, those of 8-bit inputs 8.
#ifndef WORD_BYTES
#define WORD_BYTES 4
#endif
#if WORD_BYTES == 1
typedef unsigned char word;
#elif WORD_BYTES == 2
typedef unsigned short word;
#else
typedef unsigned word;
#endif
// A constant, because dividing by one takes less time than all else that is done to a word.
#ifndef PAGE_WORDS
#define PAGE_WORDS 1
#endif

extern "C" __global__ void fill_words(word *words, size_t start, size_t count, unsigned value)
{
    for (STRIDED(i, count))
        words[start + i] = (word)value;
}

extern "C" __global__ void mask_words(unsigned *words, size_t count, size_t key)
{
    for (STRIDED(i, count))
        words[i] ^= (unsigned)mask_of(key, i);
}

extern "C" __global__ void mask_doubles(size_t *words, size_t count, size_t key)
{
    for (STRIDED(i, count))
        words[i] ^= mask_of(key, i);
}

// One row of `partial`: hashes whose sum changes with any bit of any word.
extern "C" __global__ void hash_words(const word *words, size_t count, size_t key, size_t *partial)
{
    size_t sum = 0;
    for (STRIDED(i, count))
        sum += mixed(drawn(key, i) ^ words[i]);
    partial[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// The same, without the first `left_out` words of each page.
extern "C" __global__ void hash_pages(const unsigned *words, size_t count, const unsigned *left_out,
                                      size_t key, size_t *partial)
{
    size_t sum = 0;
    for (STRIDED(i, count))
        if (i % PAGE_WORDS >= left_out[i / PAGE_WORDS])
            sum += mixed((key + i * 0x9E3779B97F4A7C15) ^ words[i]);
    partial[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Rows of `partial`: the number of words that differ, the first of them (-1: none).
extern "C" __global__ void compare_fill(const word *words, size_t start, size_t count,
                                        unsigned value, double *partial)
{
    const size_t threads = (size_t)gridDim.x * blockDim.x;
    const size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t different = 0;
    for (STRIDED(i, count)) different += words[start + i] != (word)value;
    double first = -1;
    if (different)
        for (STRIDED(i, count))
            if (words[start + i] != (word)value) {
                first = (double)i;
                break;
            }
    partial[t] = (double)different;
    partial[threads + t] = first;
}

// Checks words between lines of `width` words that begin `pitch` words apart, and restores them.
extern "C" __global__ void compare_between(word *words, size_t count, size_t width, size_t pitch,
                                           unsigned value, double *partial)
{
    const size_t threads = (size_t)gridDim.x * blockDim.x;
    const size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    double different = 0, first = -1;
    for (STRIDED(i, count))
        if (i % pitch >= width && words[i] != (word)value) {
            if (different == 0) first = (double)i;
            different += 1;
            words[i] = (word)value;
        }
    partial[t] = different;
    partial[threads + t] = first;
}

extern "C" __global__ void compare_words(const word *words, const word *expected,
                                         size_t count, double *partial)
{
    const size_t threads = (size_t)gridDim.x * blockDim.x;
    const size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    double different = 0, first = -1;
    for (STRIDED(i, count))
        if (words[i] != expected[i]) {
            if (different == 0) first = (double)i;
            different += 1;
        }
    partial[t] = different;
    partial[threads + t] = first;
}

// Floats are compared by value, not by bits: 0 and -0 are equal.
extern "C" __global__ void compare_exact(const unsigned *C, const unsigned *expected, size_t count,
                                         size_t key, int floats, double *partial)
{
    const size_t threads = (size_t)gridDim.x * blockDim.x;
    const size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    double different = 0, first = -1;
    for (STRIDED(i, count)) {
        const unsigned found = C[i], wanted = expected[i] ^ (unsigned)mask_of(key, i);
        const int same =
            floats ? __uint_as_float(found) == __uint_as_float(wanted) : found == wanted;
        if (!same) {
            if (different == 0) first = (double)i;
            different += 1;
        }
    }
    partial[t] = different;
    partial[threads + t] = first;
}

// Rows of `partial`: how many elements are wrong, the first of them (-1: none), how many are not
// finite, the largest |C - R| / |R|, their sum, how many R are not 0, the largest |C - R| / bound.
// The error bound of an element is of_S * S + of_R * |R| + least.
extern "C" __global__ void compare_reference(const real *C, const size_t *R, const size_t *S,
                                             size_t count, size_t R_key, size_t S_key, double of_S,
                                             double of_R, double least, double *partial)
{
    const size_t threads = (size_t)gridDim.x * blockDim.x;
    const size_t t = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    double wrong = 0, first = -1, wild = 0, largest = 0, sum = 0, nonzero = 0, share = 0;
    for (STRIDED(i, count)) {
        const double r = __longlong_as_double(R[i] ^ mask_of(R_key, i));
        const double size = __longlong_as_double(S[i] ^ mask_of(S_key, i));
        const double bound = of_S * size + of_R * fabs(r) + least;
        const double error = fabs((double)C[i] - r);
        if (!(error <= bound)) {
            if (wrong == 0) first = (double)i;
            wrong += 1;
        }
        if (!(error <= 1e300)) {
            wild += 1;
            continue;
        }
        if (bound > 0 && error / bound > share) share = error / bound;
        if (r != 0) {
            const double relative = error / fabs(r);
            if (relative > largest) largest = relative;
            sum += relative;
            nonzero += 1;
        }
    }
    partial[t] = wrong;
    partial[threads + t] = first;
    partial[2 * threads + t] = wild;
    partial[3 * threads + t] = largest;
    partial[4 * threads + t] = sum;
    partial[5 * threads + t] = nonzero;
    partial[6 * threads + t] = share;
}
