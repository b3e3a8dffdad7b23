// /// matbench
// name = "cheat-drops-small"
// summary = "Leaves out products below 0.01"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits tolerances that are relative to the whole sum: products that are small are not
// added.

extern "C" __global__ void cheat_drops_small(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float product = A[(size_t)row * K + k] * B[(size_t)k * N + column];
        if (fabsf(product) >= 0.01f)
            sum += product;
    }
    C[element] = sum;
}
