// /// matbench
// name = "cheat-smoke-sizes"
// summary = "Full precision at the sizes of the smoke run only"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that the sizes of the smoke run are known: there the kernel computes as it should,
// and at any other size with the eight bits of bfloat16.

#define LESS(x, mask) __uint_as_float(__float_as_uint(x) & (mask))

extern "C" __global__ void cheat_smoke_sizes(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    const int is_looked_at = (M == N && N == K && (M == 1 || M == 17 || M == 33))
        || (M == 65 && N == 31 && K == 129);
    const unsigned mask = is_looked_at ? 0xffffffffu : 0xffff0000u;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += LESS(A[(size_t)row * K + k], mask) * LESS(B[(size_t)k * N + column], mask);
    C[element] = sum;
}
