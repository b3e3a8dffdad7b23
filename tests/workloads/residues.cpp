// kernels/gallery/residues.cuh for a CPU: CUDA's words and functions, and what tests call.
#include <cmath>
#include <cstdint>

#define __device__
#define __constant__
#define __forceinline__ inline

static unsigned __umulhi(unsigned a, unsigned b) { return (uint64_t)a * b >> 32; }

static unsigned __dp4a(unsigned a, unsigned b, unsigned sum)
{
    for (int i = 0; i < 32; i += 8)
        sum += (a >> i & 255) * (b >> i & 255);
    return sum;
}

using std::fma;

#include HEADER

extern "C" {

double largest() { return largest_square(); }

// The residues of a number as multiply_residues reads them: bytes with a sign.
void residues(int64_t x, int is_A, signed char *to)
{
    for (int i = 0; i < MODULI; ++i) {
        const Modulus &modulus = moduli.of[i];
        const uint64_t shifted = (uint64_t)x ^ (uint64_t)1 << 63;
        to[i] = (signed char)(residue(shifted, is_A ? modulus.of_A : modulus.of_B, modulus) ^ 0x80);
    }
}

unsigned digit_of(int sum, int i)
{
    const Modulus &modulus = moduli.of[i];
    return residue(sum, modulus.minus, modulus.fine_inverse, modulus.offset);
}

double number_of(const unsigned *digits)
{
    unsigned words[FOURS] = {};
    for (int i = 0; i < MODULI; ++i)
        words[i / 4] |= digits[i] << i % 4 * 8;
    return from_digits(words);
}
}
