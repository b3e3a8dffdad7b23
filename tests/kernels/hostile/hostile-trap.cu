// /// matbench
// name = "hostile-trap"
// summary = "Executes a trap"
// requires = ["cuda"]
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The thread of the first element traps.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void hostile_trap(const float *A, const float *B, float *C,
                                        int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    if (row == 0 && column == 0)
        asm("trap;");
    C[(size_t)row * N + column] = sum;
}
