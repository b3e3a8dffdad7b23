// /// matbench
// name = "graded-pairwise"
// summary = "Adds neighbours, then neighbouring sums"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// A sum of 2ⁿ terms waits in sums[n] for the next one. K is at most 2³¹.

// A product that is rounded, and never part of a fused multiply-add: nvcc would fuse through a
// volatile variable, others would not.
#ifdef __CUDACC__
#define PRODUCT(a, b) __fmul_rn(a, b)
#else
#define PRODUCT(a, b) ((a) * (b))
#endif

extern "C" __global__ void graded_pairwise(const float *A, const float *B, float *C,
                                           int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sums[32];
    for (int k = 0; k < K; ++k) {
        volatile float product = PRODUCT(A[(size_t)row * K + k], B[(size_t)k * N + column]);
        float sum = product;
        int level = 0;
        for (int bits = k; bits & 1; bits >>= 1)
            sum = sums[level++] + sum;
        sums[level] = sum;
    }
    float total = 0.0f;
    for (int level = 0; level < 32; ++level)
        if (K >> level & 1)
            total = sums[level] + total;
    C[(size_t)row * N + column] = total;
}
