// /// matbench
// name = "bad-dot-stretch-of-32-bits"
// summary = "Deals out stretches by a product of 32 bits"
// workload = "dot"
// finish = "sum"
// [sweep]
// THREADS = [64]
// [launch]
// block = ["THREADS"]
// grid = [1024]
// ///

// The mistake, in dot-tree with a stretch of the numbers for each block: where a stretch begins is
// block · N / blocks, and from N = 2²² on that product has more than 32 bits.

#ifndef THREADS
#define THREADS 64
#endif

extern "C" __global__ void bad_dot_stretch_of_32_bits(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[THREADS];

    const int t = threadIdx.x;
    const size_t stride = THREADS;
    const unsigned first = blockIdx.x * (unsigned)N / gridDim.x;
    const unsigned end = (blockIdx.x + 1) * (unsigned)N / gridDim.x;
    float sum = 0.0f;
    for (size_t i = first + t; i < end; i += stride)
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
