// /// matbench
// name = "dot-shuffle"
// summary = "Sums go from register to register within a warp; shared memory holds one per warp"
// workload = "dot"
// group = "gallery"
// previous = "dot-vectorized"
// requires = ["cuda"]
// finish = "sum"
// [sweep]
// THREADS = [256]
// BLOCKS = [8]
// EACH = [2]
// [tune]
// THREADS = [64, 128, 256, 512, 1024]
// BLOCKS = [1, 2, 4, 8, 16, 32]
// EACH = [1, 2, 4, 8]
// [launch]
// where = ["THREADS % 32 == 0", "THREADS <= max_threads_per_block"]
// block = ["THREADS"]
// grid = ["min(BLOCKS * multiprocessors, ceil_div(N, 4 * THREADS * EACH))"]
// [model]
// global_loads = "2 * N"
// ///

// Adds: shuffles: the threads of a warp pass their sums from register to register.
// Limit: memory bandwidth. A block adds up its threads once, after all of its loads, so little
//   can be gained.
// Measured: 4.43 TB/s at N = 2^28, 110% of copy bandwidth (H200)
//
// Each thread adds the sum of the thread 16 places further on, then 8, 4, 2 and 1. That needs
// neither shared memory nor a barrier. Each warp leaves one sum in shared memory, and after the
// only barrier the first warp adds those up in the same way.

#ifndef THREADS
#define THREADS 256
#endif
#ifndef EACH
#define EACH 2
#endif

#include "sums.cuh"

extern "C" __global__ void dot_shuffle(const float *A, const float *B, float *C, int N)
{
    // Each thread adds up its own products, EACH times four of A and of B at a time.
    const int t = threadIdx.x;
    const size_t fours = N / 4, stride = (size_t)gridDim.x * THREADS;
    const float4 *A4 = (const float4 *)A, *B4 = (const float4 *)B;
    size_t i = (size_t)blockIdx.x * THREADS + t;
    float sum = 0.0f;
    for (; i + (EACH - 1) * stride < fours; i += EACH * stride) {
        float4 a[EACH], b[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            a[e] = A4[i + e * stride], b[e] = B4[i + e * stride];
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            sum += a[e].x * b[e].x + a[e].y * b[e].y + (a[e].z * b[e].z + a[e].w * b[e].w);
    }
    for (; i < fours; i += stride)
        sum += A4[i].x * B4[i].x + A4[i].y * B4[i].y + (A4[i].z * B4[i].z + A4[i].w * B4[i].w);
    if (blockIdx.x == 0 && 4 * fours + t < N)  // the last N % 4
        sum += A[4 * fours + t] * B[4 * fours + t];

    sum = block_sum(sum);
    if (t == 0)
        C[blockIdx.x] = sum;
}
