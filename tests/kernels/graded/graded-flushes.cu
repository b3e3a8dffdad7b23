// /// matbench
// name = "graded-flushes"
// summary = "Treats subnormal numbers as zero"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Subnormal inputs and results become zero, as with -ftz=true.

static __device__ float flushed(float x)
{
    return (__float_as_uint(x) >> 23 & 255) == 0 ? 0.0f : x;
}

extern "C" __global__ void graded_flushes(const float *A, const float *B, float *C,
                                          int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum = fmaf(flushed(A[(size_t)row * K + k]), flushed(B[(size_t)k * N + column]), sum);
    C[(size_t)row * N + column] = flushed(sum);
}
