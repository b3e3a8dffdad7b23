// /// matbench
// name = "bad-dot-counter-kept"
// summary = "The counter of blocks that are done is not set back"
// workload = "dot"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(32, ceil_div(N, THREADS))"]
// ///

// The mistake, in dot-single-pass: the last block does not set the counter back, so that in the
// next launch no block finds itself to be the last.

#ifndef THREADS
#define THREADS 256
#endif

static __device__ float partial[32];
static __device__ unsigned done;

extern "C" __global__ void bad_dot_counter_kept(const float *A, const float *B, float *C, int N)
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
    if (t > 0)
        return;

    partial[blockIdx.x] = sums[0];
    __threadfence();
    if (atomicAdd(&done, 1) != gridDim.x - 1)
        return;
    __threadfence();
    sum = 0.0f;
    for (unsigned block = 0; block < gridDim.x; ++block)
        sum += partial[block];
    C[0] = sum;
}
