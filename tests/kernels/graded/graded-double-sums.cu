// /// matbench
// name = "graded-double-sums"
// summary = "Products in float, sums in double"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// The sum is wide, but each product has been rounded before.

// A product that is rounded, and never part of a fused multiply-add: nvcc would fuse through a
// volatile variable, others would not.
#ifdef __CUDACC__
#define PRODUCT(a, b) __fmul_rn(a, b)
#else
#define PRODUCT(a, b) ((a) * (b))
#endif

extern "C" __global__ void graded_double_sums(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    double sum = 0.0;
    for (int k = 0; k < K; ++k) {
        volatile float product = PRODUCT(A[(size_t)row * K + k], B[(size_t)k * N + column]);
        sum += product;
    }
    C[(size_t)row * N + column] = (float)sum;
}
