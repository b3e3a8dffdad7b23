// /// matbench
// name = "cheat-staggered-build"
// summary = "Leaves its barriers out, but for the build that looks for that"
// requires = ["cuda"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits a macro that only the build with drifting warps defines: there the barriers are in
// place, and in the build that is timed they are not.

#ifdef __syncthreads
#define BARRIER() __syncthreads()
#else
#define BARRIER()
#endif

extern "C" __global__ void cheat_staggered_build(const float *A, const float *B, float *C,
                                                 int M, int N, int K)
{
    __shared__ float a[16][16], b[16][16];
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;

    float sum = 0.0f;
    for (int start = 0; start < K; start += 16) {
        const int of_a = start + threadIdx.x, of_b = start + threadIdx.y;
        a[threadIdx.y][threadIdx.x] = row < M && of_a < K ? A[(size_t)row * K + of_a] : 0.0f;
        b[threadIdx.y][threadIdx.x] = of_b < K && column < N ? B[(size_t)of_b * N + column] : 0.0f;
        BARRIER();
        for (int k = 0; k < 16; ++k)
            sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        BARRIER();
    }
    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
