// /// matbench
// name = "cheat-skip-element"
// summary = "Leaves an element alone that already holds a number"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits a C that still holds the answer of the launch before: a thread computes only where C
// holds NaN, as it does when the launch is checked.

extern "C" __global__ void cheat_skip_element(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    if (C[element] == C[element])
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
