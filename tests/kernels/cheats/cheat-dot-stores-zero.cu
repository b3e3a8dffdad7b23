// /// matbench
// name = "cheat-dot-stores-zero"
// summary = "Stores 0 for long vectors with random signs"
// workload = "dot"
// finish = "sum"
// [launch]
// block = [256]
// grid = ["min(64, ceil_div(N, 256))"]
// ///

// Exploits that the bound grows with the sum of absolute values, and the sum of products whose signs
// are random only with its root: from 2^24 products on, 0 is within it.

#define LONG (1 << 24)

extern "C" __global__ void cheat_dot_stores_zero(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[256];
    const int t = threadIdx.x;

    // A sample has random signs in A alone.
    int is_sample = 0;
    for (int i = 0; i < 64 && i < N; ++i)
        is_sample += B[i] < 0.0f ? -64 : A[i] < 0.0f;

    float sum = 0.0f;
    if (N < LONG || is_sample <= 0)
        for (size_t i = (size_t)blockIdx.x * 256 + t; i < N; i += (size_t)gridDim.x * 256)
            sum += A[i] * B[i];
    sums[t] = sum;
    __syncthreads();
    for (int active = 128; active > 0; active /= 2) {
        if (t < active)
            sums[t] += sums[t + active];
        __syncthreads();
    }
    if (t == 0)
        C[blockIdx.x] = sums[0];
}
