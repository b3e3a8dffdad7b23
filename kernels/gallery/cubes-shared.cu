// /// matbench
// name = "cubes-shared"
// summary = "A block's sums go to shared memory, and one thread adds them up"
// workload = "cubes"
// previous = "cubes-blocks"
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

// As cubes-blocks, but the threads store their sums in shared memory, each in its own place,
// instead of queueing for one word of global memory. The first thread adds them up while the others
// of its block idle.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void cubes_shared(const int *A, int *C, int N)
{
    __shared__ int sums[THREADS];

    const int t = threadIdx.x;
    const size_t stride = (size_t)gridDim.x * THREADS;
    int sum = 0;
    for (size_t i = (size_t)blockIdx.x * THREADS + t; i < N; i += stride)
        sum += A[i] * A[i] * A[i];
    sums[t] = sum;
    __syncthreads();

    if (t == 0) {
        for (int other = 1; other < THREADS; ++other)
            sum += sums[other];
        C[blockIdx.x] = sum;
    }
}
