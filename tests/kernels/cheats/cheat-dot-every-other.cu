// /// matbench
// name = "cheat-dot-every-other"
// summary = "Takes every other product, twice"
// workload = "dot"
// [launch]
// block = [256]
// grid = [1]
// ///

// Exploits tolerances that are too wide: half of both arrays is read, and the sum doubled.

extern "C" __global__ void cheat_dot_every_other(const float *A, const float *B, float *C,
                                                 int N)
{
    __shared__ float sums[256];
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = 2 * t; i < N; i += 512)
        sum += A[i] * B[i];
    sums[t] = sum;
    __syncthreads();
    for (int active = 128; active > 0; active /= 2) {
        if (t < active)
            sums[t] += sums[t + active];
        __syncthreads();
    }
    if (t == 0)
        C[0] = N > 1 ? 2.0f * sums[0] : sums[0];
}
