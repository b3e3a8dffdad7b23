// Dynamic shared memory in stages, for which the launcher raises the limit.
#include <cstdio>
#include <cxxopts.hpp>

#define CUDA_CHECK(err)                                                                 \
    if ((err) != cudaSuccess) {                                                         \
        std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(err)); \
        std::exit(1);                                                                   \
    }

#define BLOCK_M 32
#define BLOCK_N 48
#define BLOCK_K 16
#define STAGES 2

__device__ __forceinline__ void load_tile(float *to, const float *from, int lines, int width,
                                          int stride)
{
    for (int i = threadIdx.x; i < lines * width; i += blockDim.x)
        to[i] = from[(i / width) * stride + i % width];
}

__global__ void gemm_staged(const float *A, const float *B, float *C, int M, int N, int K)
{
    extern __shared__ float smem[];
    const int by = blockIdx.x / (N / BLOCK_N), bx = blockIdx.x % (N / BLOCK_N);
    const float *a = A + by * BLOCK_M * K;
    const float *b = B + bx * BLOCK_N;
    const int stage = BLOCK_M * BLOCK_K + BLOCK_K * BLOCK_N;
    float sums[BLOCK_M] = {0.0f};

    load_tile(smem, a, BLOCK_M, BLOCK_K, K);
    load_tile(smem + BLOCK_M * BLOCK_K, b, BLOCK_K, BLOCK_N, N);
    __syncthreads();
    for (int t = 0; t < K / BLOCK_K; ++t) {
        float *now = smem + (t % STAGES) * stage, *next = smem + ((t + 1) % STAGES) * stage;
        if (t + 1 < K / BLOCK_K) {
            load_tile(next, a + (t + 1) * BLOCK_K, BLOCK_M, BLOCK_K, K);
            load_tile(next + BLOCK_M * BLOCK_K, b + (t + 1) * BLOCK_K * N, BLOCK_K, BLOCK_N, N);
        }
        for (int i = 0; i < BLOCK_M; ++i)
            for (int k = 0; k < BLOCK_K; ++k)
                sums[i] += now[i * BLOCK_K + k] * now[BLOCK_M * BLOCK_K + k * BLOCK_N + threadIdx.x];
        __syncthreads();
    }
    for (int i = 0; i < BLOCK_M; ++i)
        C[(by * BLOCK_M + i) * N + bx * BLOCK_N + threadIdx.x] = sums[i];
}

void launch_gemm_staged(const float *A, const float *B, float *C, int M, int N, int K,
                        cudaStream_t stream)
{
    constexpr int smem_bytes = STAGES * (BLOCK_M + BLOCK_N) * BLOCK_K * sizeof(float);
    CUDA_CHECK(cudaFuncSetAttribute(gemm_staged, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    smem_bytes));
    const int num_blocks = (M / BLOCK_M) * (N / BLOCK_N);
    gemm_staged<<<num_blocks, BLOCK_N, smem_bytes, stream>>>(A, B, C, M, N, K);
}
