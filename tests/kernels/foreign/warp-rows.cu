// A warp computes an element: its lanes share K. The host program checks errors with macros.
#include "helper_cuda.h"
#include <cooperative_groups.h>
#include <cstdlib>

namespace cg = cooperative_groups;

static const int kWarps = 4;

__inline__ __device__ float warp_sum(float value)
{
    for (int offset = 16; offset > 0; offset >>= 1)
        value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

__global__ void __launch_bounds__(kWarps * 32)
    matmul_warps(const float *A, const float *B, float *C, int m, int n, int k)
{
    const int at = blockIdx.x * kWarps + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (at >= m * n)
        return;
    const int row = at / n, col = at % n;
    float sum = 0.0f;
    for (int i = lane; i < k; i += 32)
        sum += A[row * k + i] * B[i * n + col];
    sum = warp_sum(sum);
    if (lane == 0)
        C[at] = sum;
}

int main(int argc, char **argv)
{
    const int m = atoi(argv[1]), n = atoi(argv[2]), k = atoi(argv[3]);
    float *A, *B, *C;
    checkCudaErrors(cudaMalloc(&A, sizeof(float) * m * k));
    checkCudaErrors(cudaMalloc(&B, sizeof(float) * k * n));
    checkCudaErrors(cudaMalloc(&C, sizeof(float) * m * n));
    matmul_warps<<<(m * n + kWarps - 1) / kWarps, kWarps * 32>>>(A, B, C, m, n, k);
    checkCudaErrors(cudaDeviceSynchronize());
    return 0;
}
