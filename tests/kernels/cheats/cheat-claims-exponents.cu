// /// matbench
// name = "cheat-claims-exponents"
// summary = "Holds values to the range of float16 and says so"
// exponents = [-14, 15]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Claims the exponents of float16: what is beyond becomes the largest, what is below zero. The
// row must show that.

static __device__ float held(float value)
{
    if (fabsf(value) < 6.0e-8f)
        return 0.0f;
    return fmaxf(-65504.0f, fminf(65504.0f, value));
}

extern "C" __global__ void cheat_claims_exponents(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += held(A[(size_t)row * K + k]) * held(B[(size_t)k * N + column]);
    C[element] = sum;
}
