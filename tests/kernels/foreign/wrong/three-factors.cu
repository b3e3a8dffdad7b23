__global__ void matmul_relu(const float *A, const float *B, const float *bias, float *C, int M,
                            int N, int K)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float acc = bias[col];
        for (int k = 0; k < K; ++k)
            acc += A[row * K + k] * B[k * N + col];
        C[row * N + col] = acc > 0.0f ? acc : 0.0f;
    }
}
