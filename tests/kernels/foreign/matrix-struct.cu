// A guide's kernel: matrices are structs of their sizes and a pointer, passed by value.
#include <cstdio>

#define TILE 16

typedef struct {
    int width;
    int height;
    int stride;
    float *elements;
} Matrix;

__device__ float GetElement(const Matrix A, int row, int col)
{
    return A.elements[row * A.stride + col];
}

__global__ void MatMulKernel(Matrix A, Matrix B, Matrix C)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int col = blockIdx.x * TILE + threadIdx.x;
    if (row >= C.height || col >= C.width)
        return;
    float Cvalue = 0;
    for (int e = 0; e < A.width; ++e)
        Cvalue += GetElement(A, row, e) * GetElement(B, e, col);
    C.elements[row * C.stride + col] = Cvalue;
}

void MatMul(const Matrix A, const Matrix B, Matrix C)
{
    Matrix d_A = A, d_B = B, d_C = C;
    cudaMalloc(&d_A.elements, A.stride * A.height * sizeof(float));
    cudaMalloc(&d_B.elements, B.stride * B.height * sizeof(float));
    cudaMalloc(&d_C.elements, C.stride * C.height * sizeof(float));
    dim3 dimBlock(TILE, TILE);
    dim3 dimGrid((B.width + dimBlock.x - 1) / dimBlock.x, (A.height + dimBlock.y - 1) / dimBlock.y);
    MatMulKernel<<<dimGrid, dimBlock>>>(d_A, d_B, d_C);
    cudaMemcpy(C.elements, d_C.elements, C.stride * C.height * sizeof(float),
               cudaMemcpyDeviceToHost);
}
