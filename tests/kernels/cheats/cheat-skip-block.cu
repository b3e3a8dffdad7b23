// /// matbench
// name = "cheat-skip-block"
// summary = "Leaves a block of C alone whose first element is right already"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits a C that still holds the answer of the launch before. One thread computes the first
// element of the block; where C holds that value already, the other 255 are not computed. New
// inputs are noticed, so the trials see nothing.

static __device__ float element_of(const float *A, const float *B, int row, int column, int N,
                                   int K)
{
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    return sum;
}

extern "C" __global__ void cheat_skip_block(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    __shared__ int done;
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        const float sum = element_of(A, B, blockIdx.y * 16, blockIdx.x * 16, N, K);
        const float before = C[(size_t)blockIdx.y * 16 * N + blockIdx.x * 16];
        done = fabsf(before - sum) <= 1e-5f * fabsf(sum);
    }
    __syncthreads();
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (done || row >= M || column >= N)
        return;
    C[(size_t)row * N + column] = element_of(A, B, row, column, N, K);
}
