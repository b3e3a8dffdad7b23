// /// matbench
// name = "thread-1d"
// summary = "One thread per element, counted along one dimension"
// previous = "single-block"
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

// Adds: many threads; neighbouring ones read neighbouring addresses.
// Predicted: at most 8.4 TFLOP/s: 2 cycles of the L1 cache for each multiply-add of a warp.
//
// A thread computes one element of C: a row of A times a column of B, both from global memory. A
// block computes THREADS elements that are contiguous in memory, so its threads read neighbouring
// columns of B together, and mostly the same row of A.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void thread_1d(const float *A, const float *B, float *C, int M, int N, int K)
{
    // Place: N elements make a row. In the last block some threads have no element.
    const size_t element = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (element >= (size_t)M * N)
        return;
    const int row = element / N;
    const int column = element % N;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[element] = sum;
}
