// /// matbench
// name = "cheat-evict-last"
// summary = "Asks the cache to keep its inputs"
// requires = ["cuda", "sm_80"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits lines that the second-level cache gives up last: all loads of A and B carry that
// hint, so that overwriting the cache with ordinary lines may leave them for the next launch.

static __device__ float kept(const float *pointer, unsigned long long policy)
{
    float value;
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;"
                 : "=f"(value) : "l"(pointer), "l"(policy));
    return value;
}

extern "C" __global__ void cheat_evict_last(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += kept(A + (size_t)row * K + k, policy) * kept(B + (size_t)k * N + column, policy);
    C[element] = sum;
}
