// /// matbench
// name = "tunable"
// summary = "For a test"
// [sweep]
// TURNS = [8]
// KIND = [1]
// [tune]
// TURNS = [1, 8, 64]
// KIND = [1, 2, 3, 4]
// [launch]
// where = ["KIND != 3"]
// block = [8, 8]
// grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
// ///

#define TAKES 20000 * TURNS
#define WRONG KIND == 2
#if KIND == 4
#error "no such kind"
#endif

extern "C" __global__ void tunable(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int column = blockIdx.x * 8 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    volatile float sum = 0.0f;
    for (int turn = 0; turn < TURNS; ++turn) {
        sum = 0.0f;
        for (int k = 0; k < (KIND == 2 ? K / 2 : K); ++k)
            sum = sum + A[(size_t)row * K + k] * B[(size_t)k * N + column];
    }
    C[(size_t)row * N + column] = sum;
}
