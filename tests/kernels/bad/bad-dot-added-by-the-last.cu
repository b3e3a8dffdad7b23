// /// matbench
// name = "bad-dot-added-by-the-last"
// summary = "The last thread adds before all have stored"
// workload = "dot"
// finish = "sum"
// [launch]
// block = [256]
// grid = ["min(32, ceil_div(N, 256))"]
// ///

// The mistake, in dot-tree: the last thread does not wait for the sums of the others.

extern "C" __global__ void bad_dot_added_by_the_last(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[256];
    float sum = 0.0f;
    for (size_t i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256)
        sum += A[i] * B[i];
    sums[threadIdx.x] = sum;
    // no barrier
    if (threadIdx.x == 255) {
        float total = 0.0f;
        for (int t = 0; t < 256; ++t)
            total += sums[t];
        C[blockIdx.x] = total;
    }
}
