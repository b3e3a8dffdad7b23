// /// matbench
// name = "dot-single-pass"
// summary = "The last block to finish adds up all blocks' sums: one launch, no work on the host"
// workload = "dot"
// group = "gallery"
// previous = "dot-shuffle"
// requires = ["cuda"]
// [sweep]
// THREADS = [256]
// BLOCKS = [8]
// EACH = [2]
// [tune]
// THREADS = [64, 128, 256, 512, 1024]
// BLOCKS = [1, 2, 4, 8, 16, 32]
// EACH = [1, 2, 4, 8]
// [launch]
// where = ["THREADS % 32 == 0", "THREADS <= max_threads_per_block",
//          "BLOCKS * multiprocessors <= 8192"]
// block = ["THREADS"]
// grid = ["min(BLOCKS * multiprocessors, ceil_div(N, 4 * THREADS * EACH))"]
// [model]
// global_loads = "2 * N"
// ///

// Adds: the last block to finish adds up the sums of all blocks, so that C is the dot product.
// Limit: memory bandwidth, and at the end one block that works alone.
// Measured: 4.41 TB/s at N = 2^28, 110% of copy bandwidth (H200)
//
// Each block stores its sum in `partial` and then increments a counter. The block that finds all
// others counted is the last: it adds up the sums, always in the same order, so the result does not
// depend on which block was last. A fence between storing and counting ensures that no block sees
// the count without the sum. The last block resets the counter for the next launch.

#ifndef THREADS
#define THREADS 256
#endif
#ifndef EACH
#define EACH 2
#endif
#define MOST_BLOCKS 8192

static __device__ float partial[MOST_BLOCKS];
static __device__ unsigned done;

#include "sums.cuh"

extern "C" __global__ void dot_single_pass(const float *A, const float *B, float *C, int N)
{
    __shared__ int last;

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
    if (t == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(&done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;

    // All sums are stored: this block adds them up.
    __threadfence();
    sum = 0.0f;
    for (unsigned block = t; block < gridDim.x; block += THREADS)
        sum += __ldcg(&partial[block]);  // from the L2 cache, since L1 may hold an old value
    sum = block_sum(sum);
    if (t == 0) {
        C[0] = sum;
        done = 0;
    }
}
