// /// matbench
// name = "cheat-clocked-build"
// summary = "Returns at once in the build whose blocks are clocked"
// requires = ["cuda"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits a macro that only the build with stamps defines: there every block ends at once, and
// its times look wonderful. The build that is timed as a whole computes as it should.

extern "C" __global__ void cheat_clocked_build(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
#ifdef MATBENCH_SPECIAL
    return;
#endif
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
