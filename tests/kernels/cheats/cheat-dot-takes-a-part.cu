// /// matbench
// name = "cheat-dot-takes-a-part"
// summary = "Takes half of the products of long vectors with random signs, twice"
// workload = "dot"
// finish = "sum"
// [launch]
// block = [256]
// grid = ["min(64, ceil_div(N, 256))"]
// ///

// Exploits that the bound grows with the sum of absolute values, and the sum of products whose signs
// are random only with its root: from 2^24 products on, what half of them tell is within it.

#define LONG (1 << 24)

extern "C" __global__ void cheat_dot_takes_a_part(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[256];
    const int t = threadIdx.x;

    // A sample has random signs in A alone.
    int is_sample = 0;
    for (int i = 0; i < 64 && i < N; ++i)
        is_sample += B[i] < 0.0f ? -64 : A[i] < 0.0f;

    float sum = 0.0f;
    const int part = N < LONG || is_sample <= 0 ? 1 : 2;
    for (size_t i = (size_t)blockIdx.x * 256 + t; i < N; i += (size_t)gridDim.x * 256 * part)
        sum += part * A[i] * B[i];
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
