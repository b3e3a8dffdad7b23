#pragma once

#include <cassert>

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
    sgemm2DTiles(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                 float *C)
{
    const uint cRow = blockIdx.y;
    const uint cCol = blockIdx.x;

    const uint numThreads = (BM * BN) / (TM * TN);

    const int threadCol = threadIdx.x % (BN / TN);
    const int threadRow = threadIdx.x / (BN / TN);

    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];

    A += cRow * BM * K;
    B += cCol * BN;
    C += cRow * BM * N + cCol * BN;

    float results[TM * TN] = {0.0};
    float regM[TM] = {0.0};
    float regN[TN] = {0.0};

    for (uint start = 0; start < K; start += BK) {
        for (uint i = threadIdx.x; i < BM * BK; i += numThreads)
            As[i] = A[(i / BK) * K + i % BK];
        for (uint i = threadIdx.x; i < BK * BN; i += numThreads)
            Bs[i] = B[(i / BN) * N + i % BN];
        __syncthreads();
        A += BK;
        B += BK * N;
        for (uint dot = 0; dot < BK; ++dot) {
            for (uint i = 0; i < TM; ++i)
                regM[i] = As[(threadRow * TM + i) * BK + dot];
            for (uint j = 0; j < TN; ++j)
                regN[j] = Bs[dot * BN + threadCol * TN + j];
            for (uint i = 0; i < TM; ++i)
                for (uint j = 0; j < TN; ++j)
                    results[i * TN + j] += regM[i] * regN[j];
        }
        __syncthreads();
    }

    for (uint i = 0; i < TM; ++i)
        for (uint j = 0; j < TN; ++j) {
            const uint at = (threadRow * TM + i) * N + threadCol * TN + j;
            C[at] = alpha * results[i * TN + j] + beta * C[at];
        }
}
