// Blocks run along rows of strips, for the cache; a function works out the shared memory once.
#include "logger.h"

#define STRIP 2
#define ROWS 24
#define COLS 16
#define DEPTH 8
#define LAUNCH(rows_per_thread)                                                                   \
    strip_gemm<rows_per_thread>                                                                   \
        <<<grid, dim3(COLS, ROWS / rows_per_thread), smem_bytes>>>(A, B, C, M, N, K)

inline __device__ __host__ size_t div_ceil(size_t a, size_t b)
{
    return a % b != 0 ? a / b + 1 : a / b;
}

template <int ROWS_PER_THREAD>
__global__ void strip_gemm(const float *A, const float *B, float *C, size_t M, size_t N, size_t K)
{
    extern __shared__ float smem[];
    float *As = smem;
    float *Bs = smem + ROWS * DEPTH;
    const size_t block_row = blockIdx.z % 2 ? gridDim.y - blockIdx.y - 1 : blockIdx.y;
    const size_t block_col = blockIdx.z * gridDim.x + blockIdx.x;
    const size_t col = block_col * COLS + threadIdx.x;
    const int thread = threadIdx.y * COLS + threadIdx.x;
    const int threads = COLS * (ROWS / ROWS_PER_THREAD);
    float sums[ROWS_PER_THREAD];
    for (int r = 0; r < ROWS_PER_THREAD; ++r)
        sums[r] = 0.0f;
    for (size_t k0 = 0; k0 < K; k0 += DEPTH) {
        for (int i = thread; i < ROWS * DEPTH; i += threads) {
            const size_t row = block_row * ROWS + i / DEPTH, k = k0 + i % DEPTH;
            As[i] = row < M && k < K ? A[row * K + k] : 0.0f;
        }
        for (int i = thread; i < DEPTH * COLS; i += threads) {
            const size_t k = k0 + i / COLS, c = block_col * COLS + i % COLS;
            Bs[i] = k < K && c < N ? B[k * N + c] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; ++k)
            for (int r = 0; r < ROWS_PER_THREAD; ++r)
                sums[r] += As[(threadIdx.y * ROWS_PER_THREAD + r) * DEPTH + k]
                         * Bs[k * COLS + threadIdx.x];
        __syncthreads();
    }
    for (int r = 0; r < ROWS_PER_THREAD; ++r) {
        const size_t row = block_row * ROWS + threadIdx.y * ROWS_PER_THREAD + r;
        if (row < M && col < N)
            C[row * N + col] = sums[r];
    }
}

size_t init_strip_gemm()
{
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    size_t smem_max = std::max((ROWS + COLS) * DEPTH * sizeof(float), ROWS * COLS * sizeof(float));
    LOG("shared memory: %zu bytes", smem_max);
    cudaFuncSetAttribute(strip_gemm<3>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem_max);
    return smem_max;
}

void run_strip_gemm(const float *A, const float *B, float *C, size_t M, size_t N, size_t K)
{
    static size_t smem_bytes = init_strip_gemm();
    dim3 grid(STRIP, div_ceil(M, ROWS), div_ceil(N, COLS * STRIP));
    LAUNCH(3);
}
