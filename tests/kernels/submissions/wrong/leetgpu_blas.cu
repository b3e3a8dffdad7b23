#include <cuda_runtime.h>
__global__ void mm(const float *A, const float *B, float *C, int M, int N, int K) {
    int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x;
    if (r >= M || c >= K) return;
    float s = 0;
    for (int i = 0; i < N; ++i) s += A[r * N + i] * B[i * K + c];
    C[r * K + c] = s;
}
extern "C" void solve(const float *A, const float *B, float *C, int M, int N, int K) {
    dim3 t(16, 16), b((K + 15) / 16, (M + 15) / 16);
    mm<<<b, t>>>(A, B, C, M, K, N);
    cudaDeviceSynchronize();
}
