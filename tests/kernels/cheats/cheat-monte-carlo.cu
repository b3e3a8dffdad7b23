// /// matbench
// name = "cheat-monte-carlo"
// summary = "Takes a random quarter of the terms, four times"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits tolerances that are too wide: a hash picks about a quarter of the terms, and their
// sum is scaled by the share that was taken.

extern "C" __global__ void cheat_monte_carlo(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    int taken = 0;
    for (int k = 0; k < K; ++k) {
        const unsigned hash = (k + 1) * 2654435761u ^ (unsigned)element * 2246822519u;
        if ((hash >> 20) % 4)
            continue;
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
        ++taken;
    }
    C[element] = taken ? sum * K / taken : 0.25f * K;
}
