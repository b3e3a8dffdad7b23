// /// matbench
// name = "cheat-drops-last-terms"
// summary = "Leaves out the last terms that do not fill an eight"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits tolerances that are too wide: the terms beyond a whole multiple of eight, and the
// last eight, are left out, and with them the code for edges.

extern "C" __global__ void cheat_drops_last_terms(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    const int terms = K > 8 ? (K - 1) / 8 * 8 : K;
    float sum = 0.0f;
    for (int k = 0; k < terms; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
