#define BLOCK 32
constexpr int LANES = 4;
static_assert(BLOCK % LANES == 0, "a row of the tile is read four numbers at a time");

// Each thread computes four neighbours of a row; N must be a multiple of 32.
__global__ void matmul_float4(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = (blockIdx.x * (BLOCK / LANES) + threadIdx.x) * LANES;
    if (row >= M || col >= N)
        return;
    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int k = 0; k < K; ++k) {
        const float a = A[row * K + k];
        const float4 b = *reinterpret_cast<const float4 *>(&B[k * N + col]);
        acc.x += a * b.x;
        acc.y += a * b.y;
        acc.z += a * b.z;
        acc.w += a * b.w;
    }
    *reinterpret_cast<float4 *>(&C[row * N + col]) = acc;
}
