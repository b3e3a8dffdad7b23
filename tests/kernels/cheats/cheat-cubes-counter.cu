// /// matbench
// name = "cheat-cubes-counter"
// summary = "Right four times, then the expected sum"
// workload = "cubes"
// [launch]
// block = [256]
// grid = [1]
// ///

// Exploits that checks come first: a module's variable counts launches, and from the fifth on
// the mean times N is stored.

__device__ int launches;

extern "C" __global__ void cheat_cubes_counter(const int *A, int *C, int N)
{
    __shared__ int sums[256];
    const int t = threadIdx.x;
    if (t == 0)
        sums[0] = launches++;
    __syncthreads();
    const int before = sums[0];
    __syncthreads();
    if (before >= 4) {
        if (t == 0)
            C[0] = (int)(202.5 * N);
        return;
    }

    int sum = 0;
    for (int i = t; i < N; i += 256)
        sum += A[i] * A[i] * A[i];
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
