// a is m x n, b is n x k, and c is m x k.
__global__ void gpu_matrix_mult(float *a, float *b, float *c, int m, int n, int k)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < m * k) {
        int row = idx / k;
        int col = idx % k;
        float sum = 0;
        for (int i = 0; i < n; i++)
            sum += a[row * n + i] * b[i * k + col];
        c[idx] = sum;
    }
}
