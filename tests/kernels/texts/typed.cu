// /// matbench
// args = ["A", "B", "C", "scale_a", "scale_b", "M", "N", "K", "alpha", "beta"]
// scales = "rows"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__global__ void product(const OPERAND *A, const OPERAND *B, RESULT *C, const float *scale_a,
                        const float *scale_b, int M, int N, int K, float alpha, float beta)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= M || j >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += (float)A[(size_t)i * K + k] * (float)B[(size_t)k * N + j];
    sum *= alpha * scale_a[i] * scale_b[j];
    if (beta != 0.0f) sum += beta * (float)C[(size_t)i * N + j];
    C[(size_t)i * N + j] = (RESULT)sum;
}
