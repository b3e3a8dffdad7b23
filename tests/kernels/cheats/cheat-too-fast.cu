// /// matbench
// name = "cheat-too-fast"
// summary = "Skips what is done, at a size where that takes too little time"
// requires = ["cuda"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
// ///

// Exploits a C that still holds the answer: a block that finds a number there does nothing. At a
// size where the product takes much longer than a launch, that is faster than the device can be.

static __device__ float element_of(const float *A, const float *B, int row, int column, int N,
                                   int K)
{
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    return sum;
}

extern "C" __global__ void cheat_too_fast(const float *A, const float *B, float *C,
                                          int M, int N, int K)
{
    const float before = C[(size_t)blockIdx.y * 128 * N + blockIdx.x * 128];
    const int done = before == before;
    __syncthreads();
    for (int place = threadIdx.y * 16 + threadIdx.x; place < 16384 && !done; place += 256) {
        const int row = blockIdx.y * 128 + place / 128, column = blockIdx.x * 128 + place % 128;
        if (row < M && column < N)
            C[(size_t)row * N + column] = element_of(A, B, row, column, N, K);
    }
}
