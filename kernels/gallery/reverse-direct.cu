// /// matbench
// name = "reverse-direct"
// summary = "Any length, without shared memory: each thread writes to the mirrored position"
// workload = "reverse"
// previous = "reverse-blocks"
// [sweep]
// THREADS = [256]
// [tune]
// THREADS = [32, 64, 128, 256, 512, 1024]
// [launch]
// where = ["THREADS <= max_threads_per_block"]
// block = ["THREADS"]
// grid = ["ceil_div(N, THREADS)"]
// [model]
// global_loads = "N"
// ///

// The alternative to reverse-blocks: the threads of a warp write adjacent numbers in descending
// order. GPUs before compute capability 1.2 made a separate transfer of each. Since then the
// numbers that a warp writes within 128 bytes are transferred together, in whatever order.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void reverse_direct(const int *A, int *C, int N)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < N)
        C[N - 1 - i] = A[i];
}
