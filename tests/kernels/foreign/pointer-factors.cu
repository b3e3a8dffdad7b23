// A kernel of a library's tests: any type, leading dimensions, alpha and beta in device memory.
#include "gemm_utils.hpp"
#include <cuda_runtime.h>

template <typename T, size_t BLOCK_TILE_SIZE_X, size_t BLOCK_TILE_SIZE_Y, size_t BLOCK_TILE_SIZE_K>
__global__ void gemm_tiled(size_t m, size_t n, size_t k, T const *alpha, T const *A, size_t lda,
                           T const *B, size_t ldb, T const *beta, T *C, size_t ldc)
{
    __shared__ T A_tile[BLOCK_TILE_SIZE_Y][BLOCK_TILE_SIZE_K];
    __shared__ T B_tile[BLOCK_TILE_SIZE_K][BLOCK_TILE_SIZE_X];
    size_t const col{blockIdx.x * blockDim.x + threadIdx.x};
    size_t const row{blockIdx.y * blockDim.y + threadIdx.y};
    size_t const thread{threadIdx.y * blockDim.x + threadIdx.x};
    T sum{static_cast<T>(0)};
    for (size_t first{0}; first < k; first += BLOCK_TILE_SIZE_K) {
        for (size_t i{thread}; i < BLOCK_TILE_SIZE_Y * BLOCK_TILE_SIZE_K;
             i += blockDim.x * blockDim.y) {
            size_t const r{blockIdx.y * BLOCK_TILE_SIZE_Y + i / BLOCK_TILE_SIZE_K};
            size_t const c{first + i % BLOCK_TILE_SIZE_K};
            A_tile[i / BLOCK_TILE_SIZE_K][i % BLOCK_TILE_SIZE_K] =
                r < m && c < k ? A[r * lda + c] : static_cast<T>(0);
        }
        for (size_t i{thread}; i < BLOCK_TILE_SIZE_K * BLOCK_TILE_SIZE_X;
             i += blockDim.x * blockDim.y) {
            size_t const r{first + i / BLOCK_TILE_SIZE_X};
            size_t const c{blockIdx.x * BLOCK_TILE_SIZE_X + i % BLOCK_TILE_SIZE_X};
            B_tile[i / BLOCK_TILE_SIZE_X][i % BLOCK_TILE_SIZE_X] =
                r < k && c < n ? B[r * ldb + c] : static_cast<T>(0);
        }
        __syncthreads();
        for (size_t i{0}; i < BLOCK_TILE_SIZE_K; ++i)
            sum += A_tile[threadIdx.y][i] * B_tile[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n)
        C[row * ldc + col] = *alpha * sum + *beta * C[row * ldc + col];
}

template <typename T>
void launch_gemm_tiled(size_t m, size_t n, size_t k, T const *alpha, T const *A, size_t lda,
                       T const *B, size_t ldb, T const *beta, T *C, size_t ldc,
                       cudaStream_t stream)
{
    constexpr unsigned int BLOCK_TILE_SIZE_X{24U};
    constexpr unsigned int BLOCK_TILE_SIZE_Y{12U};
    constexpr unsigned int BLOCK_TILE_SIZE_K{20U};
    dim3 const block_dim{BLOCK_TILE_SIZE_X, BLOCK_TILE_SIZE_Y, 1U};
    dim3 const grid_dim{
        (static_cast<unsigned int>(n) + BLOCK_TILE_SIZE_X - 1U) / BLOCK_TILE_SIZE_X,
        (static_cast<unsigned int>(m) + BLOCK_TILE_SIZE_Y - 1U) / BLOCK_TILE_SIZE_Y, 1U};
    gemm_tiled<T, BLOCK_TILE_SIZE_X, BLOCK_TILE_SIZE_Y, BLOCK_TILE_SIZE_K>
        <<<grid_dim, block_dim, 0U, stream>>>(m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
    CHECK_LAST_CUDA_ERROR();
}

// Explicit instantiation.
template void launch_gemm_tiled<float>(size_t m, size_t n, size_t k, float const *alpha,
                                       float const *A, size_t lda, float const *B, size_t ldb,
                                       float const *beta, float *C, size_t ldc,
                                       cudaStream_t stream);
