#define TILE 16
__global__ void product(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
        int k = t * TILE;
        a[y][x] = row < M && k + x < K ? A[row * K + k + x] : 0.0f;
        b[y][x] = k + y < K && col < N ? B[(k + y) * N + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}
