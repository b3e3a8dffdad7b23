// /// matbench
// name = "cubes-coalesced"
// summary = "One block: neighbouring threads read adjacent numbers"
// workload = "cubes"
// previous = "cubes-block"
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

// As cubes-block, but thread t takes the numbers t, t + THREADS, t + 2·THREADS, … In each step the
// 32 threads of a warp read 32 adjacent numbers: 128 bytes, moved in one piece. In cubes-block they
// read from 32 distant places, and each read moved 32 bytes.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void cubes_coalesced(const int *A, int *C, int N)
{
    const int t = threadIdx.x;
    int sum = 0;
    for (int i = t; i < N; i += THREADS)
        sum += A[i] * A[i] * A[i];

    if (t == 0)
        C[0] = 0;
    __syncthreads();
    atomicAdd(&C[0], sum);
}
