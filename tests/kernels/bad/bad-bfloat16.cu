// /// matbench
// name = "bad-bfloat16"
// summary = "Rounds its inputs to bfloat16"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: both factors are rounded to the 8 significant bits of bfloat16, and
// the file does not say so.

#ifndef TILE
#define TILE 16
#endif

// Round to nearest by the bits, so that it runs on any device.
#define BF16(x) __uint_as_float((__float_as_uint(x) + 0x8000u) & 0xffff0000u)

extern "C" __global__ void bad_bfloat16(const float *A, const float *B, float *C,
                                        int M, int N, int K)
{
    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += BF16(A[(size_t)row * K + k]) * BF16(B[(size_t)k * N + column]);

    C[(size_t)row * N + column] = sum;
}
