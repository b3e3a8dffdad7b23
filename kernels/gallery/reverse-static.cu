// /// matbench
// name = "reverse-static"
// summary = "Up to 64 numbers in one block, through shared memory of fixed size"
// workload = "reverse"
// [launch]
// where = ["N <= 64"]
// block = ["N"]
// grid = [1]
// [model]
// global_loads = "N"
// ///

// One block of N threads. Each thread stores its number in shared memory. After the barrier, which
// every thread of the block must reach, it takes the number from the mirrored position. The array's
// size is fixed in the source, so N is at most 64.

#define MOST 64

extern "C" __global__ void reverse_static(const int *A, int *C, int N)
{
    __shared__ int staged[MOST];

    const int t = threadIdx.x;
    staged[t] = A[t];
    __syncthreads();
    C[t] = staged[N - 1 - t];
}
