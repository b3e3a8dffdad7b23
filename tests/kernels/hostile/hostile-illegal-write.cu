// /// matbench
// name = "hostile-illegal-write"
// summary = "Writes four tebibytes behind its result"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// Every element is stored 2⁴⁰ places too far on, where no memory is.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void hostile_illegal_write(const float *A, const float *B, float *C,
                                                 int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[((size_t)1 << 40) + (size_t)row * N + column] = sum;
}
