#include <cuda_fp16.h>

#define OFFSET(row, col, ld) ((row) * (ld) + (col))

__global__ void naiveHgemm(half *__restrict__ a, half *__restrict__ b, half *__restrict__ c,
                           const int M, const int N, const int K)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    int m = blockIdx.y * blockDim.y + threadIdx.y;
    if (m < M && n < N) {
        half psum = 0.0;
#pragma unroll
        for (int k = 0; k < K; k++)
            psum += a[OFFSET(m, k, K)] * b[OFFSET(k, n, N)];
        c[OFFSET(m, n, N)] = psum;
    }
}
