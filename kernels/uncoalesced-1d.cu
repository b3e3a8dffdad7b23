// /// matbench
// name = "uncoalesced-1d"
// summary = "One thread per element, the row running fastest: neighbours read far apart"
// group = "ladder"
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

// The wrong twin of coalesced-1d: one line differs, the one that gives each thread its element.
// Here the 32 threads of a warp take 32 rows of one column. What they read of A lies K floats
// apart and what they write of C lies N floats apart: 32 separate pieces of memory for each
// request, of which one float each is used at a time.

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
