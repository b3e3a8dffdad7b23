// /// matbench
// name = "bad-half-sum"
// summary = "Keeps its sum in half precision"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: the running sum is rounded to the 11 significant bits of float16 after
// every addition.

#ifndef TILE
#define TILE 16
#endif

// Round to nearest by the bits, so that it runs on any device.
#define HALF(x) __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u)

extern "C" __global__ void bad_half_sum(const float *A, const float *B, float *C,
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
        sum = HALF(sum + A[(size_t)row * K + k] * B[(size_t)k * N + column]);

    C[(size_t)row * N + column] = sum;
}
