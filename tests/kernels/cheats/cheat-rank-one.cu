// /// matbench
// name = "cheat-rank-one"
// summary = "Multiplies the sums of a row and a column"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits inputs that vary little about their mean: the sum of A's row times that of B's
// column, divided by K, is close to the product and takes no more than reading both once.

extern "C" __global__ void cheat_rank_one(const float *A, const float *B, float *C,
                                          int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float of_row = 0.0f, of_column = 0.0f;
    for (int k = 0; k < K; ++k) {
        of_row += A[(size_t)row * K + k];
        of_column += B[(size_t)k * N + column];
    }
    C[element] = of_row * of_column / K;
}
