#define BLOCK_DIM 16

__global__ void dgemm_shared(const double *A, const double *B, double *C, int M, int N, int K)
{
    __shared__ double sA[BLOCK_DIM][BLOCK_DIM];
    __shared__ double sB[BLOCK_DIM][BLOCK_DIM];
    const int row = blockIdx.y * BLOCK_DIM + threadIdx.y;
    const int col = blockIdx.x * BLOCK_DIM + threadIdx.x;
    double sum = 0.0;
    for (int t = 0; t < (K + BLOCK_DIM - 1) / BLOCK_DIM; ++t) {
        const int ka = t * BLOCK_DIM + threadIdx.x, kb = t * BLOCK_DIM + threadIdx.y;
        sA[threadIdx.y][threadIdx.x] = row < M && ka < K ? A[row * K + ka] : 0.0;
        sB[threadIdx.y][threadIdx.x] = kb < K && col < N ? B[kb * N + col] : 0.0;
        __syncthreads();
        for (int k = 0; k < BLOCK_DIM; ++k)
            sum += sA[threadIdx.y][k] * sB[k][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}
