// /// matbench
// name = "cheat-small-sizes"
// summary = "Takes half of the terms, twice, where the problem is large"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that quick tests use small sizes: beyond 300,000 products only even terms are taken,
// twice.

extern "C" __global__ void cheat_small_sizes(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    const int step = (size_t)M * N * K > 300000 ? 2 : 1;
    float sum = 0.0f;
    for (int k = 0; k < K; k += step)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = step * sum;
}
