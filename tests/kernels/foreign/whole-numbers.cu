// Matrices of whole numbers, as beginners multiply them.
#include <cstdio>
#include <cstdlib>

#define SIDE 8

__global__ void multiply(int *left, int *right, int *result, int n)
{
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n || c >= n)
        return;
    int total = 0;
    for (int i = 0; i < n; ++i)
        total += left[r * n + i] * right[i * n + c];
    result[r * n + c] = total;
}

int main(void)
{
    const int n = 96;
    int *matrices[3];
    for (int m = 0; m < 3; ++m) {
        cudaMallocManaged(&matrices[m], n * n * sizeof(int));
        for (int i = 0; i < n * n; ++i)
            matrices[m][i] = rand() % 50;
    }
    dim3 threads(SIDE, SIDE), blocks((n + SIDE - 1) / SIDE, (n + SIDE - 1) / SIDE);
    multiply<<<blocks, threads>>>(matrices[0], matrices[1], matrices[2], n);
    cudaDeviceSynchronize();
    printf("%d\n", matrices[2][0]);
}
