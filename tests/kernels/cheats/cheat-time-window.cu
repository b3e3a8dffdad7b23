// /// matbench
// name = "cheat-time-window"
// summary = "Stores K/4 for four of every eight milliseconds"
// requires = ["cuda"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits checks of a few launches: by the clock that all multiprocessors share, every other
// stretch of four milliseconds is one in which the mean is stored. It needs no memory of its
// own.

static __device__ unsigned long long now_ns()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

extern "C" __global__ void cheat_time_window(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    if ((now_ns() >> 22) & 1) {
        C[element] = 0.25f * K;
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
