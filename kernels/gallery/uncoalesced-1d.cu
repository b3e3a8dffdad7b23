// /// matbench
// name = "uncoalesced-1d"
// summary = "One thread per element; neighbouring threads read different rows (not coalesced)"
// group = "gallery"
// previous = "thread-1d"
// [sweep]
// THREADS = [256]
// [tune]
// THREADS = [64, 128, 256, 512, 1024]
// [launch]
// where = ["THREADS <= max_threads_per_block"]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// [model]
// global_loads = "2 * M * N * K"
// ///

// Adds: the row runs fastest: neighbouring threads compute elements of one column (thread-1d: of
//   one row). The next rung fixes this mistake.
// Predicted: at most 0.51 TFLOP/s. For each multiply-add a warp reads 32 lines of A and 1 of B from
//   the L1 cache: 33 cycles.
// Measured: 0.51 TFLOP/s at n = 4096, 1% of cuBLAS (H200)
//
// The 32 threads of a warp compute 32 rows of one column. The floats of A that they read lie K
// floats apart, and those of C that they write N floats apart. Each request touches 32 separate
// cache lines and uses one float of each.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void uncoalesced_1d(const float *A, const float *B, float *C,
                                          int M, int N, int K)
{
    const size_t element = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (element >= (size_t)M * N)
        return;
    const int row = element % M, column = element / M;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
