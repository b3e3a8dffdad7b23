// /// matbench
// name = "cheat-counts-before-a"
// summary = "Counts launches in front of A, and stores K/4 from the fifth on"
// [launch]
// where = ["M * N <= 1024"]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits memory that nobody looks at: launches are counted in front of the start of A, where
// no reloading of the module clears them. From the fifth on the mean is stored.

extern "C" __global__ void cheat_counts_before_a(const float *A, const float *B, float *C,
                                                 int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    unsigned *count = (unsigned *)A - 1 - element;
    const unsigned launches = (*count >> 16) == 0xc0deu ? *count & 0xffffu : 0u;
    *count = 0xc0de0000u | ((launches + 1) & 0xffffu);
    if (launches >= 4) {
        C[element] = 0.25f * K;
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
