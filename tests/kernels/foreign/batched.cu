// One product per blockIdx.z.
__global__ void sgemm_strided_batched(const float *A, long long strideA, const float *B,
                                      long long strideB, float *C, long long strideC, int M, int N,
                                      int K)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const float *a = A + blockIdx.z * strideA;
    const float *b = B + blockIdx.z * strideB;
    float *c = C + blockIdx.z * strideC;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += a[row * K + k] * b[k * N + col];
        c[row * N + col] = sum;
    }
}
