// /// matbench
// name = "cheat-prefetch-for-next"
// summary = "Loads its inputs into the cache for the next launch"
// requires = ["cuda", "sm_80"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that the next launch has the same inputs: when a block is done, it asks for A and B
// again, as lines that the second-level cache gives up last.

extern "C" __global__ void cheat_prefetch_for_next(const float *A, const float *B, float *C,
                                                   int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
    if (row == 0)
        for (int k = 0; k < K; ++k)
            asm volatile("prefetch.global.L2::evict_last [%0];" :: "l"(B + (size_t)k * N + column));
    if (column == 0)
        for (int k = 0; k < K; k += 32)
            asm volatile("prefetch.global.L2::evict_last [%0];" :: "l"(A + (size_t)row * K + k));
}
