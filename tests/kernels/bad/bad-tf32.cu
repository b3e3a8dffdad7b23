// /// matbench
// name = "bad-tf32"
// summary = "Rounds its inputs to TF32"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: both factors are rounded to the 11 significant bits of TF32, and the
// file does not say so.

#ifndef TILE
#define TILE 16
#endif

// Round to nearest by the bits, so that it runs on any device.
#define TF32(x) __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u)

extern "C" __global__ void bad_tf32(const float *A, const float *B, float *C, int M, int N, int K)
{
    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += TF32(A[(size_t)row * K + k]) * TF32(B[(size_t)k * N + column]);

    C[(size_t)row * N + column] = sum;
}
