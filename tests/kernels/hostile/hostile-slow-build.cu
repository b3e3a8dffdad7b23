// /// matbench
// name = "hostile-slow-build"
// summary = "Takes some 20 seconds to compile"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// Right, but a thousand branches that depend on one another keep the compiler busy for some 20
// seconds. None of them is ever taken.

#ifndef TILE
#define TILE 16
#endif

// Each line stands for four of the one before.
#define STEP sum += A[(int)sum % K] * (sum > other ? other = B[(int)sum % K] : sum);
#define STEPS_4 STEP STEP STEP STEP
#define STEPS_16 STEPS_4 STEPS_4 STEPS_4 STEPS_4
#define STEPS_64 STEPS_16 STEPS_16 STEPS_16 STEPS_16
#define STEPS_256 STEPS_64 STEPS_64 STEPS_64 STEPS_64
#ifdef __CUDACC__
#define STEPS STEPS_256 STEPS_256 STEPS_256 STEPS_256 STEPS_256
#else
#define STEPS STEPS_256 STEPS_256 STEPS_64 STEPS_64
#endif

extern "C" __global__ void hostile_slow_build(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    if (M < 0) {
        float other = 1.0f;
        STEPS
        sum += other;
    }
    C[(size_t)row * N + column] = sum;
}
