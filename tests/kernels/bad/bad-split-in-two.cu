// /// matbench
// name = "bad-split-in-two"
// summary = "Takes each input as the sum of two bfloat16 numbers"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: each factor is split into two bfloat16 parts, which together hold 16
// of its 24 significant bits, and the file does not say so. At these sizes the loss stays within
// the bound of float32.

#ifndef TILE
#define TILE 16
#endif

// Round to nearest, ties to even, by the bits, so that it runs on any device.
#define BITS(x) __float_as_uint(x)
#define BF16(x) __uint_as_float((BITS(x) + 0x7fffu + (BITS(x) >> 16 & 1u)) & 0xffff0000u)

extern "C" __global__ void bad_split_in_two(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float a = A[(size_t)row * K + k], b = B[(size_t)k * N + column];
        const float a_high = BF16(a), a_low = BF16(a - a_high);
        const float b_high = BF16(b), b_low = BF16(b - b_high);
        sum += a_high * b_high + (a_high * b_low + a_low * b_high);
    }

    C[(size_t)row * N + column] = sum;
}
