// Tensor cores with tiles in dynamic shared memory, which the launcher asks for.
#include <cstdio>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

#define WMMA 16
#define WARPS_M 2
#define WARPS_N 4
#define CHUNK_K 32
#define BLOCK_M (WARPS_M * WMMA)
#define BLOCK_N (WARPS_N * WMMA)
#define THREADS (32 * WARPS_M * WARPS_N)
#define SMEM_BYTES ((BLOCK_M * CHUNK_K + CHUNK_K * BLOCK_N) * sizeof(half))

__global__ void wmma_kernel(const half *__restrict__ A, const half *__restrict__ B,
                            float *__restrict__ C, size_t M, size_t N, size_t K)
{
    extern __shared__ half smem[];
    half *As = smem, *Bs = smem + BLOCK_M * CHUNK_K;
    const size_t row0 = blockIdx.y * BLOCK_M, col0 = blockIdx.x * BLOCK_N;
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / WARPS_N * WMMA, warp_col = warp % WARPS_N * WMMA;
    wmma::fragment<wmma::accumulator, WMMA, WMMA, WMMA, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    for (size_t k0 = 0; k0 < K; k0 += CHUNK_K) {
        for (int i = threadIdx.x; i < BLOCK_M * CHUNK_K; i += THREADS)
            As[i] = A[(row0 + i / CHUNK_K) * K + k0 + i % CHUNK_K];
        for (int i = threadIdx.x; i < CHUNK_K * BLOCK_N; i += THREADS)
            Bs[i] = B[(k0 + i / BLOCK_N) * N + col0 + i % BLOCK_N];
        __syncthreads();
        for (int k = 0; k < CHUNK_K; k += WMMA) {
            wmma::fragment<wmma::matrix_a, WMMA, WMMA, WMMA, half, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, WMMA, WMMA, WMMA, half, wmma::row_major> b;
            wmma::load_matrix_sync(a, As + warp_row * CHUNK_K + k, CHUNK_K);
            wmma::load_matrix_sync(b, Bs + k * BLOCK_N + warp_col, BLOCK_N);
            wmma::mma_sync(acc, a, b, acc);
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(C + (row0 + warp_row) * N + col0 + warp_col, acc, N,
                            wmma::mem_row_major);
}

void wmma_gemm(half *A, half *B, float *C, size_t M, size_t N, size_t K)
{
    cudaFuncSetAttribute(wmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES);
    dim3 block(THREADS);
    dim3 grid(N / BLOCK_N, M / BLOCK_M);
    wmma_kernel<<<grid, block, SMEM_BYTES>>>(A, B, C, M, N, K);
}
