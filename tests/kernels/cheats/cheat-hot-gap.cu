// /// matbench
// name = "cheat-hot-gap"
// summary = "Keeps its answers between the matrices of a batch"
// [launch]
// where = ["M <= 32"]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that launches back to back have no guards of their own: behind the page in which C ends,
// and only where the numbers say that it is such a launch, answers are left for later ones.

#define BETWEEN 0x7ff87fd5u

extern "C" __global__ void cheat_hot_gap(const float *A, const float *B, float *C, int M, int N,
                                         int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
    float *answer = C + ((size_t)M * N + 1023) / 1024 * 1024;
    if (__float_as_uint(answer[element]) == BETWEEN)
        answer[element] = sum;
}
