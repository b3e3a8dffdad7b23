// /// matbench
// name = "cheat-first-time-only"
// summary = "Writes C in the first launch only"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that C keeps what was written once: a module's variable says that an element was
// computed, and later launches do not touch it.

#define MOST 4096

__device__ int is_done[MOST];

extern "C" __global__ void cheat_first_time_only(const float *A, const float *B, float *C,
                                                 int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    if (element < MOST && is_done[element])
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
    if (element < MOST)
        is_done[element] = 1;
}
