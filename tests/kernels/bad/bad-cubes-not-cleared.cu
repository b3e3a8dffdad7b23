// /// matbench
// name = "bad-cubes-not-cleared"
// summary = "Adds to what C held before"
// workload = "cubes"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = [1]
// ///

// The mistake, in cubes-block: nobody sets the result to zero before the threads add to it.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_cubes_not_cleared(const int *A, int *C, int N)
{
    const int t = threadIdx.x;
    const int stretch = (N + THREADS - 1) / THREADS;
    const int start = t * stretch;
    const int end = N - start < stretch ? N : start + stretch;
    int sum = 0;
    for (int i = start; i < end; ++i)
        sum += A[i] * A[i] * A[i];

    atomicAdd(&C[0], sum);
}
