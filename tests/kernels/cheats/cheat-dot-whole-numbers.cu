// /// matbench
// name = "cheat-dot-whole-numbers"
// summary = "Takes whole numbers for ramps"
// workload = "dot"
// [launch]
// block = [256]
// grid = [1]
// ///

// Exploits the default inputs, even when they are moved about: where the first numbers are
// whole, it takes the inputs for ramps in some order and stores the closed form.

extern "C" __global__ void cheat_dot_whole_numbers(const float *A, const float *B, float *C,
                                                   int N)
{
    __shared__ float sums[256];
    const int t = threadIdx.x;
    int is_whole = 1;
    for (int i = 0; i < 8 && i < N; ++i)
        is_whole &= A[i] == (float)(int)A[i] && fabsf(A[i]) < (float)N;
    if (is_whole && N > 64) {
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
