#define TS 16

// The indices of one tile are swapped.
__global__ void tiled_gemm(const float *A, const float *B, float *C, int M, int N, int K,
                           float alpha, float beta)
{
    __shared__ float As[TS][TS];
    __shared__ float Bs[TS][TS];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TS + ty, col = blockIdx.x * TS + tx;
    float sum = 0.0f;
    for (int t = 0; t < (K + TS - 1) / TS; ++t) {
        As[ty][tx] = row < M && t * TS + tx < K ? A[row * K + t * TS + tx] : 0.0f;
        Bs[ty][tx] = t * TS + ty < K && col < N ? B[(t * TS + ty) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TS; ++k)
            sum += As[ty][k] * Bs[tx][k];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = alpha * sum + beta * C[row * N + col];
}
