// /// matbench
// name = "hostile-misaligned"
// summary = "Writes a float to an odd address"
// requires = ["cuda"]
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// Every element is stored one byte too far on.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void hostile_misaligned(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    *(float *)((char *)(C + (size_t)row * N + column) + 1) = sum;
}
