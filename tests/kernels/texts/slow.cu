
#define TAKES 20 * M * N * K
extern "C" __global__ void ENTRY(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;
    volatile float sum = 0.0f;
    for (int turn = 0; turn < 20; ++turn) {
        sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum = sum + A[(size_t)row * K + k] * B[(size_t)k * N + column];
    }
    C[(size_t)row * N + column] = sum;
}
