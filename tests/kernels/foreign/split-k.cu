// Blocks along z add up parts of K, after a memset.
#include "timer.h"
#include <cuda_runtime.h>

#define SPLITS 4
#define SIDE 16

__global__ void gemm_splitk(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.y * SIDE + threadIdx.y;
    const int col = blockIdx.x * SIDE + threadIdx.x;
    const int part = (K + gridDim.z - 1) / gridDim.z;
    const int first = blockIdx.z * part;
    const int last = min(first + part, K);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = first; k < last; ++k)
        sum += A[row * K + k] * B[k * N + col];
    atomicAdd(&C[row * N + col], sum);
}

void run_splitk(const float *A, const float *B, float *C, int M, int N, int K)
{
    cudaMemset(C, 0, sizeof(float) * M * N);
    dim3 block(SIDE, SIDE);
    dim3 grid((N + SIDE - 1) / SIDE, (M + SIDE - 1) / SIDE, SPLITS);
    gemm_splitk<<<grid, block>>>(A, B, C, M, N, K);
}
