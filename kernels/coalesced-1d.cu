// /// matbench
// name = "coalesced-1d"
// summary = "One thread per element, the column running fastest: neighbours read side by side"
// group = "ladder"
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

// The right twin of uncoalesced-1d: one line differs, the one that gives each thread its element.
// Here the 32 threads of a warp take 32 columns of one row. What they read of B and write of C
// lies side by side, 128 bytes that memory moves in one piece, and of A they all read the same
// float, which is fetched once for the warp.

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
