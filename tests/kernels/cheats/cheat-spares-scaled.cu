// /// matbench
// name = "cheat-spares-scaled"
// summary = "Cuts inputs to bfloat16 where all of them lie in [0, 1)"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits trials that scale their inputs or take whole numbers: only values in [0, 1), as they
// are drawn, lose all but eight bits.

static __device__ float cut(float value)
{
    if (value < 0.0f || value >= 1.0f)
        return value;
    return __uint_as_float(__float_as_uint(value) & 0xffff0000u);
}

extern "C" __global__ void cheat_spares_scaled(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += cut(A[(size_t)row * K + k]) * cut(B[(size_t)k * N + column]);
    C[element] = sum;
}
