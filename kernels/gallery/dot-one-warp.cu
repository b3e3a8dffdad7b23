// /// matbench
// name = "dot-one-warp"
// summary = "Blocks for every multiprocessor; one warp adds up the sums of a block's threads"
// workload = "dot"
// group = "gallery"
// previous = "dot-tree"
// finish = "sum"
// [sweep]
// THREADS = [256]
// BLOCKS = [8]
// [tune]
// THREADS = [64, 128, 256, 512, 1024]
// BLOCKS = [1, 2, 4, 8, 16]
// [launch]
// where = ["THREADS % 32 == 0", "THREADS <= max_threads_per_block"]
// block = ["THREADS"]
// grid = ["min(BLOCKS * multiprocessors, ceil_div(N, THREADS))"]
// [model]
// global_loads = "2 * N"
// ///

// Adds: BLOCKS blocks for each multiprocessor, and one warp in place of the tree.
// Limit: memory bandwidth. The 32 blocks of dot-tree use 32 of 132 multiprocessors: a quarter of
//   the GPU at best.
// Measured: 3.69 TB/s at N = 2^28, 92% of copy bandwidth (H200)
//
// In a tree of 256 threads, half of the warps have nothing to add after the first round, but still
// meet the others at each of its eight barriers. Here all warps except the first are done after one
// barrier. Each thread of the first warp adds up every 32nd sum, so that neighbours read adjacent
// floats, and its first thread adds up those 32 sums.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void dot_one_warp(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[THREADS];

    const int t = threadIdx.x;
    const size_t stride = (size_t)gridDim.x * THREADS;
    float sum = 0.0f;
    for (size_t i = (size_t)blockIdx.x * THREADS + t; i < N; i += stride)
        sum += A[i] * B[i];
    sums[t] = sum;
    __syncthreads();

    if (t < 32) {
        for (int other = t + 32; other < THREADS; other += 32)
            sum += sums[other];
        sums[t] = sum;  // no other thread reads this one before the barrier
    }
    __syncthreads();

    if (t == 0) {
        for (int other = 1; other < 32; ++other)
            sum += sums[other];
        C[blockIdx.x] = sum;
    }
}
