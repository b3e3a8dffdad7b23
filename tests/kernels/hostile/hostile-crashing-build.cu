// /// matbench
// name = "hostile-crashing-build"
// summary = "Crashes compilers"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// An expression of 65,536 nested operators exhausts the stack of a compiler that follows it by
// recursion. One that does not would find the result right: an even number of them undoes itself.

#ifndef TILE
#define TILE 16
#endif

// Each line stands for sixteen of the one before.
#define SIGNS_16 ~~~~~~~~~~~~~~~~
#define SIGNS_256 SIGNS_16 SIGNS_16 SIGNS_16 SIGNS_16 SIGNS_16 SIGNS_16 SIGNS_16 SIGNS_16 \
    SIGNS_16 SIGNS_16 SIGNS_16 SIGNS_16 SIGNS_16 SIGNS_16 SIGNS_16 SIGNS_16
#define SIGNS_4096 SIGNS_256 SIGNS_256 SIGNS_256 SIGNS_256 SIGNS_256 SIGNS_256 SIGNS_256 \
    SIGNS_256 SIGNS_256 SIGNS_256 SIGNS_256 SIGNS_256 SIGNS_256 SIGNS_256 SIGNS_256 SIGNS_256
#define SIGNS_65536 SIGNS_4096 SIGNS_4096 SIGNS_4096 SIGNS_4096 SIGNS_4096 SIGNS_4096 \
    SIGNS_4096 SIGNS_4096 SIGNS_4096 SIGNS_4096 SIGNS_4096 SIGNS_4096 SIGNS_4096 SIGNS_4096 \
    SIGNS_4096 SIGNS_4096

extern "C" __global__ void hostile_crashing_build(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = (SIGNS_65536 row) == row ? sum : 0.0f;
}
