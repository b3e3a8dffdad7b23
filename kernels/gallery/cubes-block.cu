// /// matbench
// name = "cubes-block"
// summary = "One block: each thread adds up a contiguous range"
// workload = "cubes"
// previous = "cubes-thread"
// [sweep]
// THREADS = [256]
// [tune]
// THREADS = [32, 64, 128, 256, 512, 1024]
// [launch]
// where = ["THREADS <= max_threads_per_block"]
// block = ["THREADS"]
// grid = [1]
// [model]
// global_loads = "N"
// ///

// Each thread gets one contiguous stretch of the numbers, as one would divide them among the cores
// of a CPU. While one warp waits for memory, others run. The threads add their sums to the result
// one after the other: with atomicAdd no addition is lost, and the order does not matter for whole
// numbers.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void cubes_block(const int *A, int *C, int N)
{
    const int t = threadIdx.x;
    const int stretch = (N + THREADS - 1) / THREADS;
    const int start = t * stretch;
    const int end = N - start < stretch ? N : start + stretch;  // may be less than start
    int sum = 0;
    for (int i = start; i < end; ++i)
        sum += A[i] * A[i] * A[i];

    if (t == 0)
        C[0] = 0;
    __syncthreads();
    atomicAdd(&C[0], sum);
}
