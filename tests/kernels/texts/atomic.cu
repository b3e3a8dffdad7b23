// /// matbench
// beta = [1]
// deterministic = false
// [launch]
// block = [64]
// grid = ["M", 2]
// ///
__global__ void atomic(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float sum;
    for (int n = 0; n < N; ++n) {
        if (threadIdx.x == 0)
            sum = 0.0f;
        __syncthreads();
        for (int k = blockIdx.y * 64 + threadIdx.x; k < K; k += 128)
            atomicAdd(&sum, A[blockIdx.x * K + k] * B[k * N + n]);
        __syncthreads();
        if (threadIdx.x == 0)
            atomicAdd(&C[blockIdx.x * N + n], sum);
        __syncthreads();
    }
}
