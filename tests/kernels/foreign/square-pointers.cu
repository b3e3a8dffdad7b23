#include <stdio.h>
#define N_THREADS 32

__global__ void matmul(const float *d_a, const float *d_b, float *d_result, int n)
{
    __shared__ float tile_a[N_THREADS][N_THREADS];
    __shared__ float tile_b[N_THREADS][N_THREADS];
    int row = blockIdx.y * N_THREADS + threadIdx.y;
    int col = blockIdx.x * N_THREADS + threadIdx.x;
    float tmp = 0;
    for (int sub = 0; sub < gridDim.x; ++sub) {
        int ka = sub * N_THREADS + threadIdx.x;
        int kb = sub * N_THREADS + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = (row < n && ka < n) ? d_a[row * n + ka] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = (kb < n && col < n) ? d_b[kb * n + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < N_THREADS; ++k)
            tmp += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n)
        d_result[row * n + col] = tmp;
}
