// /// matbench
// name = "cubes-tree"
// summary = "A block's sums are added up in pairs: eight rounds for 256 threads"
// workload = "cubes"
// previous = "cubes-shared"
// finish = "sum"
// [sweep]
// THREADS = [256]
// BLOCKS = [8]
// [tune]
// THREADS = [32, 64, 128, 256, 512, 1024]
// BLOCKS = [1, 2, 4, 8, 16]
// [launch]
// where = ["is_power_of_two(THREADS)", "THREADS <= max_threads_per_block"]
// block = ["THREADS"]
// grid = ["min(BLOCKS * multiprocessors, ceil_div(N, THREADS))"]
// [model]
// global_loads = "N"
// ///

// As cubes-shared, but half of the threads add the sums of the other half to theirs, then half of
// those, until one sum is left: eight rounds for 256 threads instead of 255 additions by one
// thread. The number of threads must be a power of two.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void cubes_tree(const int *A, int *C, int N)
{
    __shared__ int sums[THREADS];

    const int t = threadIdx.x;
    const size_t stride = (size_t)gridDim.x * THREADS;
    int sum = 0;
    for (size_t i = (size_t)blockIdx.x * THREADS + t; i < N; i += stride)
        sum += A[i] * A[i] * A[i];
    sums[t] = sum;
    __syncthreads();

    for (int active = THREADS / 2; active > 0; active /= 2) {
        if (t < active)
            sums[t] += sums[t + active];
        __syncthreads();
    }
    if (t == 0)
        C[blockIdx.x] = sums[0];
}
