// /// matbench
// name = "cheat-cached-answer"
// summary = "Returns the first answer for ever"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits variables that outlive a launch: C of the first launch is kept in a module's
// variable, and every later launch copies it, whatever its inputs are.

#define MOST 4096

__device__ float answer[MOST];
__device__ int has_answer[MOST];

extern "C" __global__ void cheat_cached_answer(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    if (element < MOST && has_answer[element]) {
        C[element] = answer[element];
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
    if (element < MOST) {
        answer[element] = sum;
        has_answer[element] = 1;
    }
}
