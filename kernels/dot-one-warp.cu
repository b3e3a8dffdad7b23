// /// matbench
// name = "dot-one-warp"
// summary = "Blocks for every multiprocessor; one warp adds up what a block's threads found"
// workload = "dot"
// group = "ladder"
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

// As dot-tree, but with BLOCKS blocks for each multiprocessor, so that all of them read, and
// without the tree. In a tree of 256 threads half of the warps have nothing to do after the first
// round, and still they come to each of its eight barriers. Here all warps but the first are done
// after one barrier. The threads of the first add up one column each, with neighbours reading side
// by side, and its first thread adds up those 32 sums.

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
        sums[t] = sum;  // nobody else reads this one yet
    }
    __syncthreads();

    if (t == 0) {
        for (int other = 1; other < 32; ++other)
            sum += sums[other];
        C[blockIdx.x] = sum;
    }
}
