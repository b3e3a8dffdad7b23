// /// matbench
// name = "reverse-blocks"
// summary = "Any length: each block reverses its piece in shared memory"
// workload = "reverse"
// previous = "reverse-dynamic"
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

// Each block stages a piece of A and writes it to the mirrored position in C. The piece is reversed
// when it is read from shared memory, so that both global reads and writes are coalesced. The last
// piece may be shorter.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void reverse_blocks(const int *A, int *C, int N)
{
    __shared__ int staged[THREADS];

    const int t = threadIdx.x;
    const size_t start = (size_t)blockIdx.x * THREADS;
    const int count = N - start < THREADS ? N - start : THREADS;
    if (t < count)
        staged[t] = A[start + t];
    __syncthreads();
    if (t < count)
        C[N - start - count + t] = staged[count - 1 - t];
}
