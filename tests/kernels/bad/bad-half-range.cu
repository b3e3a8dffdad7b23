// /// matbench
// name = "bad-half-range"
// summary = "Holds A's and B's values to the range of float16"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: values beyond the range of float16 become its largest, and those too
// small for it zero, as when a kernel goes through 16 bits without saying so.

#ifndef TILE
#define TILE 16
#endif

static __device__ float held(float value)
{
    if (fabsf(value) < 6.0e-8f)
        return 0.0f;
    return fmaxf(-65504.0f, fminf(65504.0f, value));
}

extern "C" __global__ void bad_half_range(const float *A, const float *B, float *C,
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
        sum += held(A[(size_t)row * K + k]) * held(B[(size_t)k * N + column]);

    C[(size_t)row * N + column] = sum;
}
