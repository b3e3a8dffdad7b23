// /// matbench
// name = "cubes-blocks"
// summary = "Many blocks, so that every multiprocessor works"
// workload = "cubes"
// previous = "cubes-coalesced"
// finish = "sum"
// [sweep]
// THREADS = [256]
// BLOCKS = [8]
// [tune]
// THREADS = [32, 64, 128, 256, 512, 1024]
// BLOCKS = [1, 2, 4, 8, 16]
// [launch]
// where = ["THREADS <= max_threads_per_block"]
// block = ["THREADS"]
// grid = ["min(BLOCKS * multiprocessors, ceil_div(N, THREADS))"]
// [model]
// global_loads = "N"
// ///

// As cubes-coalesced, with BLOCKS blocks for each multiprocessor. A block runs on one
// multiprocessor, so a single block leaves all others idle. Blocks do not wait for one another:
// each leaves its own sum, and the host adds those up.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void cubes_blocks(const int *A, int *C, int N)
{
    const int t = threadIdx.x;
    const size_t stride = (size_t)gridDim.x * THREADS;
    int sum = 0;
    for (size_t i = (size_t)blockIdx.x * THREADS + t; i < N; i += stride)
        sum += A[i] * A[i] * A[i];

    if (t == 0)
        C[blockIdx.x] = 0;
    __syncthreads();
    atomicAdd(&C[blockIdx.x], sum);
}
