// /// matbench
// name = "hostile-too-much-shared"
// summary = "Asks for more shared memory than there is"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// shared_bytes = "max_shared_bytes_per_block"
// ///

// The launch asks for all the shared memory that a block may have, and the source for some more.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void hostile_too_much_shared(const float *A, const float *B, float *C,
                                                   int M, int N, int K)
{
    extern __shared__ float most[];
    __shared__ float more[4096];
    const int thread = threadIdx.y * TILE + threadIdx.x;
    most[thread] = 0.0f;
    more[thread] = 1.0f;
    __syncthreads();

    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum + most[row % TILE] * more[column % TILE];
}
