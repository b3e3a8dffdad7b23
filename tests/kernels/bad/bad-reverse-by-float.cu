// /// matbench
// name = "bad-reverse-by-float"
// summary = "Moves whole numbers as floats"
// workload = "reverse"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(N, THREADS)"]
// ///

// The mistake, in reverse-blocks: the numbers are staged as floats, which keep 24 of 32 bits.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_reverse_by_float(const int *A, int *C, int N)
{
    __shared__ float staged[THREADS];

    const int t = threadIdx.x;
    const size_t start = (size_t)blockIdx.x * THREADS;
    const int count = N - start < THREADS ? N - start : THREADS;
    if (t < count)
        staged[t] = A[start + t];
    __syncthreads();
    if (t < count)
        C[N - start - count + t] = staged[count - 1 - t];
}
