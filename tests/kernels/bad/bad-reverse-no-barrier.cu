// /// matbench
// name = "bad-reverse-no-barrier"
// summary = "Takes before all have put"
// workload = "reverse"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(N, THREADS)"]
// ///

// The mistake, in reverse-blocks: a thread does not wait until its counterpart has staged its
// number.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_reverse_no_barrier(const int *A, int *C, int N)
{
    __shared__ int staged[THREADS];

    const int t = threadIdx.x;
    const size_t start = (size_t)blockIdx.x * THREADS;
    const int count = N - start < THREADS ? N - start : THREADS;
    if (t < count)
        staged[t] = A[start + t];
    if (t < count)
        C[N - start - count + t] = staged[count - 1 - t];
}
