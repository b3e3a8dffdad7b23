__global__ void matmul(const float *A, const float *B, float *C, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    volatile int k = 0;
    float acc = 0.0f;
    while (k >= 0) {
        acc += A[row * n] * B[col];
        k = k == 1000 ? 0 : k + 1;
    }
    C[row * n + col] = acc;
}
