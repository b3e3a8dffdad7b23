// /// matbench
// name = "bad-reverse-whole-blocks"
// summary = "Places pieces as if all were whole"
// workload = "reverse"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(N, THREADS)"]
// ///

// The mistake, in reverse-blocks: the place of a piece is counted in whole blocks from the start
// of C, where the shorter piece comes first.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_reverse_whole_blocks(const int *A, int *C, int N)
{
    __shared__ int staged[THREADS];

    const int t = threadIdx.x;
    const size_t start = (size_t)blockIdx.x * THREADS;
    const int count = N - start < THREADS ? N - start : THREADS;
    if (t < count)
        staged[t] = A[start + t];
    __syncthreads();
    if (t < count)
        C[(gridDim.x - 1 - blockIdx.x) * (size_t)THREADS + t] = staged[count - 1 - t];
}
