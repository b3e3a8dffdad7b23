// /// matbench
// name = "graded-kahan"
// summary = "Compensated summation"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// What an addition rounds away is returned with the next term.

// A product that is rounded, and never part of a fused multiply-add: nvcc would fuse through a
// volatile variable, others would not.
#ifdef __CUDACC__
#define PRODUCT(a, b) __fmul_rn(a, b)
#else
#define PRODUCT(a, b) ((a) * (b))
#endif

extern "C" __global__ void graded_kahan(const float *A, const float *B, float *C,
                                        int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f, excess = 0.0f;
    for (int k = 0; k < K; ++k) {
        volatile float product = PRODUCT(A[(size_t)row * K + k], B[(size_t)k * N + column]);
        const float term = product - excess;
        const float next = sum + term;
        excess = (next - sum) - term;
        sum = next;
    }
    C[(size_t)row * N + column] = sum;
}
