#include <cuda_fp16.h>

#define OFFSET(row, col, ld) ((row) * (ld) + (col))

__global__ void hgemm_scaled(const int M, const int N, const int K, const half alpha,
                             const half *A, const half *B, const half beta, half *C)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;

    float acc = 0.0f;
    for (int k = 0; k < K; ++k)
        acc = fmaf(__half2float(A[OFFSET(row, k, K)]), __half2float(B[OFFSET(k, col, N)]), acc);
    const float old = __half2float(C[OFFSET(row, col, N)]);
    C[OFFSET(row, col, N)] =
        __float2half(__half2float(alpha) * acc + __half2float(beta) * old);
}
