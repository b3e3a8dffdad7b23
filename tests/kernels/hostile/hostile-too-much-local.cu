// /// matbench
// name = "hostile-too-much-local"
// summary = "Asks for half a mebibyte of memory a thread"
// requires = ["cuda"]
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// An array of 520,000 bytes a thread, for as many threads as the device holds at once, is more
// than its memory on most devices.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void hostile_too_much_local(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    volatile float own[130000];
    for (int i = 0; i < 130000; i += 1000)
        own[i] = (float)i;

    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum + own[row % 130 * 1000] - row % 130 * 1000;
}
