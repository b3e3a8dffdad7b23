// /// matbench
// name = "bad-cubes-in-turns"
// summary = "Adds without atomics"
// workload = "cubes"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = [1]
// ///

// The mistake, in cubes-coalesced: the threads add to the result without atomicAdd, so that of
// those which read it at the same time only one's addition stays.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_cubes_in_turns(const int *A, int *C, int N)
{
    __shared__ int total;

    const int t = threadIdx.x;
    int sum = 0;
    for (int i = t; i < N; i += THREADS)
        sum += A[i] * A[i] * A[i];

    if (t == 0)
        total = 0;
    __syncthreads();
    const int before = total;
    __syncthreads();
    total = before + sum;
    __syncthreads();
    if (t == 0)
        C[0] = total;
}
