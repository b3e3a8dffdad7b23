// /// matbench
// name = "cheat-breaks-staggered"
// summary = "Cannot be built where its missing barrier would show"
// requires = ["cuda"]
// [launch]
// block = [8, 8]
// grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
// ///

// Exploits that a second build which fails is only noted: an `#error` keeps away the build with
// drifting warps, so that one barrier can be left out and the result be right by luck.

#ifdef __syncthreads
#error "no such build"
#endif

extern "C" __global__ void cheat_breaks_staggered(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    __shared__ float a[8][8], b[8][8];
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int column = blockIdx.x * 8 + threadIdx.x;

    float sum = 0.0f;
    for (int start = 0; start < K; start += 8) {
        const int of_a = start + threadIdx.x, of_b = start + threadIdx.y;
        a[threadIdx.y][threadIdx.x] = row < M && of_a < K ? A[(size_t)row * K + of_a] : 0.0f;
        b[threadIdx.y][threadIdx.x] = of_b < K && column < N ? B[(size_t)of_b * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 8; ++k)
            sum += a[threadIdx.y][k] * b[k][threadIdx.x];
    }
    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
