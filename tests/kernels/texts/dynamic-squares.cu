__global__ void mm(const float *A, const float *B, float *C, int n, int SIDE)
{
    extern __shared__ float left[];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * SIDE + y, col = blockIdx.x * SIDE + x;
    float sum = 0.0f, *right = left + SIDE * SIDE;
    for (int at = 0; at < n; at += SIDE) {
        left[y * SIDE + x] = row < n && at + x < n ? A[row * n + at + x] : 0.0f;
        right[y * SIDE + x] = col < n && at + y < n ? B[(at + y) * n + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < SIDE; ++k)
            sum += left[y * SIDE + k] * right[k * SIDE + x];
        __syncthreads();
    }
    if (row < n && col < n)
        C[row * n + col] = sum;
}
