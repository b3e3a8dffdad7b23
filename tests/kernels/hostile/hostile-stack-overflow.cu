// /// matbench
// name = "hostile-stack-overflow"
// summary = "Recurses until the stack is full"
// requires = ["cuda"]
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// A function calls itself 100,000 times over, with 256 bytes of its own each time.

#ifndef TILE
#define TILE 16
#endif

__device__ __noinline__ float dive(int depth, float value)
{
    volatile float own[64];
    for (int i = 0; i < 64; ++i)
        own[i] = value + i;
    return depth == 0 ? own[0] : dive(depth - 1, own[depth % 64]) + own[(depth + 1) % 64];
}

extern "C" __global__ void hostile_stack_overflow(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = dive(100000 + K, sum);
}
