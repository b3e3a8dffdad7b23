extern "C" __global__ void matmul_dynamic(const float *A, const float *B, float *C, int M, int N,
                                          int K)
{
    extern __shared__ float buffer[];
    const int T = blockDim.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int start = 0; start < K; start += T) {
        const int ka = start + threadIdx.x, kb = start + threadIdx.y;
        buffer[threadIdx.y * T + threadIdx.x] = row < M && ka < K ? A[row * K + ka] : 0.0f;
        buffer[T * T + threadIdx.y * T + threadIdx.x] = kb < K && col < N ? B[kb * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < T; ++k)
            sum += buffer[threadIdx.y * T + k] * buffer[T * T + k * T + threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}
