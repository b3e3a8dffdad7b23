// /// matbench
// name = "bad-reverse-first-piece"
// summary = "Every block stages the first piece"
// workload = "reverse"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(N, THREADS)"]
// ///

// The mistake, in reverse-blocks: the numbers staged are the first of A in every block.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_reverse_first_piece(const int *A, int *C, int N)
{
    __shared__ int staged[THREADS];

    const int t = threadIdx.x;
    const size_t start = (size_t)blockIdx.x * THREADS;
    const int count = N - start < THREADS ? N - start : THREADS;
    if (t < count)
        staged[t] = A[t];
    __syncthreads();
    if (t < count)
        C[N - start - count + t] = staged[count - 1 - t];
}
