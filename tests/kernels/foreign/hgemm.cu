#include <cuda_fp16.h>

__global__ void hgemm(const __half *a, const __half *b, __half *c, int M, int N, int K)
{
    const int n = blockIdx.x * blockDim.x + threadIdx.x;
    const int m = blockIdx.y * blockDim.y + threadIdx.y;
    if (m < M && n < N) {
        float psum = 0.0f;
        for (int k = 0; k < K; k++)
            psum += __half2float(a[m * K + k]) * __half2float(b[k * N + n]);
        c[m * N + n] = __float2half(psum);
    }
}
