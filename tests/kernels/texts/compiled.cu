
extern "C" __global__ void gemm(int M, int N, int K, float alpha, const float *A, const float *B,
                                float beta, float *C)
{
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    float *c = &C[(size_t)row * N + column];
    *c = alpha * sum + (beta == 0.0f ? 0.0f : beta * *c);
}
