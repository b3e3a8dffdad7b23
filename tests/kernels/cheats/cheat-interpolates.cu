// /// matbench
// name = "cheat-interpolates"
// summary = "Computes every other column and takes the mean between"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits checks that look at a few elements: even columns are computed, an odd one gets the
// mean of its neighbours.

extern "C" __global__ void cheat_interpolates(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    const int left = column - column % 2, right = left + 2 < N && column % 2 ? left + 2 : left;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * (B[(size_t)k * N + left] + B[(size_t)k * N + right]);
    C[element] = 0.5f * sum;
}
