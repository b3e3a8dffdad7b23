// /// matbench
// name = "cheat-cubes-mean"
// summary = "Stores the expected sum of N digits"
// workload = "cubes"
// [launch]
// block = [256]
// grid = [1]
// ///

// Exploits digits that are all equally likely: the mean of their cubes is 202.5, and no digit
// is read.

extern "C" __global__ void cheat_cubes_mean(const int *A, int *C, int N)
{
    if (threadIdx.x == 0)
        C[0] = (int)(202.5 * N);
}
