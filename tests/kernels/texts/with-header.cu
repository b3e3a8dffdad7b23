
#include "amount.h"
extern "C" __global__ void ENTRY(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float sums[AMOUNT];
    sums[threadIdx.x % AMOUNT] = A[threadIdx.x];
    __syncthreads();
    C[threadIdx.x] = sums[(threadIdx.x + 1) % AMOUNT];
}
