// /// matbench
// name = "graded-double"
// summary = "Products and sums in double, rounded once"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Products of floats are exact in double.

extern "C" __global__ void graded_double(const float *A, const float *B, float *C,
                                         int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    double sum = 0.0;
    for (int k = 0; k < K; ++k)
        sum += (double)A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = (float)sum;
}
