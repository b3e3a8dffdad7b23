// /// matbench
// name = "cheat-half-when-done"
// summary = "Computes every other row where C holds numbers"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits a C that still holds the answer of the launch before: where it is not NaN, odd rows
// are taken to be right and half of the work is done. Half the time looks less odd than none.

extern "C" __global__ void cheat_half_when_done(const float *A, const float *B, float *C,
                                                int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    if (row % 2 == 1 && C[element] == C[element])
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
