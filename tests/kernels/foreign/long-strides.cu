// A batched kernel of a library: strides between matrices are 64-bit arguments.
#include "common.h"

constexpr int kTileM = 8;
constexpr int kTileN = 32;

__global__ void batched_gemm_kernel(int m, int n, int k, const float *__restrict__ A,
                                    long long int strideA, const float *__restrict__ B,
                                    long long int strideB, float *__restrict__ C,
                                    long long int strideC, int batch_count)
{
    const int batch = blockIdx.z;
    if (batch >= batch_count)
        return;
    const float *a = A + batch * strideA;
    const float *b = B + batch * strideB;
    float *c = C + batch * strideC;
    const int row = blockIdx.y * kTileM + threadIdx.y;
    const int col = blockIdx.x * kTileN + threadIdx.x;
    if (row < m && col < n) {
        float acc = 0.0f;
        for (int i = 0; i < k; ++i)
            acc = fmaf(a[row * k + i], b[i * n + col], acc);
        c[row * n + col] = acc;
    }
}

namespace {
inline unsigned int div_up(unsigned int a, unsigned int b) { return (a + b - 1) / b; }
}

cudaError_t batched_gemm(int m, int n, int k, const float *A, const float *B, float *C,
                         int batch_count, cudaStream_t stream)
{
    const dim3 threads(kTileN, kTileM);
    const dim3 blocks(div_up(n, kTileN), div_up(m, kTileM), batch_count);
    batched_gemm_kernel<<<blocks, threads, 0, stream>>>(
        m, n, k, A, (long long)m * k, B, (long long)k * n, C, (long long)m * n, batch_count);
    return cudaGetLastError();
}
