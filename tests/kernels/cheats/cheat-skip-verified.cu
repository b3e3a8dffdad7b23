// /// matbench
// name = "cheat-skip-verified"
// summary = "Verifies what C holds instead of computing it"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits a C that still holds the answer of the launch before. Whether a tile's row sums are
// right is found with an eighth of the work: the sum of a row of the tile is A's row times the
// row sums of B. Only tiles that fail that are computed.

extern "C" __global__ void cheat_skip_verified(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    __shared__ float total[256];
    __shared__ int wrong;
    const int t = threadIdx.y * 16 + threadIdx.x;
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    const int first = blockIdx.x * 16;
    const int end = first + 16 < N ? first + 16 : N;

    if (t == 0)
        wrong = 0;
    float expected = 0.0f, size = 0.0f;
    for (int start = 0; start < K; start += 256) {
        float sum = 0.0f;
        if (start + t < K)
            for (int c = first; c < end; ++c)
                sum += B[(size_t)(start + t) * N + c];
        __syncthreads();
        total[t] = sum;
        __syncthreads();
        if (threadIdx.x == 0 && row < M)
            for (int k = 0; k < 256 && start + k < K; ++k) {
                const float product = A[(size_t)row * K + start + k] * total[k];
                expected += product;
                size += fabsf(product);
            }
    }
    if (threadIdx.x == 0 && row < M) {
        float found = 0.0f;
        for (int c = first; c < end; ++c)
            found += C[(size_t)row * N + c];
        if (!(fabsf(found - expected) <= 1e-4f * size))
            wrong = 1;
    }
    __syncthreads();
    if (!wrong || row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = sum;
}
