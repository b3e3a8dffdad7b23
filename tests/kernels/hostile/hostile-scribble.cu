// /// matbench
// name = "hostile-scribble"
// summary = "Writes over what lies behind its result"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// All that lies in the 16 MiB behind C is overwritten: the guard, and other buffers if there are
// any. Where nothing is mapped, the write itself fails.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void hostile_scribble(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
    const size_t threads = (size_t)M * N;
    for (size_t i = (size_t)row * N + column; i < (size_t)1 << 22; i += threads)
        C[threads + i] = sum;
}
