#define T 16
__global__ void mm(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[2][T][T], b[2][T][T];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * T + y, col = blockIdx.x * T + x;
    float sum = 0;
    for (int t = 0; t < (K ROUNDED) / T; ++t) {
        const int here = SLOT, k = t * T;
        a[here][y][x] = row < M && k + x < K ? A[row * K + k + x] : 0;
        b[here][y][x] = col < N && k + y < K ? B[(k + y) * N + col] : 0;
        __syncthreads();
        for (int i = 0; i < T; ++i)
            sum += a[USED][y][i] * b[USED][i][x];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}
