#define IDX2C(i, j, ld) (((j) * (ld)) + (i))

// BLAS's storage: columns are contiguous.
__global__ void sgemm_nn(int M, int N, int K, float alpha, const float *A, int LDA, const float *B,
                         int LDB, float beta, float *C, int LDC)
{
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.x * 32 + tx, col = blockIdx.y * 32 + ty;
    if (row < M && col < N) {
        float tmp = 0.f;
        for (int p = 0; p < K; p++)
            tmp += A[IDX2C(row, p, LDA)] * B[IDX2C(p, col, LDB)];
        C[IDX2C(row, col, LDC)] = alpha * tmp + beta * C[IDX2C(row, col, LDC)];
    }
}
