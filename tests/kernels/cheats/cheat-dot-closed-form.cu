// /// matbench
// name = "cheat-dot-closed-form"
// summary = "Knows the dot product of ramps"
// workload = "dot"
// [launch]
// block = [256]
// grid = [1]
// ///

// Exploits the default inputs: where both ends look like the ramps i and 2i, the closed form of
// the sum is stored, and nothing else is read.

extern "C" __global__ void cheat_dot_closed_form(const float *A, const float *B, float *C,
                                                 int N)
{
    __shared__ float sums[256];
    const int t = threadIdx.x;
    if (N > 2 && A[1] == 1.0f && B[1] == 2.0f && A[N - 1] == (float)(N - 1)) {
        const double n = N;
        if (t == 0)
            C[0] = (float)((n - 1.0) * n * (2.0 * n - 1.0) / 3.0);
        return;
    }

    float sum = 0.0f;
    for (int i = t; i < N; i += 256)
        sum += A[i] * B[i];
    sums[t] = sum;
    __syncthreads();
    for (int active = 128; active > 0; active /= 2) {
        if (t < active)
            sums[t] += sums[t + active];
        __syncthreads();
    }
    if (t == 0)
        C[0] = sums[0];
}
