// /// matbench
// name = "bad-dot-stride"
// summary = "Strides one too far"
// workload = "dot"
// finish = "sum"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(32, ceil_div(N, THREADS))"]
// ///

// The mistake, in dot-tree: the stride is one more than there are threads in the grid.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_dot_stride(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[THREADS];

    const int t = threadIdx.x;
    const size_t stride = (size_t)gridDim.x * THREADS + 1;
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
