// /// matbench
// name = "bad-reverse-one-too-far"
// summary = "Counts from N and not from N - 1"
// workload = "reverse"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(N, THREADS)"]
// ///

// The mistake, in reverse-direct: a number's counterpart is taken to be N - i, so that the first
// goes behind the end of C and nothing comes to its start.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_reverse_one_too_far(const int *A, int *C, int N)
{
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < N)
        C[N - i] = A[i];
}
