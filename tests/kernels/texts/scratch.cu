extern "C" __global__ void scratch(const float *A, const float *B, float *C,
    float *workspace, int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < N) {
        workspace[row * N + column] = 0;
        for (int k = 0; k < K; ++k)
            workspace[row * N + column] += A[row * K + k] * B[k * N + column];
        C[row * N + column] = workspace[row * N + column];
    }
}
