// Products in a batch, at strides that the host gives.
#include <cstdio>
#include "helper_cuda.h"
#include "helper_timer.h"

#define TX 20
#define TY 6

__global__ void bmm_kernel(const float *A, const float *B, float *C, int M, int N, int K,
                           long long strideA, long long strideB, long long strideC)
{
    const float *a = A + blockIdx.z * strideA;
    const float *b = B + blockIdx.z * strideB;
    float *c = C + blockIdx.z * strideC;
    int col = blockIdx.x * TX + threadIdx.x % TX;
    int row = blockIdx.y * TY + threadIdx.x / TX;
    if (row >= M || col >= N)
        return;
    float acc = 0.f;
    for (int k = 0; k < K; k++)
        acc += a[row * K + k] * b[k * N + col];
    c[row * N + col] = acc;
}

void bmm(const float *A, const float *B, float *C, int batchCount, int M, int N, int K)
{
    dim3 threads(TX * TY);
    dim3 grid;
    grid.x = (N + TX - 1) / TX;
    grid.y = (M + TY - 1) / TY;
    grid.z = batchCount;
    bmm_kernel<<<grid, threads>>>(A, B, C, M, N, K, (long long)M * K, (long long)K * N,
                                  (long long)M * N);
    getLastCudaError("bmm_kernel failed");
}
