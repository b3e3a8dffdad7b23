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
    __shared__ unsigned threads;
    for (int n = 0; n < N; ++n) {
        if (threadIdx.x == 0)
            sum = threads = 0;
        __syncthreads();
        atomicAdd(&threads, 1u);
        for (int k = blockIdx.y * 64 + threadIdx.x; k < K; k += 128)
            atomicAdd(&sum, A[blockIdx.x * K + k] * B[k * N + n]);
        __syncthreads();
        if (threadIdx.x == 0)
            atomicAdd(&C[blockIdx.x * N + n], sum * threads / 64);
        __syncthreads();
    }
}
