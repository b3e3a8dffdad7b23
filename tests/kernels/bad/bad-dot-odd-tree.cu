// /// matbench
// name = "bad-dot-odd-tree"
// summary = "Halves a number of threads that is no power of two"
// workload = "dot"
// finish = "sum"
// [sweep]
// THREADS = [96, 200]
// [launch]
// block = ["THREADS"]
// grid = ["min(32, ceil_div(N, THREADS))"]
// ///

// The mistake, in dot-tree: the number of threads is no power of two. Where it cannot be halved
// any more, the last sum of the round is left behind.

#ifndef THREADS
#define THREADS 96
#endif

extern "C" __global__ void bad_dot_odd_tree(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[THREADS];

    const int t = threadIdx.x;
    const size_t stride = (size_t)gridDim.x * THREADS;
    float sum = 0.0f;
    for (size_t i = (size_t)blockIdx.x * THREADS + t; i < N; i += stride)
        sum += A[i] * B[i];
    sums[t] = sum;
    __syncthreads();

    for (int active = THREADS / 2; active > 0; active /= 2) {
        if (t < active)
            sums[t] += sums[t + active];
        __syncthreads();
    }
    if (t == 0)
        C[blockIdx.x] = sums[0];
}
