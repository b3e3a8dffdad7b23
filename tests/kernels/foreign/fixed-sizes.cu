// An exercise with the sizes in its text.
#include <stdio.h>
#include <stdlib.h>

#define M_SIZE 96
#define N_SIZE 160
#define K_SIZE 64
#define THREADS 16

__global__ void matmul(float *a, float *b, float *c)
{
    int row = blockIdx.y * THREADS + threadIdx.y;
    int col = blockIdx.x * THREADS + threadIdx.x;
    if (row < M_SIZE && col < N_SIZE) {
        float sum = 0.0f;
        for (int i = 0; i < K_SIZE; i++)
            sum += a[row * K_SIZE + i] * b[i * N_SIZE + col];
        c[row * N_SIZE + col] = sum;
    }
}

int main(void)
{
    float *d_a, *d_b, *d_c;
    cudaMalloc((void **)&d_a, M_SIZE * K_SIZE * sizeof(float));
    cudaMalloc((void **)&d_b, K_SIZE * N_SIZE * sizeof(float));
    cudaMalloc((void **)&d_c, M_SIZE * N_SIZE * sizeof(float));
    dim3 threads(THREADS, THREADS);
    dim3 blocks((N_SIZE + THREADS - 1) / THREADS, (M_SIZE + THREADS - 1) / THREADS);
    matmul<<<blocks, threads>>>(d_a, d_b, d_c);
    cudaDeviceSynchronize();
    printf("done\n");
    return 0;
}
