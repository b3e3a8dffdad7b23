// /// matbench
// name = "bad-cubes-rest-left-out"
// summary = "Stretches are rounded down"
// workload = "cubes"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = [1]
// ///

// The mistake, in cubes-block: the length of a stretch is rounded down, so the numbers that are
// left over belong to nobody.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_cubes_rest_left_out(const int *A, int *C, int N)
{
    const int t = threadIdx.x;
    const int stretch = N / THREADS;
    const int start = t * stretch;
    const int end = N - start < stretch ? N : start + stretch;
    int sum = 0;
    for (int i = start; i < end; ++i)
        sum += A[i] * A[i] * A[i];

    if (t == 0)
        C[0] = 0;
    __syncthreads();
    atomicAdd(&C[0], sum);
}
