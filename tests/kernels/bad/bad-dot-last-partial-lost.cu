// /// matbench
// name = "bad-dot-last-partial-lost"
// summary = "The last block keeps its sum"
// workload = "dot"
// finish = "sum"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(32, ceil_div(N, THREADS))"]
// ///

// The mistake, in dot-tree: the last block does not leave its partial sum.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_dot_last_partial_lost(const float *A, const float *B, float *C, int N)
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
    if (t == 0 && blockIdx.x + 1 < gridDim.x)
        C[blockIdx.x] = sums[0];
}
