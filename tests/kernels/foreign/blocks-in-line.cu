// Blocks in a one-dimensional grid, in groups of rows of tiles, for the cache.
#include <cuda_runtime.h>
#include <spdlog/spdlog.h>

constexpr int kTileM = 24, kTileN = 40;
constexpr int kGroup = 4;
constexpr int kThreads = kTileN * 2;

__global__ __launch_bounds__(kThreads) void gemm_grouped(int M, int N, int K, const float *A,
                                                        const float *B, float *C)
{
    const int tiles_m = (M + kTileM - 1) / kTileM, tiles_n = (N + kTileN - 1) / kTileN;
    const int group = blockIdx.x / (kGroup * tiles_n);
    const int first = group * kGroup;
    const int lines = tiles_m - first < kGroup ? tiles_m - first : kGroup;
    const int within = blockIdx.x - group * kGroup * tiles_n;
    const int tile_m = first + within % lines, tile_n = within / lines;
    const int col = tile_n * kTileN + threadIdx.x % kTileN;
    for (int i = threadIdx.x / kTileN; i < kTileM; i += 2) {
        const int row = tile_m * kTileM + i;
        if (row < M && col < N) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[row * K + k] * B[k * N + col];
            C[row * N + col] = sum;
        }
    }
}

int main()
{
    const int M = 2048, N = 1024, K = 512;
    float *A, *B, *C;
    cudaMalloc(&A, sizeof(float) * M * K);
    cudaMalloc(&B, sizeof(float) * K * N);
    cudaMalloc(&C, sizeof(float) * M * N);
    auto cdiv = [](int a, int b) { return (a + b - 1) / b; };
    int blocks = cdiv(M, kTileM) * cdiv(N, kTileN);
    gemm_grouped<<<blocks, kThreads>>>(M, N, K, A, B, C);
    spdlog::info("{}", cudaGetErrorString(cudaDeviceSynchronize()));
}
