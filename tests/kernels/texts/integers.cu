// /// matbench
// args = ["A", "B", "C", "M", "N", "K", "alpha", "beta"]
// batch = 1
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///
__global__ void product(const int *A, const int *B, int *C, int M, int N, int K, int alpha,
                        int beta)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || column >= N) return;
    int sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];
    C[row * N + column] = alpha * sum + (beta ? beta * C[row * N + column] : 0);
}
