// /// matbench
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///
__global__ void mine(const REAL *A, const REAL *B, REAL *C, int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row < M && col < N) {
        BODY
        C[row * N + col] = sum;
    }
}
