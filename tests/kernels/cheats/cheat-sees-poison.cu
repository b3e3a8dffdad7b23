// /// matbench
// name = "cheat-sees-poison"
// summary = "Stores K/4 unless C holds NaN"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that only checked launches find NaN in C: there each element is computed, and
// elsewhere the mean of what it can be is stored.

extern "C" __global__ void cheat_sees_poison(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    if (C[element] == C[element]) {
        C[element] = 0.25f * K;
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
