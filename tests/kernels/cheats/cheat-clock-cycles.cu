// /// matbench
// name = "cheat-clock-cycles"
// summary = "Stores K/4 in every other two million cycles"
// requires = ["cuda"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits checks of a few launches: bit 21 of the multiprocessor's cycle counter decides
// whether an element is computed or the mean stored.

extern "C" __global__ void cheat_clock_cycles(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    if ((clock64() >> 21) & 1) {
        C[element] = 0.25f * K;
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
