#pragma once

template <typename T, int TILE = 16>
__global__ void gemm(T const *A, T const *B, T *C, size_t m, size_t n, size_t k)
{
    size_t const col{blockIdx.x * blockDim.x + threadIdx.x};
    size_t const row{blockIdx.y * blockDim.y + threadIdx.y};
    if (row < m && col < n) {
        T sum{static_cast<T>(0)};
        for (size_t i{0U}; i < k; ++i)
            sum += A[row * k + i] * B[i * n + col];
        C[row * n + col] = sum;
    }
}
