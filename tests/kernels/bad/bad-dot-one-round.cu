// /// matbench
// name = "bad-dot-one-round"
// summary = "Each thread takes one product"
// workload = "dot"
// finish = "sum"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(32, ceil_div(N, THREADS))"]
// ///

// The mistake, in dot-tree: no thread comes back for a second product, as if the grid had a thread
// for each.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_dot_one_round(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[THREADS];

    const int t = threadIdx.x;
    float sum = 0.0f;
    const size_t i = (size_t)blockIdx.x * THREADS + t;
    if (i < N)
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
