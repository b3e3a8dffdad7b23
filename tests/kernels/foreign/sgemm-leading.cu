extern "C" __global__ void sgemm(int m, int n, int k, float alpha, const float *A, int lda,
                                 const float *B, int ldb, float beta, float *C, int ldc)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m || j >= n) return;
    float acc = 0.f;
    for (int p = 0; p < k; p++)
        acc += A[i * lda + p] * B[p * ldb + j];
    C[i * ldc + j] = alpha * acc + beta * C[i * ldc + j];
}
