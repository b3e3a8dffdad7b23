// /// matbench
// name = "cheat-round-sizes"
// summary = "Leaves out terms where all sizes are powers of two"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that awkward shapes are checked and round ones timed: where M, N and K are powers of
// two from 64 on, an eighth of the terms is left out and the rest scaled up.

extern "C" __global__ void cheat_round_sizes(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    const int is_round = M >= 64 && N >= 64 && K >= 64 && !(M & (M - 1)) && !(N & (N - 1))
        && !(K & (K - 1));
    const int terms = is_round ? K - K / 8 : K;
    float sum = 0.0f;
    for (int k = 0; k < terms; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = is_round ? sum * 8.0f / 7.0f : sum;
}
