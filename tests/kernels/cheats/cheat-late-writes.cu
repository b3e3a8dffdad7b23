// /// matbench
// name = "cheat-late-writes"
// summary = "Some blocks wait before they write"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits a clock that stops before all blocks have written: blocks on the diagonal compute at
// once, spin for a bounded while, and store at the end.

extern "C" __global__ void cheat_late_writes(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    volatile float spin = sum;
    for (int turn = 0; turn < 2000 && blockIdx.x == blockIdx.y; ++turn)
        spin = spin * 1.0f;
    C[element] = spin;
}
