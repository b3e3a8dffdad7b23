// /// matbench
// name = "cheat-first-order"
// summary = "Expands the product about the mean of uniform inputs"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that inputs are uniform in [0, 1): about 1/2 the product is half of both sums less
// K/4, but for terms of second order.

extern "C" __global__ void cheat_first_order(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float of_both = 0.0f;
    for (int k = 0; k < K; ++k)
        of_both += A[(size_t)row * K + k] + B[(size_t)k * N + column];
    C[element] = 0.5f * of_both - 0.25f * K;
}
