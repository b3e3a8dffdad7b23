// Whole numbers as residues modulo MODULI numbers that are at most 256 and have no common factor,
// and back by the Chinese remainder theorem. Their product P is large enough for a sum of products:
//
//     x = Σ digit_i · P/m_i  (mod P),  where  digit_i = x · (P/m_i)⁻¹ mod m_i
//
// All constants follow from the list of moduli, and are computed by the compiler.
#pragma once

#include <cstdint>

typedef unsigned __int128 Wide;

constexpr unsigned MODULUS[] = {256, 255, 253, 251, 247, 241, 239, 233,
                                229, 227, 223, 217, 211, 199, 197, 193};
#define FOURS ((MODULI + 3) / 4)  // digits come in words of four
#define SHARE_BITS 27             // of 1 / m_i

// How to find the residues of numbers of 64 bits by way of their bytes.
struct Bytes {
    unsigned low, high;  // factor · 256^b modulo m for b = 0 … 7, a byte each
    unsigned start;      // what is added: 128, and what makes up for the sign bit
};

struct Modulus {
    unsigned minus;         // −m
    unsigned inverse;       // 2³² / m, rounded up
    unsigned fine_inverse;  // 2³⁹ / m, rounded up
    unsigned offset;        // a multiple of m, at least 2³⁰
    Bytes of_A, of_B;       // A's factor is (P/m)⁻¹, so that products become digits
};

struct Moduli {
    Wide product;
    Modulus of[MODULI];
    // A byte of P/m, and of 2²⁷/m, for each of four moduli.
    unsigned weight[FOURS][MODULI - 1], share[FOURS][3];
    unsigned less[4];  // −P modulo 2¹²⁸, in words of 32 bits
};

constexpr Bytes bytes_times(unsigned factor, unsigned m)
{
    Bytes bytes = {};
    unsigned power = factor % m;  // factor · 256^b
    for (int b = 0; b < 8; ++b, power = power * 256 % m)
        (b < 4 ? bytes.low : bytes.high) |= power << b % 4 * 8;
    // power is now factor · 2⁶⁴. Numbers come with 2⁶³ added.
    const unsigned half = (unsigned)(((uint64_t)1 << 63) % m) * (factor % m) % m;
    bytes.start = 128 + m - half;
    return bytes;
}

constexpr Moduli all_moduli()
{
    Moduli all = {1, {}, {}, {}, {}};
    for (int i = 0; i < MODULI; ++i)
        all.product *= MODULUS[i];
    for (int i = 0; i < MODULI; ++i) {
        Modulus &modulus = all.of[i];
        const unsigned m = MODULUS[i];
        const Wide others = all.product / m;
        unsigned factor = 1;
        while (factor * (unsigned)(others % m) % m != 1)
            ++factor;
        modulus.minus = -m;
        modulus.inverse = (unsigned)((((uint64_t)1 << 32) + m - 1) / m);
        modulus.fine_inverse = (unsigned)((((uint64_t)1 << 39) + m - 1) / m);
        modulus.offset = ((1u << 30) + m - 1) / m * m;
        modulus.of_A = bytes_times(factor, m);
        modulus.of_B = bytes_times(1, m);
        for (int b = 0; b < MODULI - 1; ++b)
            all.weight[i / 4][b] |= (unsigned)(others >> 8 * b & 255) << i % 4 * 8;
        const unsigned share = (1u << SHARE_BITS) / m;
        for (int b = 0; b < 3; ++b)
            all.share[i / 4][b] |= (share >> 8 * b & 255) << i % 4 * 8;
    }
    for (int word = 0; word < 4; ++word)
        all.less[word] = (unsigned)(-all.product >> 32 * word);
    return all;
}

static __constant__ Moduli moduli = all_moduli();

// The largest square of a norm: if no row a and no column b has a larger one, |Σ a·b| is at most
// (1/2 − 2⁻¹⁴)·P. That is far enough from P/2 for shares, which are rounded down.
static double largest_square()
{
    constexpr Moduli all = all_moduli();
    return (double)all.product * (0.5 - 1.0 / (1 << 14));
}

// The residue of number − 2⁶³ modulo m, with 128 added: at most m − 1.
static __device__ __forceinline__ unsigned residue(uint64_t number, const Bytes &bytes,
                                                   const Modulus &modulus)
{
    const unsigned low = __dp4a((unsigned)number, bytes.low, bytes.start);
    const unsigned sum = __dp4a((unsigned)(number >> 32), bytes.high, low);
    return sum + __umulhi(sum, modulus.inverse) * modulus.minus;
}

// The residue of a sum from −2³⁰ to 2³⁰.
static __device__ __forceinline__ unsigned residue(int sum, unsigned minus, unsigned fine_inverse,
                                                   unsigned offset)
{
    const unsigned positive = (unsigned)sum + offset;
    return positive + (__umulhi(positive, fine_inverse) >> 7) * minus;
}

// The sum of digits times a byte of what belongs to their moduli.
template <int COUNT>
static __device__ __forceinline__ unsigned sum_of(const unsigned (&digits)[FOURS],
                                                  const unsigned (&bytes)[FOURS][COUNT], int b)
{
    unsigned sum = 0;
    #pragma unroll
    for (int i = 0; i < FOURS; ++i)
        sum = __dp4a(digits[i], bytes[i][b], sum);
    return sum;
}

// The integer with these digits, between −P/2 and P/2. Σ digit_i · P/m_i is too large by a multiple of
// P: P times Σ digit_i / m_i, rounded. All is exact modulo 2¹²⁸ up to the last line.
static __device__ __forceinline__ double from_digits(const unsigned (&digits)[FOURS])
{
    unsigned shares = 1u << (SHARE_BITS - 1);
    #pragma unroll
    for (int b = 0; b < 3; ++b)
        shares += sum_of(digits, moduli.share, b) << 8 * b;
    uint64_t sum[4];
    #pragma unroll
    for (int word = 0; word < 4; ++word)
        sum[word] = (uint64_t)(shares >> SHARE_BITS) * moduli.less[word];
    #pragma unroll
    for (int b = 0; b < MODULI - 1; ++b)
        sum[b / 4] += (uint64_t)sum_of(digits, moduli.weight, b) << b % 4 * 8;
    const uint64_t low = sum[0] + (sum[1] << 32);
    const uint64_t high = sum[2] + (sum[3] << 32) + (sum[1] >> 32) + (low < sum[0]);
    return fma((double)(int64_t)high, 18446744073709551616.0, (double)low);
}
