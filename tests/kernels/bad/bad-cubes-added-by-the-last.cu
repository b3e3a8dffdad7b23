// /// matbench
// name = "bad-cubes-added-by-the-last"
// summary = "The last thread adds before all have stored"
// workload = "cubes"
// finish = "sum"
// [launch]
// block = [128]
// grid = [8]
// ///

// The mistake, in cubes-shared: the last thread does not wait for the sums of the others.

extern "C" __global__ void bad_cubes_added_by_the_last(const int *A, int *C, int N)
{
    __shared__ int sums[128];
    int sum = 0;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < N; i += gridDim.x * 128)
        sum += A[i] * A[i] * A[i];
    sums[threadIdx.x] = sum;
    // no barrier
    if (threadIdx.x == 127) {
        int total = 0;
        for (int t = 0; t < 128; ++t)
            total += sums[t];
        C[blockIdx.x] = total;
    }
}
