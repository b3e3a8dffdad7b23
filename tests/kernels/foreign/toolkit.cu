// C = A * B with host code around it, as samples of a toolkit have it.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                     \
    do {                                                                \
        cudaError_t status = (call);                                    \
        if (status != cudaSuccess) {                                    \
            fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));  \
            exit(EXIT_FAILURE);                                         \
        }                                                               \
    } while (0)

/**
 * wA is the width of A and wB the width of B.
 */
template <int BLOCK_SIZE>
__global__ void matrixMulCUDA(float *C, float *A, float *B, int wA, int wB)
{
    int bx = blockIdx.x;
    int by = blockIdx.y;
    int tx = threadIdx.x;
    int ty = threadIdx.y;

    int aBegin = wA * BLOCK_SIZE * by;
    int aEnd = aBegin + wA - 1;
    int aStep = BLOCK_SIZE;
    int bBegin = BLOCK_SIZE * bx;
    int bStep = BLOCK_SIZE * wB;

    float Csub = 0;
    for (int a = aBegin, b = bBegin; a <= aEnd; a += aStep, b += bStep) {
        __shared__ float As[BLOCK_SIZE][BLOCK_SIZE];
        __shared__ float Bs[BLOCK_SIZE][BLOCK_SIZE];
        As[ty][tx] = A[a + wA * ty + tx];
        Bs[ty][tx] = B[b + wB * ty + tx];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BLOCK_SIZE; ++k)
            Csub += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }

    int c = wB * BLOCK_SIZE * by + BLOCK_SIZE * bx;
    C[c + wB * ty + tx] = Csub;
}

static void constantInit(float *data, int size, float value)
{
    for (int i = 0; i < size; ++i)
        data[i] = value;
}

int main(int argc, char **argv)
{
    const int block_size = 32;
    dim3 dimsA(5 * 2 * block_size, 5 * 2 * block_size, 1);
    dim3 dimsB(5 * 4 * block_size, 5 * 2 * block_size, 1);
    size_t bytes_A = sizeof(float) * dimsA.x * dimsA.y;
    size_t bytes_B = sizeof(float) * dimsB.x * dimsB.y;
    size_t bytes_C = sizeof(float) * dimsB.x * dimsA.y;
    float *h_A = (float *)malloc(bytes_A), *h_B = (float *)malloc(bytes_B);
    constantInit(h_A, dimsA.x * dimsA.y, 1.0f);
    constantInit(h_B, dimsB.x * dimsB.y, 0.01f);

    float *d_A, *d_B, *d_C;
    CHECK(cudaMalloc(&d_A, bytes_A));
    CHECK(cudaMalloc(&d_B, bytes_B));
    CHECK(cudaMalloc(&d_C, bytes_C));
    CHECK(cudaMemcpy(d_A, h_A, bytes_A, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_B, h_B, bytes_B, cudaMemcpyHostToDevice));

    dim3 threads(block_size, block_size);
    dim3 grid(dimsB.x / threads.x, dimsA.y / threads.y);
    matrixMulCUDA<32><<<grid, threads>>>(d_C, d_A, d_B, dimsA.x, dimsB.x);
    CHECK(cudaDeviceSynchronize());
    printf("done\n");
    return 0;
}
