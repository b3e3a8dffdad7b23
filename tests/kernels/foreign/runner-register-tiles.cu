// A kernel of a tutorial with its runner: tiles in registers, other tiles for small products.
#include <cassert>
#include <cstdlib>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <glog/logging.h>

#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))

template <const int BM, const int BN, const int BK, const int TM>
__global__ void sgemm_1d_blocktiling(int M, int N, int K, float alpha, const float *A,
                                     const float *B, float beta, float *C)
{
    const uint row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int col = threadIdx.x % BN, rows = threadIdx.x / BN;
    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];
    float results[TM] = {0.0};

    for (int start = 0; start < K; start += BK) {
        for (int i = threadIdx.x; i < BM * BK; i += blockDim.x)
            As[i] = A[(row0 + i / BK) * K + start + i % BK];
        for (int i = threadIdx.x; i < BK * BN; i += blockDim.x)
            Bs[i] = B[(start + i / BN) * N + col0 + i % BN];
        __syncthreads();
        for (int k = 0; k < BK; ++k)
            for (int t = 0; t < TM; ++t)
                results[t] += As[(rows * TM + t) * BK + k] * Bs[k * BN + col];
        __syncthreads();
    }
    for (int t = 0; t < TM; ++t) {
        const uint at = (row0 + rows * TM + t) * N + col0 + col;
        C[at] = alpha * results[t] + beta * C[at];
    }
}

void run_sgemm_1d_blocktiling(int M, int N, int K, float alpha, float *A, float *B, float beta,
                              float *C)
{
    CHECK(M % 48 == 0) << "M must be a multiple of the tile";
    const uint BM = 48;
    const uint BN = 32;
    const uint BK = 6;
    const uint TM = 6;
    dim3 gridDim(CEIL_DIV(N, BN), CEIL_DIV(M, BM));
    dim3 blockDim((BM * BN) / TM);
    sgemm_1d_blocktiling<BM, BN, BK, TM>
        <<<gridDim, blockDim>>>(M, N, K, alpha, A, B, beta, C);
}
