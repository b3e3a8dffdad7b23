// The last term of each sum is missing.
__global__ void gemm(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                     float *C)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= M || y >= N)
        return;
    float tmp = 0.0f;
    for (int k = 0; k < K - 1; ++k)
        tmp += A[x * K + k] * B[k * N + y];
    C[x * N + y] = alpha * tmp + beta * C[x * N + y];
}
