// /// matbench
// name = "dot-tree"
// summary = "Grid-stride products, a tree in shared memory, one partial sum per block"
// workload = "dot"
// finish = "sum"
// [sweep]
// THREADS = [256]
// BLOCKS = [32]
// [tune]
// THREADS = [32, 64, 128, 256, 512, 1024]
// BLOCKS = [32, 132, 528, 1056, 2112]
// [launch]
// where = ["is_power_of_two(THREADS)", "THREADS <= max_threads_per_block"]
// block = ["THREADS"]
// grid = ["min(BLOCKS, ceil_div(N, THREADS))"]
// [model]
// global_loads = "2 * N"
// ///

// Each thread adds up its own products, in strides of the whole grid. Then half of the threads add
// the sums of the other half to theirs, then half of those, until one sum is left. The number of
// threads must be a power of two. Each block leaves one partial sum, and the host adds those up.
//
// 32 blocks were enough for the GPUs of 2010. Current ones have more multiprocessors than that, and
// those without a block stay idle.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void dot_tree(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[THREADS];

    const int t = threadIdx.x;
    const size_t stride = (size_t)gridDim.x * THREADS;
    float sum = 0.0f;
    for (size_t i = (size_t)blockIdx.x * THREADS + t; i < N; i += stride)
        sum += A[i] * B[i];
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
