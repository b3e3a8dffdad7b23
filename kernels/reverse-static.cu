// /// matbench
// name = "reverse-static"
// summary = "Up to 64 numbers in one block, by way of shared memory of a fixed size"
// workload = "reverse"
// [launch]
// where = ["N <= 64"]
// block = ["N"]
// grid = [1]
// [model]
// global_loads = "N"
// ///

// One block of N threads. Each puts its number into shared memory; when all have done so, each
// takes the number of its counterpart from the other end. Between the two every thread of the block
// must reach the barrier. The array's size is part of the source, so 64 numbers are the most.

#define MOST 64

extern "C" __global__ void reverse_static(const int *A, int *C, int N)
{
    __shared__ int staged[MOST];

    const int t = threadIdx.x;
    staged[t] = A[t];
    __syncthreads();
    C[t] = staged[N - 1 - t];
}
