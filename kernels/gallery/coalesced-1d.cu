// /// matbench
// name = "coalesced-1d"
// summary = "One thread per element; neighbouring threads read neighbouring columns (coalesced)"
// group = "gallery"
// previous = "uncoalesced-1d"
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

// Adds: the column runs fastest. One line differs from uncoalesced-1d: the one that gives each
//   thread its element.
// Predicted: at most 8.4 TFLOP/s: 2 cycles of the L1 cache for each multiply-add of a warp.
// Measured: 5.4 TFLOP/s at n = 4096, 11% of cuBLAS (H200)
//
// The 32 threads of a warp compute 32 columns of one row. What they read of B and write of C is
// contiguous: one line of 128 bytes. All of them read the same float of A, which is fetched
// once for the whole warp.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void coalesced_1d(const float *A, const float *B, float *C,
                                        int M, int N, int K)
{
    const size_t element = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (element >= (size_t)M * N)
        return;
    const int row = element / N, column = element % N;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
