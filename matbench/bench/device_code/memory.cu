// Fills, masks and hashes memory, and keeps verdicts where no other kernel can forge them.
//
// Expected results are masked in memory: every word is XORed with a random word that depends on a
// key and its index. Only comparisons receive the key. A kernel that finds the results cannot read
// them, and one that overwrites them fails.

#include "draws.cuh"
#include "elements.cuh"
#include "numbers.cuh"

// A constant, because dividing by one takes less time than all else that is done to a word.
#ifndef PAGE_BYTES
#define PAGE_BYTES 4
#endif

extern "C" __global__ void fill_words(word *words, size_t start, size_t count, unsigned value)
{
    for (STRIDED(i, count))
        words[start + i] = (word)value;
}

extern "C" __global__ void mask_words(size_t *words, size_t count, size_t key)
{
    for (STRIDED(i, count))
        words[i] ^= mask_of(key, i);
}

// The finalizer of MurmurHash3 (A. Appleby): a bijection of 32 bits, which a CPU vectorises.
static __device__ unsigned scrambled(unsigned x)
{
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

// One word's part of a hash that changes with any bit of any word: without the key, nobody finds
// two contents of one sum.
static __device__ size_t hash_of(size_t key, size_t i, unsigned bits)
{
    const unsigned place = scrambled((unsigned)i + (unsigned)key) ^ (unsigned)(key >> 32);
    return scrambled(bits ^ (place + (unsigned)(i >> 32)));
}

// The bits of a word of which the bytes before `end` do not count; the first is at `at`.
static __device__ unsigned behind(const unsigned *words, size_t i, size_t at, size_t end)
{
    if (at + 4 <= end) return 0;
    return at < end ? words[i] >> 8 * (end - at) : words[i];
}

// Each block's part of the hash of some words, without the bytes from `start` to `end`, and of
// others, to be added up by `seal`. It is written to that part of `partial`, or with `more` added
// to what is there. `start` is a multiple of 4.
#define BEGIN                                                                  \
    size_t *own = partial + (size_t)3 * gridDim.x * part;                      \
    size_t sum = more && threadIdx.x == 0 ? own[3 * (size_t)blockIdx.x] : 0;
#define ADD(count, of_word)                                                    \
    for (STRIDED(i, count))                                                    \
        sum += of_word;

// Without a condition on each word, which takes a CPU twice as long.
extern "C" __global__ void hash_words(const unsigned *words, size_t count, size_t start, size_t end,
                                      const unsigned *others, size_t other_count, size_t key,
                                      size_t *partial, int part, int more)
{
    const size_t next = (end + 3) / 4;
    BEGIN
    ADD(start / 4, hash_of(key, i, words[i]))
    ADD(count - next, hash_of(key, next + i, words[next + i]))
    if (end % 4 && blockIdx.x == 0 && threadIdx.x == 0)
        sum += hash_of(key, end / 4, words[end / 4] >> 8 * (end % 4));
    ADD(other_count, hash_of(key, ~i, others[i]))
    REPORT(own, sum, NONE, 0.0)
}

// The same, without the first `left_out` bytes of each page.
extern "C" __global__ void hash_pages(const unsigned *words, size_t count, const unsigned *left_out,
                                      const unsigned *others, size_t other_count, size_t key,
                                      size_t *partial, int part, int more)
{
    BEGIN
    ADD(count, hash_of(key, i, behind(words, i, 4 * i % PAGE_BYTES, left_out[4 * i / PAGE_BYTES])))
    ADD(other_count, hash_of(key, ~i, others[i]))
    REPORT(own, sum, NONE, 0.0)
}

// The same of the words between lines of `width` words that begin `pitch` words apart.
extern "C" __global__ void hash_between(const word *words, size_t count, size_t width, size_t pitch,
                                        size_t key, size_t *partial, int part, int more)
{
    BEGIN
    ADD(count, i % pitch < width ? 0 : hash_of(key, i, words[i]))
    REPORT(own, sum, NONE, 0.0)
}

// Stores the verdict on one launch, masked by a key that is used once: a later kernel can neither
// read it nor forge another. All elements are wrong if only their errors together are too large.
// Behind the `blocks` rows of the comparison, of which `compared` are used, are as many of the hash
// before the launch, and of that after it; `hashed` is 0 if there are none.
extern "C" __global__ void seal(const size_t *partial, int blocks, int compared, int hashed,
                                size_t key, size_t *sealed, size_t place, size_t elements,
                                double most_excess)
{
    __shared__ size_t changes[THREADS];
    size_t wrong = 0, first = NONE, change = 0;
    double excess = 0;
    for (int b = threadIdx.x; b < compared; b += THREADS) {
        wrong += partial[3 * (size_t)b];
        if (partial[3 * (size_t)b + 1] < first) first = partial[3 * (size_t)b + 1];
        excess += __longlong_as_double(partial[3 * (size_t)b + 2]);
    }
    for (size_t b = threadIdx.x; b < (size_t)blocks * hashed; b += THREADS)
        change += partial[3 * (2 * blocks + b)] - partial[3 * (blocks + b)];
    changes[threadIdx.x] = change;
    TOTALS(wrong, first, excess, changes[threadIdx.x] += changes[i])
    if (threadIdx.x == 0) {
        wrong = counts[0], first = firsts[0], change = changes[0];
        if (wrong == 0 && !(excesses[0] <= most_excess)) wrong = elements;
        sealed[4 * place] = wrong ^ drawn(key, 0);
        sealed[4 * place + 1] = first ^ drawn(key, 1);
        sealed[4 * place + 2] = change ^ drawn(key, 2);
        sealed[4 * place + 3] = drawn(drawn(drawn(key, wrong), first), change);
    }
}
